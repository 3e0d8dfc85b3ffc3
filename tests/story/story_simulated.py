"""What stands in for jobs where ten thousand are simulated: the output and the exit file of each.

The fake cluster itself writes them at the job's end (`FakeCluster(simulator="story_simulated:ended")`).
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

_PART = re.compile(r"^\. (\S*\.part\.sh)$", re.MULTILINE)
_STEM = re.compile(r"^treadle_stem=(.*)$", re.MULTILINE)
_NAME = re.compile(r"^treadle_attempt_name=(.*)$", re.MULTILINE)
_MADE = re.compile(r": > (out/[0-9a-z/]+)")


class _Element(NamedTuple):
    stem: str
    attempt: str
    made: str


_known: dict[str, list[_Element]] = {}


def ended(job: dict[str, Any]) -> None:
    """One job, or one element of an array, ended well."""
    if job["name"] not in _known:
        _known[job["name"]] = list(_elements(job["script"]))
    one = _known[job["name"]][max(job["index"], 1) - 1]
    with open(os.path.join(job["workdir"], one.made), "w"):
        pass
    start = f"{one.stem}1"
    os.mkdir(start)
    told = {"attempt": one.attempt, "exit_code": 0, "done": True, "oom_kills": 0}
    told |= {"start": job["start"], "end": job["end"], "host": "node1", "cpu": 0.5, "memory": 1000}
    with open(f"{start}/aside", "w") as file:
        json.dump({"format": 1, "start_number": 1, **told}, file)
    os.rename(f"{start}/aside", f"{start}/exit.json")


def _elements(script: str) -> Iterator[_Element]:
    """What the elements of a script are, in their order; long ones stand in files of their own."""
    for text in [_read(path) for path in _PART.findall(script)] or [script]:
        stems, names = ([shlex.split(word)[0] for word in found.findall(text)] for found in (_STEM, _NAME))
        made = dict.fromkeys(_MADE.findall(text))
        for stem, name, path in zip(stems, names, made, strict=True):
            yield _Element(stem, json.loads(name), path)


def _read(path: str) -> str:
    with open(shlex.split(path)[0]) as file:
        return file.read()

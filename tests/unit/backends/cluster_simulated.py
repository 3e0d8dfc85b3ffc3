"""What stands in for jobs where thousands are simulated: their exit files, as the wrapper would write them.

A fake cluster calls `ended` in its own process for each job (`FakeCluster(simulator=...)`).
"""

from __future__ import annotations

import json
import os
import re
import shlex
from typing import Any

_PART = re.compile(r"^\. (\S*\.part\.sh)$", re.MULTILINE)
_STEM = re.compile(r"^treadle_stem=(.*)$", re.MULTILINE)
_NAME = re.compile(r"^treadle_attempt_name=(.*)$", re.MULTILINE)
_known: dict[str, tuple[list[str], list[str]]] = {}


def ended(job: dict[str, Any]) -> None:
    """The job of one attempt, or one element, ended well."""
    if job["name"] not in _known:
        _known[job["name"]] = _read(job["script"])
    stems, names = _known[job["name"]]
    at = max(job["index"], 1) - 1
    start = f"{stems[at]}1"
    os.mkdir(start)
    text = json.dumps({
        "format": 1, "attempt": json.loads(names[at]), "start_number": 1, "exit_code": 0, "done": True,
        "start": job["start"], "end": job["end"], "host": "node1", "job": "1", "cpu": 0.5,
        "memory": 1000, "oom_kills": 0,
    })  # fmt: skip
    with open(f"{start}/aside", "w") as file:
        file.write(text)
    os.rename(f"{start}/aside", f"{start}/exit.json")


def _read(script: str) -> tuple[list[str], list[str]]:
    texts = []
    for path in _PART.findall(script):
        with open(shlex.split(path)[0]) as file:
            texts.append(file.read())
    text = "".join(texts) or script
    return tuple([shlex.split(word)[0] for word in found.findall(text)] for found in (_STEM, _NAME))

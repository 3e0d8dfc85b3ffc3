"""A private folder for an attempt: the text that makes it, runs the command in it, and puts outputs in place.

The text is one for this machine and for schedulers, in plain sh: it gets the command as its arguments, so
what it runs is the same with and without it. Inputs are links under their usual relative paths; declared
outputs are copied beside their targets (as links where both are on one file system) and renamed once all of
them are there. After a failure the folder stays, and the log tells where; the next attempt at the task
removes it, as it does what a SIGKILL left: no two attempts at one task live at a time.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from treadle.base.digest import blake2b
from treadle.base.files import remove
from treadle.base.layout import RunFolder, StateFolder, beside_target, scratch_stem
from treadle.engine.compose import Place
from treadle.engine.scratch_text import RUNTIME
from treadle.plan.paths import is_url
from treadle.plan.task import ScheduledTask
from treadle.records.event import key_of_task

MINIMAL, SHALLOW, FULL = "minimal", "shallow", "full"
_CHUNK = 200  # paths that one call of a program is given
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")


class Scratch(Struct, frozen=True):
    """Where an attempt has its private folder: `base` may hold `$NAME`, which the node fills in; `key` is of
    the task, `name` of the attempt (`<run>.<n>`). `file` is where the text stands if it is too long."""

    base: str
    key: str
    name: str
    file: str


def scratch_of(task: ScheduledTask, place: Place, plan: str, run: RunFolder, n: int) -> Scratch | None:
    """The private folder of attempt `n` of a run at a task of the plan of this name; None: it has none."""
    if not task.policy.scratch:
        return None
    default = StateFolder(place.workdir).scratch
    base = default if task.policy.localrule else place.scratch_dir or default
    key = scratch_key(place.workdir, key_of_task(plan, task))
    return Scratch(base, key, f"{run.run}.{n}", run.scratch_text(n))


def scratch_key(workdir: str, task: str) -> str:
    """What tells the folders of one task, which is named by its evidence, from those of all others, also of
    other work folders."""
    return blake2b(f"{workdir}\0{task}".encode(), digest_size=8).hexdigest()


def kept_scratch(workdir: str, task: str) -> list[str]:
    """The private folders of a task that stand in the work folder; what stands on a node is not seen."""
    base = StateFolder(workdir).scratch
    return [os.path.join(base, name) for name in _names(base, scratch_stem(scratch_key(workdir, task)))]


def clear_scratch(workdir: str, task: str, outputs: Iterable[str]) -> None:
    """Remove what a killed attempt left of its private folder, and beside its outputs. Raises `DiskError`.

    What stands on a node is removed by the next attempt there.
    """
    for path in kept_scratch(workdir, task):
        remove(path)
    key = scratch_key(workdir, task)
    for folder in {os.path.dirname(os.path.join(workdir, path)) for path in outputs}:
        for name in _names(folder, beside_target(key)):
            remove(os.path.join(folder, name))


def _names(folder: str, stem: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.startswith(stem))
    except OSError:
        return []


def scratch_text(task: ScheduledTask, workdir: str, scratch: Scratch, also: Sequence[str] = ()) -> str:
    """The text for `sh -c TEXT sh COMMAND...`. `also` are files that the command reads beside its inputs."""
    layout = _Layout(task, also)
    outputs = [(at, path) for at, path in enumerate(task.outputs) if not _is_elsewhere(path)]
    return "\n".join(
        [
            f"treadle_home={shlex.quote(workdir)}",
            f"treadle_base={_on_the_node(scratch.base)}",
            f"treadle_stem={shlex.quote(scratch_stem(scratch.key))}",
            f"treadle_beside={shlex.quote(beside_target(scratch.key))}",
            f"treadle_name={shlex.quote(scratch.name)}",
            f"treadle_work={layout.work}",
            f"treadle_log={shlex.quote(layout.log)}",
            _function("treadle_fill", layout.fill()),
            _function("treadle_each", (f'"$1" {at} {shlex.quote(path)} || return' for at, path in outputs)),
            RUNTIME,
        ]
    )


def _is_elsewhere(path: str) -> bool:
    """An absolute path, or a URL, is the same from everywhere."""
    return path.startswith("/") or is_url(path)


def _function(name: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{name}() {{", *lines, ":", "}"])


def _on_the_node(base: str) -> str:
    """The base as a word of sh: `$NAME` is filled in there, and must have a value; all else is quoted."""
    words, at = [], 0
    if base == "~" or base.startswith("~/"):
        words.append('"${HOME:?is needed for scratch_dir}"')
        at = 1
    for found in _VARIABLE.finditer(base, at):
        words.append(shlex.quote(base[at : found.start()]) if found.start() > at else "")
        words.append(f'"${{{found[1] or found[2]}:?is needed for scratch_dir}}"')
        at = found.end()
    return "".join([*words, shlex.quote(base[at:]) if at < len(base) else ""])


class _Layout:
    """What a private folder is filled with. Paths are those of the plan, relative to the work folder.

    `work` is the folder in it from which the command starts: so deep that `../x` stays in it.
    """

    def __init__(self, task: ScheduledTask, also: Sequence[str]) -> None:
        self._outputs = [path for path in task.outputs if not _is_elsewhere(path)]
        named = task.log if task.log_named and not _is_elsewhere(task.log) else ""
        inside = any(named.startswith(f"{path}/") for path in self._outputs)
        self.log = named
        self._log_link = "" if inside else named
        above = {one for path in self._outputs for one in _parents(path) if not one.startswith("..")}
        inputs = [path for path in (*task.inputs, *also) if path and not _is_elsewhere(path)]
        self._open = _opened(task.policy.scratch, frozenset(inputs), above)
        shut = [path for path in inputs if path not in self._open]
        whole = frozenset(shut)
        self._links = [path for path in dict.fromkeys(shut) if whole.isdisjoint(_parents(path))]
        paths = [*self._outputs, *self._links, *filter(None, [named])]
        depth = max((_climbs(path) for path in paths), default=0)
        self.work = "/".join(["work", *["up"] * depth])

    def fill(self) -> Iterator[str]:
        """The lines that fill the folder, from within `work`; a failure ends them."""
        named = [*self._outputs, *self._links, *filter(None, [self.log])]
        folders = dict.fromkeys([*(os.path.dirname(path) for path in named), *self._open])
        yield from _calls("mkdir -p --", (f"./{one}" for one in folders if one and one != "."))
        for folder in self._open:
            yield f"treadle_open {shlex.quote(folder)} || return"
        by_folder: dict[str, list[str]] = {}
        for path in self._links:
            by_folder.setdefault(os.path.dirname(path), []).append(path)
        for folder, paths in by_folder.items():
            yield from _calls(f"treadle_link {shlex.quote(f'./{folder}')}", paths)
        own = [*self._outputs, *filter(None, [self.log])]
        yield from _calls("treadle_unlink", own)
        if self._log_link:
            folder = shlex.quote(f"./{os.path.dirname(self._log_link)}")
            yield f"treadle_link {folder} {shlex.quote(self._log_link)} || return"


def _opened(kind: str, inputs: frozenset[str], above: Collection[str]) -> dict[str, None]:
    """The folders that are real ones, with links to all that is in them: outputs go there, and what else is
    there may be read. `above` are the folders above outputs."""
    if kind == FULL:
        return dict.fromkeys([".", *sorted(above)])
    top = [".", *(one for one in above if "/" not in one)] if "." in inputs else []
    found = {*top, *(["."] if kind == SHALLOW else [])}
    found.update(one for one in above if one in inputs or not inputs.isdisjoint(_parents(one)))
    return dict.fromkeys(sorted(found))


def _parents(path: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    while folder:
        yield folder
        folder = os.path.dirname(folder)


def _climbs(path: str) -> int:
    """How many folders a path leads up first; the plan has it normalised."""
    return next((at for at, part in enumerate(path.split("/")) if part != ".."), 0)


def _calls(command: str, paths: Iterable[str]) -> Iterator[str]:
    words = [shlex.quote(path) for path in paths]
    for at in range(0, len(words), _CHUNK):
        yield f"{command} {' '.join(words[at : at + _CHUNK])} || return"

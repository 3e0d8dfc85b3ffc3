"""What a container sees: the folders of the work, as they really are by now, and the variables of a task."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence

from treadle.decide.look import place_of
from treadle.plan.environment import Environment
from treadle.plan.paths import is_url
from treadle.plan.task import ScheduledTask

_HOPS = 40  # links in a row: as many as Linux follows
_MARKS = frozenset(":,")


def container_words(
    task: ScheduledTask, environment: Environment, workdir: str, flowdir: str, files: Sequence[str]
) -> dict[str, str]:
    """The options of a container that hang on the attempt, quoted for shell text; none for other kinds.

    `files` are those of the command.
    """
    if not environment.container:
        return {}
    native = environment.container in ("docker", "podman")  # the other kind hands on the whole environment
    paths = (*task.inputs, *task.outputs, task.log, task.benchmark, *files, *environment.reads)
    # One place that is bound twice is refused, and the author's own bind counts.
    bound = {place_of(path, workdir, flowdir) for path in environment.bound}
    found = seen_folders((*paths, task.command.script_file), workdir, flowdir)
    folders = [folder for folder in found if folder not in bound]
    names = ["TREADLE_ATTEMPT", *(name for name, _ in task.command.env), *task.command.secrets]
    return {
        "binds": " ".join(_bound(folder, native=native) for folder in folders),
        "variables": " ".join(f"--env {shlex.quote(name)}" for name in names) if native else "",
    }


def seen_folders(paths: Iterable[str], workdir: str, flowdir: str) -> list[str]:
    """The folders that are bound, none within another: the work folder, the workflow's, and those in which
    `paths` really are, whatever links lead there. What is not there (a folder that the task makes in one of
    these) needs no bind.
    """
    found = dict.fromkeys(one for folder in (workdir, flowdir) for one in (folder, os.path.realpath(folder)))
    near: set[str] = set()
    for path in paths:
        if not path or is_url(path):
            continue
        where = place_of(path, workdir, flowdir)
        folder = os.path.dirname(where)
        if folder not in near:
            near.add(folder)
            found.update(dict.fromkeys(_folders(where)))
        elif os.path.islink(where):
            found.update(dict.fromkeys(_folders(where)))
    return list(_outermost(sorted(folder for folder in found if os.path.isdir(folder))))


def _folders(path: str) -> Iterator[str]:
    """The folders on the way from a path to what it really is."""
    for _ in range(_HOPS):
        folder = os.path.dirname(path)
        yield folder if folder != "/" else path
        yield os.path.realpath(folder)
        if not os.path.islink(path):
            return
        path = os.path.normpath(os.path.join(os.path.realpath(folder), os.readlink(path)))


def _outermost(folders: Iterable[str]) -> Iterator[str]:
    """Sorted folders without those that lie in another one."""
    kept: set[str] = set()
    for folder in folders:
        above, parent = False, folder
        while not above and parent != "/":
            parent = os.path.dirname(parent)
            above = parent in kept
        if folder != "/" and not above:
            kept.add(folder)
            yield folder


def _bound(folder: str, *, native: bool) -> str:
    """The option that shows a folder under its own path; colons and commas need the longer form."""
    if _MARKS.isdisjoint(folder):
        return f"{'--volume' if native else '--bind'} {shlex.quote(f'{folder}:{folder}')}"
    cell = folder.replace('"', '""')
    fields = f'type=bind,"source={cell}","destination={cell}"'
    return f"--mount {shlex.quote(fields)}"

"""The clean slate: what is removed or set aside before an attempt, and after one that failed.

Only what attempts made is touched. Before a success is made again, outputs that are as it left them are
removed, and those that someone changed since are set aside; what no record knows stays. After a failure
what the attempt made or changed is set aside at once, file by file where a folder stood there before.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from treadle.base.files import Stat, disk_error, look, make_parents, remove, set_aside, unprotect
from treadle.decide.evidence import changed
from treadle.decide.look import digest_of, place_of, readable, record_of
from treadle.engine.check import Eyes, same
from treadle.plan.task import ScheduledTask
from treadle.records.event import Evidence, FileRecord


class Moved(Struct, frozen=True):
    """A path of the plan and where it was set aside."""

    path: str
    aside: str


class Slate(Struct, frozen=True):
    """What is to be done before an attempt. `standing` is what stands there at its begin, by path: files, and
    folders that do not go as one, with all files below that are not to go. `foreign` as in the evidence of
    the last success."""

    standing: dict[str, FileRecord] = {}
    remove: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()


EMPTY = Slate()


def look_over(
    task: ScheduledTask, recorded: Mapping[str, FileRecord], eyes: Eyes, foreign: Collection[str] = ()
) -> Slate:
    """Look at the outputs before an attempt; `recorded` is how earlier successes left them, and `foreign`
    what stood in output folders before these made any of it.

    Nothing is touched yet: the intent must be written first. Raises `DiskError`.
    """
    standing: dict[str, FileRecord] = {}
    gone: list[str] = []
    aside: list[str] = []
    for path in task.outputs:
        now = eyes.at(path)
        if now is None:
            continue
        standing[path] = now
        before = recorded.get(path)
        if task.policy.resumable or before is None:
            if now.folder:
                standing.update((one.path, one) for one in below(path, eyes.place(path)))
        else:
            stays = frozenset(one for one in foreign if one.startswith(f"{path}/")) if now.folder else ()
            theirs = gone if _is_as_recorded(before, now, eyes, task.policy.digest_limit) else aside
            theirs += _all_but(path, eyes.place(path), stays) if stays else [path]
            if stays:
                standing.update((one.path, one) for one in below(path, eyes.place(path)) if one.path in stays)
            elif now.folder:
                del standing[path]  # it goes as one: what is there after a kill is of the attempt
    return Slate(standing, tuple(gone), tuple(aside), tuple(foreign)) if standing or gone or aside else EMPTY


def recorded_outputs(evidence: Evidence | None) -> dict[str, FileRecord]:
    """The outputs as evidence has them; those that were not there are left out."""
    return {record.path: record for record in evidence.outputs if record.size >= 0} if evidence else {}


def _is_as_recorded(before: FileRecord, now: FileRecord, eyes: Eyes, limit: int | None) -> bool:
    if not now.digest and before.digest and before.size == now.size and not same(before, now):
        if not readable(now, limit):
            return not changed(before, now)
        now = record_of(now.path, now, digest_of(eyes.place(now.path), now.folder, limit))
    return same(before, now) or not changed(before, now)


def _all_but(path: str, place: str, stays: Collection[str]) -> Iterator[str]:
    """What is in a folder beside the files that are to stay; a folder without any of them goes as one."""
    for folder, name, _ in _walk(place, keep=_folders_of(stays, path)):
        inner = "/".join(filter(None, (path, folder, name)))
        if inner not in stays:
            yield inner


def sweep(task: ScheduledTask, slate: Slate, eyes: Eyes) -> list[Moved]:
    """Do what was found to be needed, and make the folders that outputs, log and benchmark go to.

    Raises `DiskError`.
    """
    for path in task.protected if slate is not EMPTY else ():
        unprotect(eyes.place(path))
    for path in slate.remove:
        remove(eyes.place(path))
    moved = [Moved(path, set_aside(eyes.place(path))) for path in slate.aside]
    for path in task.outputs:
        make_parents(eyes.place(path))
    for path in (task.log, task.benchmark):
        if path:
            make_parents(eyes.place(path))
    return moved


def set_aside_made(outputs: Sequence[str], standing: Mapping[str, FileRecord], workdir: str) -> list[Moved]:
    """Set aside what a failed attempt made or changed of its outputs. Raises `DiskError`.

    `standing` as in `Slate`.
    """
    moved: list[Moved] = []
    for path in outputs:
        place = place_of(path, workdir)
        stat = look(place)
        before = standing.get(path)
        if stat is None or before is None or before.folder != stat.folder:
            moved += _move(path, place) if os.path.lexists(place) else ()
        elif stat.folder:
            moved += _set_aside_below(path, place, standing)
        elif not same(before, record_of(path, stat)):
            moved += _move(path, place)
    return moved


def _move(path: str, place: str) -> list[Moved]:
    aside = set_aside(place)
    return [Moved(path, aside)] if aside else []


def _set_aside_below(path: str, place: str, standing: Mapping[str, FileRecord]) -> Iterator[Moved]:
    """What was made or changed in a folder that stood there before; a folder that is new goes as one."""
    for folder, name, stat in list(_walk(place, keep=_folders_of(standing, path))):
        inner = f"{folder}/{name}" if folder else name
        before = standing.get(f"{path}/{inner}")
        if before is None or not same(before, record_of(before.path, stat)):
            yield from _move(f"{path}/{inner}", os.path.join(place, inner))


def _folders_of(standing: Iterable[str], path: str) -> Iterator[str]:
    """Folders below `path` in which something stood, as paths below it."""
    start = len(path) + 1
    for other in standing:
        if other.startswith(f"{path}/"):
            parent = os.path.dirname(other[start:])
            while parent:
                yield parent
                parent = os.path.dirname(parent)


def below(path: str, place: str) -> Iterator[FileRecord]:
    """All files below a folder, as records without digest, each under its path in the plan."""
    for folder, name, stat in _walk(place):
        yield record_of("/".join(filter(None, (path, folder, name))), stat)


def _walk(place: str, keep: Iterable[str] | None = None) -> Iterator[tuple[str, str, Stat]]:
    """(folder below `place`, name, stat) of what is in a folder, links not followed.

    Folders are entered; with `keep` only those, and others are told like files, unless they are empty.
    """
    kept = None if keep is None else frozenset(keep)
    pending = [""]
    try:
        while pending:
            folder = pending.pop()
            with os.scandir(os.path.join(place, folder)) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    inner = f"{folder}/{entry.name}" if folder else entry.name
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if is_folder and (kept is None or inner in kept):
                        pending.append(inner)
                        continue
                    if is_folder and not os.listdir(entry.path):
                        continue
                    stat = entry.stat(follow_symlinks=False)
                    yield folder, entry.name, Stat(stat.st_size, stat.st_mtime_ns, stat.st_ino, is_folder)
    except OSError as error:
        raise disk_error("look at", error.filename or place, error) from error

"""Checksums of outputs for people and archives: of each file, after the success that made it.

They decide nothing: what is compared next time is the digest of the evidence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from treadle.base.disk import disk_error
from treadle.engine.backend import Witnessed
from treadle.engine.witness import agrees
from treadle.plan.task import ScheduledTask
from treadle.records.event import FileRecord

_BLOCK = 1 << 20

# A path of the plan, or a file below one, and `sha256:...`.
Checksum = tuple[str, str]


class Summing(Struct, frozen=True):
    """Outputs whose checksums nobody took yet: each with where it stands, and those that the job took."""

    algorithm: str
    paths: tuple[tuple[str, str], ...]
    taken: tuple[Checksum, ...] = ()

    def sums(self) -> tuple[Checksum, ...]:
        """All of them, by path. Raises `DiskError`."""
        found = [
            (one, f"{self.algorithm}:{_sum(file, self.algorithm)}")
            for path, place in self.paths
            for one, file in _files(path, place)
        ]
        return tuple(sorted((*self.taken, *found)))


def summing(
    task: ScheduledTask,
    after: Mapping[str, FileRecord],
    places: Mapping[str, str],
    written: Witnessed | None,
) -> Summing | None:
    """What is to be summed of the outputs as they are `after` a success; `written` is what the job noted."""
    algorithm = task.policy.checksum
    if not algorithm:
        return None
    taken = dict(_by_job(task, after, written)) if written is not None else {}
    left = tuple((path, places[path]) for path in after if path not in taken)
    return Summing(algorithm, left, tuple(taken.items()))


def _by_job(task: ScheduledTask, after: Mapping[str, FileRecord], written: Witnessed) -> Iterator[Checksum]:
    for note in written.outputs:
        path = task.outputs[note.index] if 0 <= note.index < len(task.outputs) else ""
        record = after.get(path)
        if record is not None and note.checksum and not record.folder and agrees(record, note):
            yield path, f"{task.policy.checksum}:{note.checksum}"


def _files(path: str, place: str) -> Iterator[Checksum]:
    """The file, or all files below a folder; links in it are not followed."""
    if not os.path.isdir(place):
        yield path, place
        return
    for folder, folders, names in os.walk(place):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            if os.path.isfile(file) and not os.path.islink(file):
                yield f"{path}/{os.path.relpath(file, place)}", file


def _sum(place: str, algorithm: str) -> str:
    import hashlib  # it loads OpenSSL: not for runs that do without

    summed = hashlib.new(algorithm, usedforsecurity=False)  # md5 is no promise, and some systems forbid it so
    try:
        with open(place, "rb", buffering=0) as file:
            while block := file.read(_BLOCK):
                summed.update(block)
    except (OSError, ValueError) as error:
        raise disk_error("read", place, error) from error
    return summed.hexdigest()


def large(paths: Iterable[str], after: Mapping[str, FileRecord], most: int) -> bool:
    """Whether summing these outputs would hold the loop up: folders, or more than `most` bytes in all."""
    records = [after[path] for path in paths]
    return any(one.folder for one in records) or sum(one.size for one in records) > most

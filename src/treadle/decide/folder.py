"""A folder as one stat: what in it counts, and figures that change when anything that counts does."""

from __future__ import annotations

import os
from collections.abc import Collection

from treadle.base.digest import ARTIFACT_STATE, blake2b
from treadle.base.files import Stat, disk_error
from treadle.base.layout import STATE
from treadle.plan.task import ScheduledTask

_BESIDE = ARTIFACT_STATE.encode()


def own_below(task: ScheduledTask, place: str, workdir: str) -> tuple[str, ...]:
    """What does not count in the folder at `place` when `task` reads it: its own outputs, log and benchmark,
    and our records, as paths below the folder. (`results` as the input of a task that writes
    `results/all.html`: else it could never be up to date.)
    """
    inside = os.path.join(os.path.normpath(place), "")
    own = (*task.outputs, task.log, task.benchmark, STATE)
    places = [os.path.normpath(os.path.join(workdir, path)) for path in own if path]
    return tuple([one[len(inside) :] for one in places if one.startswith(inside)])


def folder_stat(place: str, without: Collection[str] = ()) -> Stat:
    """The bytes of all files below, the newest of their times, and instead of an inode a hash over all names,
    sizes, times and inodes: the folder's own say nothing of a file that is written anew inside it.

    Links are not followed; what stands beside artifacts of steps does not count. Raises `DiskError`.
    """
    size = newest = 0
    lines: list[bytes] = []
    left_out = frozenset(map(os.fsencode, without))
    root, pending = os.fsencode(place), [b""]
    try:
        while pending:
            below = pending.pop()
            with os.scandir(os.path.join(root, below)) as entries:
                for entry in entries:
                    name = below + entry.name
                    if entry.name == _BESIDE or name in left_out:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(name + b"/")
                        continue
                    stat = entry.stat(follow_symlinks=False)
                    size += stat.st_size
                    newest = max(newest, stat.st_mtime_ns)
                    lines.append(b"%b\0%d %d %d\0" % (name, stat.st_size, stat.st_mtime_ns, stat.st_ino))
    except OSError as error:
        raise disk_error("look at", os.fsdecode(error.filename or place), error) from error
    listing = blake2b(b"".join(sorted(lines)), digest_size=8).digest()
    return Stat(size, newest, int.from_bytes(listing) >> 1, True)

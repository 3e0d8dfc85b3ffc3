"""One look at one path: its stat, and its content only where the stat proves nothing.

Equal (size, mtime, inode) is equal content, unless the file was younger than two seconds when it was
looked at: file systems keep times as coarsely as that (FAT: 2 s), so a second write may hide behind an
equal time. A folder is looked at through all that is in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from treadle.base.files import Stat, digest_file, digest_folder, look
from treadle.base.layout import environments, is_artifact_record, pins_folder
from treadle.decide.folder import folder_stat, own_below
from treadle.plan.task import ScheduledTask
from treadle.plan.tokens import MARK, bind
from treadle.records.event import FileRecord

SETTLED_AFTER = 2_000_000_000  # nanoseconds

# Path of a plan (or a script's, with its tokens) -> its record; None: it is not there.
Look = Callable[[str], FileRecord | None]


def place_of(path: str, workdir: str, flowdir: str = "") -> str:
    """Where `path` of a plan stands: relative ones from the work folder, tokens filled."""
    if MARK in path:
        folders = {"workdir": workdir, "flowdir": flowdir or workdir, "environments": environments(workdir)}
        path = bind(path, {**folders, "pins": pins_folder()})
    # As os.path.join, which takes five times as long: every look comes through here.
    if path[:1] == "/" or not workdir:
        return path
    return workdir + path if workdir[-1] == "/" else f"{workdir}/{path}"


def look_at(
    path: str,
    known: FileRecord | None = None,
    limit: int | None = None,
    workdir: str = "",
    *,
    flowdir: str = "",
    reader: ScheduledTask | None = None,
) -> FileRecord | None:
    """The record of `path` as it stands now; None when it is not there.

    The digest of `known` is taken over where its stat proves it; else the content is read, unless it is a
    file of more than `limit` bytes. When `path` is a folder that the task `reader` reads, the task's own
    outputs in it do not count. Raises `DiskError`.
    """
    place = place_of(path, workdir, flowdir)
    stat, without = look(place), ()  # type: Stat | None, tuple[str, ...]
    if stat is None:
        return None
    if stat.folder:
        without = own_below(reader, place, workdir) if reader is not None else ()
        stat = folder_stat(place, without)
    if known is not None and proves(known, stat):
        return known if known.path == path else record_of(path, stat, known.digest)
    if not readable(stat, limit):
        return record_of(path, stat)
    now = time.time_ns()
    return record_of(path, stat, digest_of(place, stat.folder, limit, without), now)


def looker(task: ScheduledTask, known: Look, workdir: str, flowdir: str = "") -> Look:
    """A look at the disk with the eyes of one task: its digest limit, and its own outputs left out of the
    folders that it reads. `known` are records from before.
    """
    limit, script = task.policy.digest_limit, task.command.script_file
    own = frozenset(task.outputs)

    def at(path: str) -> FileRecord | None:
        if path == script:
            return look_at(path, known(path), None, workdir, flowdir=flowdir)
        return look_at(path, known(path), limit, workdir, reader=None if path in own else task)

    return at


def digest_of(place: str, folder: bool, limit: int | None, without: Collection[str] = ()) -> str:
    """The digest of a file or folder; of the record of an artifact that of what it tells of. Raises
    `DiskError`."""
    if not folder and is_artifact_record(place):
        from treadle.decide.artifact import digest_record  # workflows without steps do without

        return digest_record(place)
    return digest_folder(place, limit, without) if folder else digest_file(place)


def proves(known: FileRecord, stat: Stat | FileRecord) -> bool:
    """The content behind `stat` is what `known` holds the digest of."""
    return (
        known.mtime == stat.mtime
        and known.size == stat.size
        and known.inode == stat.inode
        and known.folder == stat.folder
        and not known.recent
        and known.digest != ""
    )


def readable(stat: Stat | FileRecord, limit: int | None) -> bool:
    """Content of this size is read. In a folder the limit holds for each file by itself."""
    return limit is None or stat.folder or stat.size <= limit


def record_of(path: str, stat: Stat | FileRecord, digest: str = "", now: int = 0) -> FileRecord:
    """A stat as a record; `now` (nanoseconds) is when its content was read, 0 where it was not."""
    recent = now != 0 and now - stat.mtime < SETTLED_AFTER
    return FileRecord(path, stat.size, stat.mtime, stat.inode, digest, recent, stat.folder)

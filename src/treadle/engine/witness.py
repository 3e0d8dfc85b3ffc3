"""What a job noted of its own files, held against what is seen of them from here.

A job takes the digests of what it made, so that the driver need not read it; they count where size and time
are the same from here. On a slow file system they come to be so only after a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from treadle.decide.look import readable, record_of
from treadle.engine.backend import Witnessed, Written
from treadle.plan.task import ScheduledTask
from treadle.records.event import FileRecord

_SECOND = 1_000_000_000
_ABSENT, _FOLDER = "-", "d"


def with_digests(
    task: ScheduledTask, after: dict[str, FileRecord], written: Witnessed
) -> tuple[dict[str, FileRecord], tuple[str, ...]]:
    """The outputs with the digests that the job took; and those that do not look as it left them."""
    found = dict(after)
    lagging: list[str] = []
    limit = task.policy.digest_limit
    for path, note in _by_path(task.outputs, written.outputs):
        record = after.get(path)
        if record is None or note.kind == _ABSENT:
            continue
        if not agrees(record, note):
            lagging.append(path)
        elif note.digest and not record.digest and readable(record, limit):
            # It was read when the job ended; what was so young then may have been written once more.
            read = int(written.end * _SECOND) if written.end is not None else record.mtime
            found[path] = record_of(path, record, note.digest, read)
    return found, tuple(lagging)


def moved_inputs(
    task: ScheduledTask, before: Mapping[str, FileRecord], written: Witnessed
) -> tuple[str, ...]:
    """Inputs, and the script, that were others when the job began than when it was sent off."""
    return tuple(
        path for path, note in _by_path(_read(task), written.inputs) if not _same(before.get(path), note)
    )


def seen_by_job(
    task: ScheduledTask, now: Mapping[str, FileRecord], written: Witnessed
) -> dict[str, FileRecord]:
    """The inputs as a job found them that an earlier driver sent off; `now` they look like this.

    One that is another by now has no inode and no digest: nobody knows what was in it.
    """
    found = dict(now)
    for path, note in _by_path(_read(task), written.inputs):
        if _same(now.get(path), note):
            continue
        if note.kind == _ABSENT:
            found.pop(path, None)
        else:
            found[path] = FileRecord(path, note.size, note.mtime, 0, folder=note.kind == _FOLDER)
    return found


def agrees(record: FileRecord, note: Written) -> bool:
    """Whether a file looks from here as the job saw it. Of a folder no stat is noted that could be compared;
    some file systems keep whole seconds, and are asked through caches that do not."""
    if record.folder or note.kind == _FOLDER:
        return record.folder == (note.kind == _FOLDER)
    if record.size != note.size:
        return False
    if record.mtime == note.mtime:
        return True
    whole = not record.mtime % _SECOND or not note.mtime % _SECOND
    return whole and record.mtime // _SECOND == note.mtime // _SECOND


def _same(record: FileRecord | None, note: Written) -> bool:
    if record is None or note.kind == _ABSENT:
        return record is None and note.kind == _ABSENT
    return agrees(record, note)


def _read(task: ScheduledTask) -> tuple[str, ...]:
    script = task.command.script_file
    return (*task.inputs, script) if script else task.inputs


def _by_path(paths: tuple[str, ...], notes: Iterable[Written]) -> Iterator[tuple[str, Written]]:
    return ((paths[note.index], note) for note in notes if 0 <= note.index < len(paths))

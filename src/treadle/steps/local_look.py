"""What stands at an output path on a plain file system, in the eyes of one identity."""

from __future__ import annotations

import os
from collections.abc import Callable

from treadle.base.disk import disk_error
from treadle.base.files import is_there
from treadle.base.layout import ArtifactPlaces
from treadle.steps.lease_file import Held
from treadle.steps.local_move import finish, in_place
from treadle.steps.local_output import output_of
from treadle.steps.local_record import Filed, read_filed
from treadle.steps.record import ArtifactRecord, ArtifactState, ArtifactStatus, Seen
from treadle.steps.record_file import TornRecordError, decode_status

_LONGEST_STATUS = 1 << 20  # bytes

NOTHING = Seen(ArtifactState.ABSENT)


def look(places: ArtifactPlaces, identity: str) -> tuple[Seen, Filed | None]:
    """What is seen, and the record file that it was seen by. Raises `DiskError`, `RecordError`."""
    stood = read_filed(places.record, places.path)
    problem, inode = "", 0
    if stood is not None:
        if stood.record is None:
            problem = stood.problem
        else:
            problem, inode = output_of(places.path, stood.record, thoroughly=not stood.sealed)
            if not problem and inode == stood.placed.inode:
                return _complete(stood.record, identity), stood
    pending = read_filed(places.pending, places.path) if is_there(places.pending) else None
    if pending is not None and pending.record is not None and in_place(places, pending):
        return _complete(pending.record, identity), pending
    if stood is None:
        status = status_of(places, identity)
        return (NOTHING if status is None else Seen(ArtifactState.ABSENT, status=status)), None
    if stood.record is not None and not problem:  # copied here: other inodes, the same content
        return _complete(stood.record, identity), stood
    return Seen(ArtifactState.TORN, stood.record, status_of(places, identity), problem), stood


def nothing_there(places: ArtifactPlaces) -> bool:
    """Whether there is neither a pending record nor a record, as before most attempts.

    In this order: a pending one that was not there yet cannot have become the record by then. What cannot be
    looked at counts as not there: for who has made a lease beside them.
    """
    return not is_there(places.pending) and not is_there(places.record)


def mend(places: ArtifactPlaces, current: Callable[[ArtifactPlaces], Held | None]) -> None:
    """Finish a pending publication, unless the holder of the `current` lease is at it this moment."""
    pending = read_filed(places.pending, places.path)
    if pending is None or pending.record is None:
        return
    held = current(places)
    if held is not None and held.token == pending.placed.token:
        return
    try:
        finish(places, pending)
    except OSError as error:
        raise disk_error("publish", places.path, error) from error


def _complete(record: ArtifactRecord, identity: str) -> Seen:
    same = record.identity == identity
    return Seen(ArtifactState.COMPLETE if same else ArtifactState.OTHER, record)


def status_of(places: ArtifactPlaces, identity: str) -> ArtifactStatus | None:
    """The status of the last attempt, if it was one at this identity. Raises `DiskError`, `RecordError`."""
    file = places.status
    if not is_there(file):  # the folder could be looked into, for the record
        return None
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = decode_status(os.read(fd, _LONGEST_STATUS), file)
        finally:
            os.close(fd)
    except (FileNotFoundError, NotADirectoryError, TornRecordError):
        return None
    except OSError as error:
        raise disk_error("read", file, error) from error
    return status if status.identity == identity else None

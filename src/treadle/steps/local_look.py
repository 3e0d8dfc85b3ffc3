"""What stands at an output path on a plain file system, in the eyes of one identity."""

from __future__ import annotations

from collections.abc import Callable

from treadle.base.disk import disk_error
from treadle.base.layout import ArtifactPlaces
from treadle.steps.lease_file import Held
from treadle.steps.local_move import finish, in_place
from treadle.steps.local_output import output_of
from treadle.steps.local_record import Filed, read_filed
from treadle.steps.record import ArtifactRecord, ArtifactState, ArtifactStatus, Seen
from treadle.steps.record_file import TornRecordError, decode_status


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
    pending = read_filed(places.pending, places.path)
    if pending is not None and pending.record is not None and in_place(places, pending):
        return _complete(pending.record, identity), pending
    if stood is None:
        return Seen(ArtifactState.ABSENT, status=_status(places, identity)), None
    if stood.record is not None and not problem:  # copied here: other inodes, the same content
        return _complete(stood.record, identity), stood
    return Seen(ArtifactState.TORN, stood.record, _status(places, identity), problem), stood


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


def _status(places: ArtifactPlaces, identity: str) -> ArtifactStatus | None:
    """The status of the last attempt, if it was one at the same identity."""
    try:
        with open(places.status, "rb", buffering=0) as file:
            status = decode_status(file.read(), places.status)
    except (FileNotFoundError, NotADirectoryError, TornRecordError):
        return None
    except OSError as error:
        raise disk_error("read", places.status, error) from error
    return status if status.identity == identity else None

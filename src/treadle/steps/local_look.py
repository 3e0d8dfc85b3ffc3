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


def look(
    places: ArtifactPlaces, identity: str, current: Callable[[ArtifactPlaces], Held | None] | None
) -> tuple[Seen, Filed | None]:
    """What is seen, and the record file that it was seen by.

    With `current`, which tells the lease that is held now, a pending record is finished.
    """
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
    if pending is not None and pending.record is not None:
        if current is not None and _finished(places, pending, current(places)):
            return look(places, identity, None)
        if in_place(places, pending):
            return _complete(pending.record, identity), pending
    if stood is None:
        return Seen(ArtifactState.ABSENT, status=_status(places, identity)), None
    if stood.record is not None and not problem:  # copied here: other inodes, the same content
        return _complete(stood.record, identity), stood
    seen = Seen(ArtifactState.TORN, stood.record, _status(places, identity), problem)
    return seen, stood


def _complete(record: ArtifactRecord, identity: str) -> Seen:
    same = record.identity == identity
    return Seen(ArtifactState.COMPLETE if same else ArtifactState.OTHER, record)


def _finished(places: ArtifactPlaces, pending: Filed, held: Held | None) -> bool:
    """Finish a pending record, unless who wrote it is at it this moment."""
    if held is not None and held.token == pending.placed.token:
        return False
    try:
        return finish(places, pending)
    except OSError as error:
        raise disk_error("publish", places.path, error) from error


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

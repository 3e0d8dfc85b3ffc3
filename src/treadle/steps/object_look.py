"""What stands at an output path in an object store."""

from __future__ import annotations

from treadle.base.layout import ArtifactPlaces
from treadle.steps.object_bucket import Bucket
from treadle.steps.object_record import read_record
from treadle.steps.object_url import spot
from treadle.steps.record import ArtifactRecord, ArtifactState, ArtifactStatus, Kind, Seen
from treadle.steps.record_file import TornRecordError, decode_status


def look(bucket: Bucket, path: str, identity: str, *, fresh: bool = False) -> Seen:
    """Two requests: for the record, and for what it tells of (or for the status of a failed attempt)."""
    places = ArtifactPlaces(path)
    found = bucket.get(spot(places.record).key)
    if found is None:
        return Seen(ArtifactState.ABSENT, status=None if fresh else _status(bucket, places, identity))
    try:
        record = read_record(found, places)
    except TornRecordError as error:
        return Seen(ArtifactState.TORN, problem=str(error))
    problem = what_is_torn(bucket, record)
    if problem:
        return Seen(ArtifactState.TORN, record, _status(bucket, places, identity), problem)
    return Seen(ArtifactState.COMPLETE if record.identity == identity else ArtifactState.OTHER, record)


def what_is_torn(bucket: Bucket, record: ArtifactRecord) -> str:
    """By one request: a file is told by its size, a folder by its first thousand objects. Empty: nothing."""
    if not record.at or record.kind is Kind.NOTHING:
        return ""
    key = spot(record.at).key
    if record.kind is Kind.FILE:
        size = bucket.size(key)
        if size is None:
            return f"{record.at} is gone"
        return "" if size == record.size else f"{record.at} has {size} bytes, not {record.size}"
    page, whole = bucket.page(key)
    size = sum(entry.size for entry in page)
    if size >= record.size or not whole:
        return ""
    return f"{record.at} holds {size} bytes, not {record.size}" if page else f"{record.at} is gone"


def _status(bucket: Bucket, places: ArtifactPlaces, identity: str) -> ArtifactStatus | None:
    found = bucket.get(spot(places.status).key)
    try:
        status = decode_status(found.data, places.status) if found else None
    except TornRecordError:
        return None  # only people read it
    return status if status is not None and status.identity == identity else None

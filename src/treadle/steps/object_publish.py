"""How what was made becomes the artifact: brought to a folder of its own, then named by the record.

The record is created where there is none, and written over only in the version that is to be replaced.
So of two who publish at a time one wins, even if both believe that the lease is theirs.
"""

from __future__ import annotations

from msgspec.structs import replace

from treadle.base.errors import DiskError, StepError
from treadle.base.layout import ArtifactPlaces
from treadle.steps.object_bucket import Bucket, ChangedError
from treadle.steps.object_lease import ObjectLease
from treadle.steps.object_look import what_is_torn
from treadle.steps.object_record import attempt_of, readable
from treadle.steps.object_upload import upload
from treadle.steps.object_url import spot
from treadle.steps.record import ArtifactRecord, Kind
from treadle.steps.record_file import encode_record

_TRIES = 10


def folder_of(path: str, attempt: str) -> str:
    """The URL below which one attempt at `path`, and no other, writes."""
    return f"{path}/{attempt}"


def publish(
    bucket: Bucket, lease: ObjectLease, work: str, record: ArtifactRecord, replaces: ArtifactRecord | None
) -> ArtifactRecord:
    """Publish: what counts in the end. The loser's objects are removed, and what attempts before it left."""
    ours = _brought(bucket, lease, work, record)
    counts = _named(bucket, lease, ours, replaces)
    try:
        if counts is ours:
            _sweep(bucket, lease, record.path, attempt_of(replaces))
        elif attempt_of(counts) != lease.attempt:
            remove_below(bucket, folder_of(record.path, lease.attempt))
            lease.keep(lease.earlier)
    except DiskError:
        pass  # the artifact is complete; the lease tells the next attempt what to remove
    return counts


def _brought(bucket: Bucket, lease: ObjectLease, work: str, record: ArtifactRecord) -> ArtifactRecord:
    """Bring what was made into the store: the record with all that is known of it now."""
    at = folder_of(record.path, lease.attempt)
    name = ArtifactPlaces(record.path).name
    made = upload(bucket, work, spot(at).key, name)
    if made.kind is Kind.NOTHING:  # unless the function wrote to the store itself
        sizes = [entry.size for entry in bucket.entries(spot(at).key)]
        kind, at = (Kind.FOLDER, at) if sizes else (Kind.NOTHING, "")
        return replace(record, at=at, kind=kind, size=sum(sizes), digest="")
    if made.kind is Kind.FILE:
        at = f"{at}/{name}"
    return replace(record, at=at, kind=made.kind, size=made.size, digest=made.digest)


def _named(
    bucket: Bucket, lease: ObjectLease, ours: ArtifactRecord, replaces: ArtifactRecord | None
) -> ArtifactRecord:
    """Make our record the one that counts, or find the one that does."""
    places = ArtifactPlaces(ours.path)
    key = spot(places.record).key
    data = encode_record(ours)
    for _ in range(_TRIES):
        lease.check()
        found = bucket.get(key)
        if found is not None and found.data == data:  # ours, and the answer was lost
            return ours
        other = readable(found, places)
        if other is not None and other != replaces and not what_is_torn(bucket, other):
            if other.identity != ours.identity:
                raise _another(ours, other)
            return other
        try:
            if found is None:
                bucket.create(key, data)
            else:
                bucket.replace(key, data, found.version)
            return ours
        except ChangedError:
            pass  # another was faster: look at theirs
    raise DiskError(
        f"cannot write '{bucket.url(key)}': it changes all the time",
        hint="look who else writes there, and run again",
    )


def _sweep(bucket: Bucket, lease: ObjectLease, path: str, stays: str) -> None:
    """Remove what earlier attempts left, but for the one just replaced: somebody may be reading it.

    None of them can still be published: the record is ours, and so is the lease.
    """
    for attempt in lease.earlier:
        if attempt != stays:
            remove_below(bucket, folder_of(path, attempt))
    remove_below(bucket, ArtifactPlaces(path).checkpoints)
    lease.keep((*(one for one in lease.earlier if one == stays), lease.attempt))


def remove_below(bucket: Bucket, url: str) -> None:
    """Remove all objects below a URL."""
    bucket.delete([entry.key for entry in bucket.entries(spot(url).key)])


def _another(ours: ArtifactRecord, other: ArtifactRecord) -> StepError:
    return StepError(
        f"step '{ours.name}': at {ours.path} stands the artifact of another identity"
        f" ({other.identity[:12]}), not of this one ({ours.identity[:12]})",
        hint="give it another path",
        code="artifact-drift",
    )

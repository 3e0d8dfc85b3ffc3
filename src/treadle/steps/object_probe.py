"""Whether a store keeps its word on conditional writes: tried out once, with an object of our own."""

from __future__ import annotations

from uuid import uuid4

from treadle.steps.object_bucket import Bucket, ChangedError, Version
from treadle.steps.object_errors import no_conditions


def refuse_without_conditions(bucket: Bucket, folder: str) -> None:
    """Raise `StepError` unless the store refuses to create what exists, and to replace what has changed.

    Writes a small object below `folder` and removes it. Many servers that speak S3 take the headers and
    do not look at them: only trying tells.
    """
    key = f"{folder}/probe.{uuid4().hex}" if folder else f"probe.{uuid4().hex}"
    try:
        first = bucket.create(key, b"1")
        bucket.replace(key, b"2", first)
        kept = _refused_create(bucket, key) and _refused_replace(bucket, key, first)
    except ChangedError:  # refuses what it should have taken
        kept = False
    except NotImplementedError:
        kept = False
    finally:
        bucket.delete([key])
    if not kept:
        raise no_conditions(bucket.root)


def _refused_create(bucket: Bucket, key: str) -> bool:
    try:
        bucket.create(key, b"3")
    except ChangedError:
        return True
    return False


def _refused_replace(bucket: Bucket, key: str, old: Version) -> bool:
    try:
        bucket.replace(key, b"4", old)
    except ChangedError:
        return True
    return False

"""Artifacts on a server that speaks S3, made as a step makes them, by a clock of the test's."""

from __future__ import annotations

import pathlib
from itertools import count

from s3_world import BUCKET
from treadle.steps.record import ArtifactRecord, Owner, Provenance

ID = "0123456789abcdef0123456789abcdef"
NAMES = count()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def a_store(clock: Clock, **options: bool):  # type: ignore[no-untyped-def]
    from treadle.steps.object_store import ObjectStore

    return ObjectStore(f"s3://{BUCKET}", monotonic=clock, **options)


def owner(attempt: str) -> Owner:
    return Owner(host="elsewhere", pid=1, attempt=attempt)


def record(path: str, attempt: str = "run.1") -> ArtifactRecord:
    return ArtifactRecord(identity=ID, name="model", path=path, provenance=Provenance(attempt=attempt))


def make(store, path: str, text: bytes = b"made", attempt: str = "run.1", replaces=None):  # type: ignore[no-untyped-def]
    lease = store.claim(path, owner(attempt))
    assert not isinstance(lease, Owner)
    work = store.work(path, attempt)
    pathlib.Path(work).write_bytes(text)
    done = store.publish(lease, work, record(path, attempt), replaces=replaces)
    lease.release()
    return done

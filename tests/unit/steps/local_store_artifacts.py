"""Artifacts on plain file systems, made as a step makes them."""

from __future__ import annotations

from pathlib import Path

from treadle.steps.local_store import LocalStore
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactRecord, Owner
from treadle.steps.store import Lease

SAME = "a" * 32


def begin(store: LocalStore, path: Path, attempt: str = "r.1") -> tuple[Lease, Path]:
    lease = store.claim(str(path), this_owner(attempt))
    assert not isinstance(lease, Owner)
    return lease, Path(store.work(str(path), attempt))


def end(store: LocalStore, lease: Lease, work: Path, path: Path, **known: object) -> ArtifactRecord:
    try:
        record = ArtifactRecord(identity=SAME, name="train", path=str(path))
        return store.publish(lease, str(work), record, **known)  # type: ignore[arg-type]
    finally:
        lease.release()


def make(store: LocalStore, path: Path, content: bytes = b"hello", attempt: str = "r.1") -> ArtifactRecord:
    lease, work = begin(store, path, attempt)
    work.write_bytes(content)
    return end(store, lease, work, path)

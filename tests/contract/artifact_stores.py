"""The stores that are held to the contract of `ArtifactStore`: a further one joins the list."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import object_storages
import pytest

from treadle.steps.local_store import LocalStore
from treadle.steps.record import ArtifactRecord, Owner
from treadle.steps.store import ArtifactStore, Lease


class Clock:
    """Monotonic seconds that pass when a test says so. No two hosts agree on what they show."""

    def __init__(self, shows: float = 1000.0) -> None:
        self.shows = shows

    def __call__(self) -> float:
        return self.shows

    def wait(self, seconds: float) -> None:
        self.shows += seconds


class Beaten(ArtifactStore, Protocol):
    """A store whose leases beat when `beat` is called: it was made with a clock of the test's."""

    def beat(self) -> None: ...


class Storage(Protocol):
    """One place for artifacts, with as many stores on it as a test wants: each is another observer."""

    forks: bool
    """Whether forked children may use it, too."""

    def store(self, clock: Callable[[], float]) -> Beaten:
        """One more store on this place, with nothing in common with the others but the place."""
        ...

    def path(self, name: str) -> str:
        """The output path of an artifact here."""
        ...

    def put(self, place: str, data: bytes) -> None:
        """Write a file beside an artifact, as another Treadle would."""
        ...

    def lose(self, record: ArtifactRecord) -> None:
        """Lose the output of an artifact, and nothing else."""
        ...

    def out(self) -> AbstractContextManager[None]:
        """Within: the storage cannot be reached."""
        ...

    def left(self) -> list[str]:
        """What stands here, but for folders of ours and finished artifacts with their records."""
        ...


class LocalStorage:
    """A folder."""

    forks = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "artifacts"

    def store(self, clock: Callable[[], float]) -> LocalStore:
        return LocalStore(clock)

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def put(self, place: str, data: bytes) -> None:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        Path(place).write_bytes(data)

    def lose(self, record: ArtifactRecord) -> None:
        os.unlink(record.path)

    @contextmanager
    def out(self) -> Iterator[None]:
        away = self.folder.with_name("unmounted")
        self.folder.rename(away)
        yield
        away.rename(self.folder)

    def left(self) -> list[str]:
        found = [
            path
            for path in self.folder.rglob("*")
            if ".treadle-artifacts" in path.parts or path.name.endswith(".failed")
        ]
        return sorted(
            str(path.relative_to(self.folder))
            for path in found
            if path.is_file() and not path.name.endswith(".json")
        )


def local(folder: Path, request: pytest.FixtureRequest) -> Storage:
    return LocalStorage(folder)


STORAGES: dict[str, Callable[[Path, pytest.FixtureRequest], Storage]] = {
    "local": local,
    "memory": object_storages.memory,
    "s3": object_storages.s3,
}


def owner(attempt: str, *, host: str = "far", pid: int = 1) -> Owner:
    """Somebody on another host, of whose process nothing can be seen from here."""
    return Owner(host=host, boot="b", pid=pid, user="somebody", attempt=attempt)


def claimed(store: ArtifactStore, path: str, attempt: str) -> Lease:
    """The lease, which nobody holds."""
    lease = store.claim(path, owner(attempt))
    assert not isinstance(lease, Owner), f"held by {lease}"
    return lease


def record_of(path: str, attempt: str, identity: str = "a" * 32) -> ArtifactRecord:
    """What an attempt hands in to be published; `wall` tells one attempt's from another's."""
    return ArtifactRecord(identity=identity, name="train", path=path, wall=float(sum(attempt.encode())))


def made(
    store: ArtifactStore,
    path: str,
    attempt: str = "r.1",
    content: str | None = "hello",
    *,
    identity: str = "a" * 32,
    replaces: ArtifactRecord | None = None,
) -> ArtifactRecord:
    """An artifact made from the claim to the release; `content` None: nothing is made at its path."""
    lease = claimed(store, path, attempt)
    work = store.work(path, attempt)
    if content is not None:
        Path(work).write_text(content)
    record = store.publish(lease, work, record_of(path, attempt, identity), replaces=replaces)
    lease.release()
    return record


def forked(act: Callable[[], object]) -> int:
    """A child process that does `act` and ends with 0; with another code when that raises."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return child

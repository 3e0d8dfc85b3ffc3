"""Object stores under the contract of `ArtifactStore`: `memory://`, and a server that speaks S3."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from s3_world import BUCKET, Line, settings
from treadle.steps.object_bucket import Bucket
from treadle.steps.object_store import ObjectStore
from treadle.steps.object_url import spot
from treadle.steps.record import ArtifactRecord

_numbers = count()


class ObjectStorage:
    """A prefix in a bucket."""

    forks = False

    def __init__(self, root: str, folder: Path) -> None:
        self.root = root
        self.prefix = f"{root}/{folder.name} {next(_numbers)}".replace(":///", "://")

    def store(self, clock: Callable[[], float]) -> ObjectStore:
        return ObjectStore(self.root, monotonic=clock)

    def path(self, name: str) -> str:
        return f"{self.prefix}/{name}"

    def put(self, place: str, data: bytes) -> None:
        Bucket(self.root).put(spot(place).key, data)

    def lose(self, record: ArtifactRecord) -> None:
        Bucket(self.root).delete([spot(record.at).key])

    @contextmanager
    def out(self) -> Iterator[None]:
        pytest.skip("the memory of a process is never out")
        yield

    def left(self) -> list[str]:
        """Leases that are held, what was left of attempts beside an artifact, and what is neither."""
        bucket = Bucket(self.root)
        below = spot(self.prefix).key
        found = sorted(entry.key.removeprefix(f"{below}/") for entry in bucket.entries(below))
        told = {key: bucket.get(f"{below}/{key}") for key in found if ".treadle-artifacts/" in key}
        texts = {key: json.loads(one.data) for key, one in told.items() if one is not None}
        known = {attempt for text in texts.values() if "claim" in text for attempt in text["attempts"]}
        free = {key for key, text in texts.items() if text.get("free") or key.endswith(".json")}
        return [key for key in found if key not in free and not known & set(key.split("/"))]


class S3Storage(ObjectStorage):
    """The same on a server, over a way to it that can be cut."""

    def __init__(self, folder: Path, port: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(f"s3://{BUCKET}", folder)
        self.line = Line(port)
        for name, value in settings(self.line.port).items():
            patch.setenv(name, value)

    @contextmanager
    def out(self) -> Iterator[None]:
        self.line.cut()
        yield
        self.line.mend()


def memory(folder: Path, request: pytest.FixtureRequest) -> ObjectStorage:
    _stage(folder, request)
    return ObjectStorage("memory://", folder)


def s3(folder: Path, request: pytest.FixtureRequest) -> S3Storage:
    patch = _stage(folder, request)
    made = S3Storage(folder, request.getfixturevalue("s3_port"), patch)
    request.addfinalizer(made.line.cut)
    return made


def _stage(folder: Path, request: pytest.FixtureRequest) -> pytest.MonkeyPatch:
    from treadle.steps.staging import STAGING

    pytest.importorskip("obstore", reason="needs obstore: pip install 'treadle[remote]'")
    patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    STAGING.clear()
    patch.setenv("TREADLE_STAGING", str(folder / "staging"))
    request.addfinalizer(STAGING.clear)
    return patch

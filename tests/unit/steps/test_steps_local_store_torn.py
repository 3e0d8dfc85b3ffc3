"""Artifacts on plain file systems: what a crash of the machine tears is seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from local_store_artifacts import SAME, begin, end, make

from treadle.base.layout import ArtifactPlaces
from treadle.steps.local_output import SMALL
from treadle.steps.local_store import LocalStore
from treadle.steps.record import ArtifactState, ArtifactStatus, Standing


def test_a_small_file_that_lost_its_content_is_seen_by_its_digest(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    make(store, path, b"hello")
    with open(path, "r+b") as file:
        file.write(b"\0\0\0\0\0")
    seen = LocalStore().look(str(path), SAME)
    assert seen.state is ArtifactState.TORN
    assert "content" in seen.problem
    assert make(store, path, b"hello", "r.2").size == 5
    assert path.read_bytes() == b"hello"


def test_a_file_that_lost_its_end_is_seen_by_its_size(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    make(store, path, b"x" * (SMALL + 1))
    os.truncate(path, SMALL)
    seen = store.look(str(path), SAME)
    assert (seen.state, seen.problem) == (
        ArtifactState.TORN,
        f"'{path}' has {SMALL} bytes, not {SMALL + 1}",
    )


def test_a_folder_that_lost_a_file_is_seen(store: LocalStore, tmp_path: Path) -> None:
    for size in (10, SMALL + 1):  # with a digest, and without
        path = tmp_path / f"train-{size}"
        lease, work = begin(store, path)
        work.mkdir()
        (work / "one").write_bytes(b"1" * size)
        (work / "two").write_bytes(b"2")
        record = end(store, lease, work, path)
        assert bool(record.digest) == (size < SMALL)
        (path / "two").unlink()
        assert store.look(str(path), SAME).state is ArtifactState.TORN


@pytest.mark.parametrize("left", [0, 20])
def test_a_torn_record_counts_for_nothing_and_is_replaced(
    store: LocalStore, tmp_path: Path, left: int
) -> None:
    path = tmp_path / "train"
    make(store, path)
    os.truncate(ArtifactPlaces(str(path)).record, left)
    seen = store.look(str(path), SAME)
    assert (seen.state, seen.record) == (ArtifactState.TORN, None)
    assert ArtifactPlaces(str(path)).record in seen.problem
    assert list(store.records(str(tmp_path))) == []
    again = make(store, path, b"again", "r.2")
    assert store.look(str(path), SAME).record == again
    assert path.read_bytes() == b"again"


@pytest.mark.parametrize("left", [0, 20])
def test_a_pending_record_that_was_torn_is_in_nobodys_way(
    store: LocalStore, tmp_path: Path, left: int
) -> None:
    path = tmp_path / "train"
    places = ArtifactPlaces(str(path))
    os.makedirs(places.folder)
    Path(places.pending).write_bytes(b'{"format":1,"identity":"abc'[:left])
    assert store.look(str(path), SAME, mend=True).state is ArtifactState.ABSENT
    record = make(store, path)
    assert store.look(str(path), SAME).record == record
    assert not os.path.exists(places.pending)


def test_a_torn_status_is_none(store: LocalStore, tmp_path: Path) -> None:
    path = str(tmp_path / "train")
    store.tell(path, ArtifactStatus(identity=SAME, state=Standing.FAILED))
    os.truncate(ArtifactPlaces(path).status, 10)
    assert store.look(path, SAME).status is None


def test_what_is_known_to_be_on_the_disk_is_not_digested_again(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    record = make(store, path, b"hello")
    file = Path(ArtifactPlaces(str(path)).record)
    assert file.stat().st_mode & 0o222
    store.sync()
    assert not file.stat().st_mode & 0o222
    with open(path, "r+b") as out:
        out.write(b"HELLO")
    assert store.look(str(path), SAME).record == record  # the same size is enough now
    os.truncate(path, 1)
    assert store.look(str(path), SAME).state is ArtifactState.TORN


def test_many_artifacts_are_synced_at_once_and_vanished_ones_are_no_trouble(
    store: LocalStore, tmp_path: Path
) -> None:
    for n in range(30):
        make(store, tmp_path / f"train-{n}")
    (tmp_path / "train-3").unlink()
    store.sync()
    sealed = [name for name in (tmp_path / ".treadle-artifacts").iterdir() if name.suffix == ".json"]
    assert len(sealed) == 30
    assert not any(one.stat().st_mode & 0o222 for one in sealed)


def test_what_has_no_digest_is_on_the_disk_before_its_record_is(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def noted(fd: int) -> None:
        synced.append(os.fstat(fd).st_ino)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    make(store, tmp_path / "small", b"x" * SMALL)
    assert synced == []
    make(store, tmp_path / "large", b"x" * (SMALL + 1))
    assert synced == [(tmp_path / "large").stat().st_ino]
    lease, work = begin(store, tmp_path / "folder")
    work.mkdir()
    (work / "one").write_bytes(b"x" * (SMALL + 1))
    end(store, lease, work, tmp_path / "folder")
    assert sorted(synced[1:]) == sorted(
        path.stat().st_ino for path in (tmp_path / "folder", tmp_path / "folder" / "one")
    )


def test_what_a_killed_run_did_not_sync_is_synced_by_the_next_one(store: LocalStore, tmp_path: Path) -> None:
    path = str(tmp_path / "train")
    make(LocalStore(), tmp_path / "train")
    store.look(path, SAME)
    store.sync()
    assert os.stat(ArtifactPlaces(path).record).st_mode & 0o222
    store.look(path, SAME, mend=True)
    store.sync()
    assert not os.stat(ArtifactPlaces(path).record).st_mode & 0o222

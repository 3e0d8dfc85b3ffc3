"""Artifacts on plain file systems: disks that refuse."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from local_store_artifacts import SAME, begin, end, make

from treadle.base.errors import DiskError
from treadle.base.layout import ArtifactPlaces
from treadle.steps.local_store import LocalStore
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactRecord, ArtifactState, Seen


@pytest.mark.parametrize("wanted", [False, True])
def test_a_disk_that_refuses_at_the_end_leaves_what_the_next_one_finishes(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    path = tmp_path / "train"
    old = make(store, path, b"old") if wanted else None
    lease, work = begin(store, path, "r.2")
    work.write_bytes(b"new")
    rename, record = os.rename, ArtifactRecord(identity=SAME, name="new", path=str(path))

    def refuse(one: str, other: str) -> None:
        if other.endswith(".json"):
            raise OSError(5, "Input/output error", other)
        rename(one, other)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(DiskError, match="Input/output error"):
        store.publish(lease, str(work), record, replaces=old)
    seen = store.look(str(path), SAME)
    assert seen.record is not None
    assert seen.record.name == "new"
    monkeypatch.undo()
    assert store.publish(lease, str(work), record, replaces=old).name == "new"
    lease.release()
    assert store.look(str(path), SAME).state is ArtifactState.COMPLETE
    assert path.read_bytes() == b"new"


def test_a_disk_that_refuses_in_the_middle_leaves_the_old_artifact(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train"
    old = make(store, path, b"old")
    lease, work = begin(store, path, "r.2")
    work.write_bytes(b"new")

    def refuse(one: str, other: str, **_: bool) -> None:
        raise OSError(5, "Input/output error", one)

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(DiskError, match="Input/output error"):
        end(store, lease, work, path, replaces=old)
    monkeypatch.undo()
    assert store.look(str(path), SAME) == Seen(ArtifactState.COMPLETE, old)
    assert (path.read_bytes(), work.read_bytes()) == (b"old", b"new")
    assert not os.path.exists(ArtifactPlaces(str(path)).pending)


def test_without_hard_links_a_file_is_published_all_the_same(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(one: str, other: str, **_: bool) -> None:
        raise PermissionError(1, "Operation not permitted", one)

    monkeypatch.setattr(os, "link", refuse)
    record = make(store, tmp_path / "train")
    assert store.look(record.path, SAME).record == record
    lease, work = begin(store, tmp_path / "nothing")
    nothing = end(store, lease, work, tmp_path / "nothing")
    assert store.look(nothing.path, SAME).record == nothing
    (tmp_path / "taken").write_text("somebody's own")
    make(store, tmp_path / "taken")
    assert (tmp_path / "taken.failed").read_text() == "somebody's own"


def test_a_full_disk_is_said_and_nothing_is_lost(store: LocalStore, tiny: Path) -> None:
    path = tiny / "train"
    old = make(store, path, b"old")
    lease, work = begin(store, path, "r.2")
    work.write_bytes(b"new")
    filler = tiny / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    record = ArtifactRecord(identity=SAME, name="train", path=str(path), code="c" * 9000)
    with pytest.raises(DiskError) as raised:
        store.publish(lease, str(work), record, replaces=old)
    assert raised.value.diagnostics[0].code == "disk-full"
    assert work.read_bytes() == b"new"
    assert path.read_bytes() == b"old"
    assert store.look(str(path), SAME).record == old
    filler.unlink()
    new = store.publish(lease, str(work), record, replaces=old)
    lease.release()
    assert store.look(str(path), SAME).record == new
    assert path.read_bytes() == b"new"


def test_a_full_disk_makes_no_half_lease(store: LocalStore, tiny: Path) -> None:
    path = tiny / "train"
    make(store, path)
    with open(tiny / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    with pytest.raises(DiskError) as raised:
        store.claim(str(path), this_owner("r.2"))
    assert raised.value.diagnostics[0].code == "disk-full"
    assert store.holder(str(path)) is None


def test_a_file_where_a_folder_is_needed_is_said(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "prefix").write_text("")
    path = str(tmp_path / "prefix" / "train")
    assert store.look(path, SAME).state is ArtifactState.ABSENT
    with pytest.raises(DiskError):
        store.claim(path, this_owner("r.1"))


def test_an_artifact_folder_that_was_removed_under_a_run_is_made_again(
    store: LocalStore, tmp_path: Path
) -> None:
    make(store, tmp_path / "one")
    shutil.rmtree(tmp_path / ".treadle-artifacts")
    record = make(store, tmp_path / "two")
    assert store.look(record.path, SAME).record == record

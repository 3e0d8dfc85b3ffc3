"""Artifacts on plain file systems: two at a time."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from local_store_artifacts import SAME, begin, end, make

from treadle.base.layout import ArtifactPlaces
from treadle.steps.local_move import settle_record
from treadle.steps.local_record import Placed, create_filed, encode_filed, read_filed
from treadle.steps.local_store import LocalStore
from treadle.steps.record import ArtifactRecord, ArtifactState, Kind


def test_a_publication_in_progress_is_left_to_who_is_at_it(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train"
    link, seen = os.link, []

    def slow(one: str, other: str, **known: Any) -> None:
        if other == str(path):
            seen.append(LocalStore().look(other, SAME, mend=True).state)
        link(one, other, **known)

    monkeypatch.setattr(os, "link", slow)
    record = make(store, path)
    assert seen == [ArtifactState.ABSENT]
    assert store.look(str(path), SAME).record == record


def test_a_record_that_somebody_else_finished_is_ours_all_the_same(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train"
    rename = os.rename

    def slow(old: str, new: str) -> None:
        monkeypatch.undo()
        rename(old, new)
        rename(old, new)  # this one is ours

    monkeypatch.setattr(os, "rename", slow)
    record = make(store, path)
    assert store.look(str(path), SAME).record == record


def test_where_nothing_was_made_the_record_itself_is_not_written_over(tmp_path: Path) -> None:
    places = ArtifactPlaces(str(tmp_path / "train"))
    os.makedirs(places.folder)
    records = [ArtifactRecord(identity=SAME, name=name, path=places.path) for name in ("one", "two")]
    done = []
    for record in records:
        placed = Placed(token=record.name)
        assert create_filed(places.pending, encode_filed(record, placed))
        done.append(settle_record(places, record, placed))
    assert done == [True, False]
    filed = read_filed(places.record, places.path)
    assert filed is not None
    assert filed.record == records[0]


def test_a_pending_record_that_replaces_another_one_than_stands_there_is_dropped(
    store: LocalStore, tmp_path: Path
) -> None:
    path = tmp_path / "train"
    record = make(store, path, b"stands")
    places = ArtifactPlaces(str(path))
    work = Path(store.work(str(path), "r.2"))
    work.write_bytes(b"odd")
    odd = ArtifactRecord(identity=SAME, name="odd", path=str(path), kind=Kind.FILE, size=3)
    placed = Placed(token="t", inode=work.stat().st_ino, work=work.name, over="another")
    assert create_filed(places.pending, encode_filed(odd, placed))
    assert store.look(str(path), SAME, mend=True).record == record
    assert make(store, path, b"second", "r.3") == record
    assert path.read_bytes() == b"stands"


def test_what_a_killed_rebuild_moved_aside_comes_back_where_the_new_one_is_lost(
    store: LocalStore, tmp_path: Path
) -> None:
    path = tmp_path / "train"
    old = make(store, path, b"old")
    places = ArtifactPlaces(str(path))
    filed = read_filed(places.record, places.path)
    assert filed is not None
    placed = Placed(token="t", inode=1, work="gone", over=filed.mark)
    new = ArtifactRecord(identity=SAME, name="new", path=str(path), kind=Kind.FILE, size=3)
    assert create_filed(places.pending, encode_filed(new, placed))
    os.makedirs(os.path.dirname(places.aside("t")))
    os.rename(path, places.aside("t"))
    assert store.look(str(path), SAME, mend=True).state is ArtifactState.TORN
    assert make(store, path, b"again", "r.3") == old
    assert path.read_bytes() == b"old"


def test_a_folder_that_goes_away_while_it_is_looked_at_is_not_there(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train"
    lease, work = begin(store, path)
    work.mkdir()
    (work / "one").write_text("1")
    end(store, lease, work, path)
    scandir = os.scandir

    def slow(where: Any) -> Any:
        monkeypatch.undo()
        shutil.rmtree(path)
        return scandir(where)

    monkeypatch.setattr(os, "scandir", slow)
    assert store.look(str(path), SAME).state is ArtifactState.TORN
    store.sync()

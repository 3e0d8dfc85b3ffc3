"""Artifacts that are not there, told from one list of the names beside them."""

from __future__ import annotations

import pathlib

import pytest

from treadle.base.layout import ArtifactPlaces
from treadle.steps import absent
from treadle.steps.absent import Absent


def missed(folder: pathlib.Path, many: int = absent._MANY) -> Absent:
    found = Absent()
    for number in range(many):
        found.note(f"{folder}/s{number}")
    return found


def test_a_few_looks_that_find_nothing_tell_nothing_of_others(tmp_path: pathlib.Path) -> None:
    assert not missed(tmp_path, absent._MANY - 1).surely(f"{tmp_path}/x")


def test_after_many_looks_the_rest_of_the_folder_is_known(tmp_path: pathlib.Path) -> None:
    found = missed(tmp_path)
    assert found.surely(f"{tmp_path}/x")
    assert not found.surely(f"{tmp_path}/other/x")


@pytest.mark.parametrize("what", ["record", "pending", "status", "lease"])
def test_whatever_stands_beside_an_artifact_it_is_looked_at(tmp_path: pathlib.Path, what: str) -> None:
    places = ArtifactPlaces(f"{tmp_path}/x")
    file = pathlib.Path(places.lease(1) if what == "lease" else getattr(places, what))
    file.parent.mkdir()
    file.touch()
    found = missed(tmp_path)
    assert not found.surely(places.path)
    assert found.surely(f"{tmp_path}/y")


def test_a_list_of_names_is_not_believed_for_long(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent, "_FRESH", -1.0)
    assert not missed(tmp_path).surely(f"{tmp_path}/x")


def test_a_folder_with_very_many_names_is_not_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent, "_MOST", 3)
    folder = pathlib.Path(ArtifactPlaces(f"{tmp_path}/x").folder)
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.json").touch()
    assert not missed(tmp_path).surely(f"{tmp_path}/x")

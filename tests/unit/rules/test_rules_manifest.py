"""What a checkpoint rule writes: read as it is meant, refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.base.errors import WorkflowError
from treadle.plan.discovered import Discovered
from treadle.rules.expand.manifest import read_manifest
from treadle.rules.pattern.constraint import constraint


def read(folder: Path, text: str, adds: tuple[str, ...] = (), **constraints: str) -> Discovered:
    (folder / "m.toml").write_text(text)
    return read_manifest(str(folder), "m.toml", adds, {n: constraint(c) for n, c in constraints.items()})


def refused(folder: Path, text: str, adds: tuple[str, ...] = (), **constraints: str) -> str:
    with pytest.raises(WorkflowError) as wrong:
        read(folder, text, adds, **constraints)
    return str(wrong.value)


def test_all_parts_of_a_manifest(tmp_path):
    found = read(
        tmp_path,
        """
        [reentry]
        group = "g"
        sample = ["S1", 2, "S1"]
        pairs = [{ pair_id = "P", experiment = "S1", control = "2", site = "lung" }]
        [reentry.values]
        part = [1, 1e-5, "a"]
        one = "x"
        """,
    )
    assert found.group == "g"
    assert found.samples == ("S1", "2")
    assert found.pairs == ({"pair_id": "P", "experiment": "S1", "control": "2", "site": "lung"},)
    assert found.values == {"part": ("1", "1e-5", "a"), "one": ("x",)}
    assert found.size == 7


@pytest.mark.parametrize(
    "text", ["", "\n# nothing\n", "[reentry]\n", "[reentry]\nsample = []\n[reentry.values]\n"]
)
def test_an_empty_manifest_finds_nothing(tmp_path, text):
    assert read(tmp_path, text).size == 0


def test_a_slash_is_fine_where_a_constraint_matches_it(tmp_path):
    assert read(tmp_path, '[reentry.values]\npart = ["a/b"]\n', part="[a-z]/[a-z]").values == {
        "part": ("a/b",)
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[reentry.values]\npart = ["x"]\n', "does not match the constraint"),
        ('[reentry.values]\npart = [".."]\n', "lead out of the folder"),
        ('[reentry]\nsample = ["a/../b"]\n', "lead out of the folder"),
        ('[reentry]\ngroup = "a/b"\nsample = ["a"]\n', "holds a '/'"),
        ('[reentry]\npairs = [{ pair_id = "P" }]\n', "no experiment"),
        ('[reentry]\npairs = [{ pair_id = "P", experiment = "../x" }]\n', "lead out of the folder"),
        (
            '[reentry]\npairs = [{ pair_id = "P", experiment = "a" }, { pair_id = "P", experiment = "b" }]\n',
            "given before with other content",
        ),
        ("[reentry]\nsample = 3\n", "a list"),
        ("[reentry]\npairs = [3]\n", "a table"),
        ("[reentry.values]\nsample = [1]\n", "something else"),
        ("x = 1\n", "not a key"),
    ],
)
def test_what_a_manifest_may_not_hold(tmp_path, text, words):
    assert words in refused(tmp_path, text, part="[0-9]+")


def test_what_the_rule_does_not_say_that_it_adds_is_refused(tmp_path):
    text = '[reentry]\nsample = ["a"]\n[reentry.values]\npart = [1]\n'
    assert read(tmp_path, text, ("sample", "values.part")).size == 2
    assert "adds to values.part" in refused(tmp_path, text, ("sample",))


def test_a_manifest_that_is_a_folder_or_not_there_is_told(tmp_path):
    with pytest.raises(WorkflowError, match="cannot be read"):
        read_manifest(str(tmp_path), "gone.toml", (), {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(WorkflowError, match="cannot be read"):
        read_manifest(str(tmp_path), "folder", (), {})


def test_all_that_is_wrong_is_told_with_its_line(tmp_path):
    words = refused(tmp_path, '[reentry]\nsample = [".."]\nsampel = 1\n[reentry.values]\npart = ["a/b"]\n')
    assert "m.toml:2" in words
    assert "m.toml:3" in words
    assert "did you mean 'sample'" in words
    assert "m.toml:5" in words

"""A folder that a task makes, with files in it that were there before: nothing that we do takes them away."""

from __future__ import annotations

import os

import pytest

FLOW = """
    [[rules]]
    name = "fill"
    output = { folder = { path = "data", pattern = "*" } }
    shell = "mkdir -p data/new; echo {word} > data/new/made.txt; echo {word} > data/made.txt"
    [[rules]]
    name = "read"
    input = ["data/raw/mine.txt"]
    output = ["read.txt"]
    shell = "cat {input} > {output}"
"""


@pytest.fixture
def filled(folder):
    folder.write("data/raw/mine.txt", "precious\n")
    folder.flow(FLOW.replace("{word}", "one"))
    folder.treadle("run")
    return folder


def mine(folder) -> str:
    return folder.read("data/raw/mine.txt")


def test_when_it_is_made_again_they_stay(filled):
    for word in ("two", "three"):
        filled.flow(FLOW.replace("{word}", word))
        filled.treadle("run")
        assert mine(filled) == "precious\n"
        assert filled.read("data/made.txt") == f"{word}\n"
        assert filled.will_run() == set()
    filled.treadle("run", "--force")
    assert mine(filled) == "precious\n"
    assert sorted(os.listdir(filled / "data")) == ["made.txt", "new", "raw"]


def test_after_touch_and_after_a_failure_they_are_known_still(filled):
    filled.flow(FLOW.replace("{word}", "two"))
    filled.treadle("touch")
    filled.flow(FLOW.replace("{word}", "two").replace("mkdir -p data/new;", "mkdir -p data/new; false &&"))
    filled.treadle("run", exits=None)
    filled.flow(FLOW.replace("{word}", "three"))
    filled.treadle("run")
    filled.flow(FLOW.replace("{word}", "four"))
    filled.treadle("run")
    assert mine(filled) == "precious\n"


def test_an_edit_in_it_sets_aside_what_was_made_and_not_them(filled):
    filled.write("data/made.txt", "edited\n")
    filled.treadle("run")
    assert filled.read("data/made.txt.failed") == "edited\n"
    assert mine(filled) == "precious\n"


def test_it_is_neither_evicted_nor_cleaned(filled):
    done = filled.treadle("evict", "fill", "-y", exits=2)
    assert "it holds data/raw/mine.txt, which stood there before fill made anything" in done.stderr
    for args in (("clean", "-y"), ("clean", "--all", "-y")):
        filled.treadle(*args)
        assert mine(filled) == "precious\n"
    assert not (filled / "read.txt").exists()


def test_a_temporary_one_stays(folder):
    folder.write("data/raw/mine.txt", "precious\n")
    text = FLOW.replace("{word}", "one").replace('name = "fill"', 'name = "fill"\ntemporary = true')
    folder.flow(text)
    folder.treadle("run")
    assert mine(folder) == "precious\n"
    assert folder.will_run() == set()

"""Outputs that nobody here recorded: they are not trusted, unless a person asks for it."""

from __future__ import annotations

import os

import pytest

FLOW = """
    [[values]]
    name = "n"
    values = ["1", "2"]
    [[rules]]
    name = "make"
    input = ["in/{n}.txt"]
    output = ["made/{n}.txt"]
    shell = "cat {input} > {output}; echo {n} >> order"
    [[rules]]
    name = "join"
    input = ["made/{n}.txt"]
    output = ["all.txt"]
    shell = "cat {input} > {output}; echo join >> order"
"""


@pytest.fixture
def found(folder):
    """A folder with the outputs of somebody else's run, and no records."""
    folder.flow(FLOW)
    for n in "12":
        folder.write(f"in/{n}.txt", f"{n}\n")
        folder.write(f"made/{n}.txt", "made elsewhere\n")
    folder.write("all.txt", "made elsewhere\n")
    for age, name in (
        (300, "in/1.txt"),
        (300, "in/2.txt"),
        (200, "made/1.txt"),
        (200, "made/2.txt"),
        (100, "all.txt"),
    ):
        stat = os.stat(folder / name)
        os.utime(folder / name, (stat.st_atime, stat.st_mtime - age))
    return folder


def test_without_being_asked_for_nothing_is_taken_over(found):
    assert found.will_run() == {"make/n=1", "make/n=2", "join"}
    assert "3 tasks of these have outputs that nobody here recorded: --adopt" in found.treadle("plan").stderr
    assert "no record here knows who made them" in found.treadle("why", "join").stdout


def test_on_wish_they_are_up_to_date_from_then_on(found):
    assert found.run_as_previewed("--adopt") == set()
    assert found.read("all.txt") == "made elsewhere\n"
    assert not (found / "order").exists()
    assert found.will_run() == set()
    assert "as they were when --adopt took them over" in found.treadle("why", "join").stdout
    found.write("in/1.txt", "another\n")
    assert found.will_run() == {"make/n=1", "join"}


def test_what_is_older_than_its_input_or_not_whole_is_made(found):
    found.write("in/1.txt", "younger than what was made of it\n")
    os.unlink(found / "made/2.txt")
    assert found.run_as_previewed("--adopt") == {"make/n=1", "make/n=2", "join"}


def test_what_a_record_knows_is_not_adopted(found):
    found.treadle("run", "--adopt")
    found.write("all.txt", "edited\n")
    assert found.run_as_previewed("--adopt") == {"join"}
    assert found.read("all.txt") == "made elsewhere\n" * 2

"""What ties tasks together beside their inputs: `ancient`, `depends_on`, outputs that are only passed on."""

from __future__ import annotations

import os

import pytest

PASSING = """
    [[rules]]
    name = "make"
    output = { big = "big.txt", small = "small.txt" }
    temp_output = ["big"]
    shell = "echo big > {output.big}; echo small > {output.small}"
    [[rules]]
    name = "use"
    input = ["big.txt"]
    output = ["used.txt"]
    shell = "cat {input} > {output}"
    [[rules]]
    name = "end"
    input = ["used.txt"]
    output = ["end.txt"]
    temporary = true
    shell = "cat {input} > {output}"
"""


@pytest.fixture
def passed(folder):
    folder.flow(PASSING)
    return folder


def test_a_temporary_output_goes_when_who_reads_it_is_done_and_is_not_missed(passed):
    passed.treadle("run")
    assert not (passed / "big.txt").exists()
    assert passed.read("small.txt") == "small\n"
    assert passed.read("end.txt") == "big\n", "nobody reads it: it is a result"
    assert passed.will_run() == set()


def test_it_is_made_again_when_a_task_that_must_run_needs_it(passed):
    passed.treadle("run")
    (passed / "used.txt").unlink()
    assert passed.will_run() == {"make", "use", "end"}
    passed.treadle("run")
    assert passed.attempted() == {"make", "use"}
    assert not (passed / "big.txt").exists()
    assert passed.will_run() == set()


def test_on_wish_it_stays(passed):
    passed.treadle("run", "--keep-temporary")
    assert passed.read("big.txt") == "big\n"
    assert passed.will_run() == set()
    passed.write("small.txt", "edited\n")
    passed.treadle("run")
    assert not (passed / "big.txt").exists(), "the next run that does anything does not keep it"


def test_what_was_kept_goes_in_a_run_that_has_nothing_to_do(passed):
    passed.treadle("run", "--keep-temporary")
    passed.treadle("run", "--keep-temporary")
    assert passed.read("big.txt") == "big\n"
    done = passed.treadle("run")
    assert "1 temporary output removed that nobody needs any more: big.txt" in done.stderr
    assert not (passed / "big.txt").exists()
    assert passed.read("end.txt") == "big\n"
    assert passed.will_run() == set(), "it has its tombstone"
    assert "temporary" not in passed.treadle("run").stderr
    (passed / "used.txt").unlink()
    assert passed.will_run() == {"make", "use", "end"}


def test_what_was_kept_stays_where_its_reader_is_not_done_though_nobody_asked_for_that(passed):
    passed.treadle("run", "make", "--keep-temporary")
    passed.treadle("run", "make")
    assert passed.read("big.txt") == "big\n"
    passed.treadle("run", "use", "--keep-temporary")
    passed.treadle("run", "make")
    assert passed.read("big.txt") == "big\n", "whether `use` is done was not looked at"
    passed.treadle("run", "use")
    assert not (passed / "big.txt").exists()


def test_one_whose_reader_failed_stays(passed):
    passed.flow(PASSING.replace("cat {input} > {output}", "false", 1))
    passed.treadle("run", exits=1)
    assert passed.read("big.txt") == "big\n"


def test_an_ancient_input_runs_nothing_again_but_is_made_when_it_is_missing(folder):
    folder.flow(
        """
        [[rules]]
        name = "index"
        input = ["ref.txt"]
        output = ["index.txt"]
        shell = "cat {input} > {output}"
        [[rules]]
        name = "align"
        input = { index = "index.txt", reads = "reads.txt" }
        ancient = ["index"]
        output = ["out.txt"]
        shell = "cat {input} > {output}"
        """
    )
    folder.write("ref.txt", "one\n")
    folder.write("reads.txt", "r\n")
    assert folder.run_as_previewed() == {"index", "align"}
    folder.write("ref.txt", "another\n")
    assert folder.run_as_previewed() == {"index"}
    assert folder.read("out.txt") == "one\nr\n"
    os.unlink(folder / "index.txt")
    assert folder.run_as_previewed() == {"index"}
    folder.write("reads.txt", "more\n")
    assert folder.run_as_previewed() == {"align"}


def test_depends_on_orders_and_counts_a_run_of_it_as_a_change(folder):
    flow = """
        [[rules]]
        name = "prepare"
        input = ["in.txt"]
        output = ["zz.txt"]
        shell = "echo same > {output}; sleep 0.1; echo prepare >> order"
        [[rules]]
        name = "after"
        depends_on = ["prepare"]
        output = ["after.txt"]
        shell = "echo > {output}; echo after >> order"
        """
    folder.flow(flow)
    folder.write("in.txt", "1\n")
    folder.treadle("run", "-j", "2")
    assert folder.read("order").split() == ["prepare", "after"]
    assert folder.will_run() == set()
    folder.write("in.txt", "2\n")
    assert folder.run_as_previewed() == {"prepare", "after"}

"""`depends_on` over several runs: who depends on a task that has run is owed a run of its own."""

from __future__ import annotations

import pytest

FLOW = """
    [config]
    v = 1
    [[references]]
    name = "index"
    source = "genome.txt"
    output = "index.txt"
    build = "cp {source} {output}"
    [[rules]]
    name = "first"
    output = ["first.txt"]
    shell = "echo {config.v} > {output}"
    [[rules]]
    name = "second"
    output = ["second.txt"]
    depends_on = ["first"]
    shell = "cat first.txt > {output}"
    [[rules]]
    name = "between"
    output = ["between.txt"]
    depends_on = ["first"]
    priority = 1
    shell = "test ! -e kill || kill -KILL $PPID; touch {output}"
    [[rules]]
    name = "align"
    output = ["align.txt"]
    shell = "cat {config.index} > {output}"
    """


@pytest.fixture
def done(folder):
    folder.flow(FLOW)
    folder.write("genome.txt", "one\n")
    folder.treadle("run")
    return folder


def test_what_depends_on_a_task_that_ran_alone_runs_in_the_next_run(done):
    done.treadle("run", "first", "v=2")
    assert done.will_run("v=2") == {"between", "second"}
    assert "first, on which it depends, has run since" in done.treadle("why", "second", "v=2").stdout
    done.treadle("run", "v=2")
    assert done.read("second.txt") == "2\n"
    assert done.will_run("v=2") == set()


def test_what_only_names_a_reference_is_made_again_after_that_was_built_in_another_run(done):
    done.write("genome.txt", "two\n")
    done.treadle("run", "reference::index")
    assert done.will_run() == {"align"}
    done.treadle("run")
    assert done.read("align.txt") == "two\n"
    assert done.will_run() == set()


def test_who_was_skipped_while_it_ran_is_owed_a_run_too(done):
    done.flow(FLOW.replace('name = "second"', 'name = "second"\n    when = "config.v != 2"'))
    done.treadle("run", "v=2")
    done.flow(FLOW)
    assert done.will_run("v=2") == {"second"}


def test_a_run_that_is_killed_between_the_two_is_gone_on_with(done):
    done.write("kill", "")
    done.treadle("run", "-j", "1", "v=2", exits=-9)
    (done / "kill").unlink()
    assert done.read("first.txt") == "2\n"
    assert done.will_run("v=2") == {"between", "second"}
    done.treadle("run", "v=2")
    assert done.read("second.txt") == "2\n"


def test_touch_accepts_it_as_it_stands(done):
    done.treadle("run", "first", "v=2")
    done.treadle("touch", "second", "between", "v=2")
    assert done.will_run("v=2") == set()
    done.treadle("touch", "first", "v=2")
    assert done.will_run("v=2") == set()

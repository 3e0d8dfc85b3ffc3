"""How each command ends: 0 done, 1 a task failed, 2 the person's fault, 3 the world's; always in words."""

from __future__ import annotations

import json
import pathlib
import shutil

import pytest

FLOW = """
    [[rules]]
    name = "good"
    output = ["good.txt"]
    shell = "echo > {output}"
    [[rules]]
    name = "bad"
    output = ["bad.txt"]
    required = {required}
    shell = "exit 3"
"""
LOOKING = [("plan",), ("why", "good"), ("status",), ("status", "--runs"), ("logs", "good")]
CHANGING = [("run",), ("touch", "good"), ("evict", "good", "-y"), ("clean", "-y")]
NO_RECORDS = [("check",), ("graph",), ("exec", "--print", "good")]


@pytest.fixture
def done(folder):
    """A folder where one task succeeded and one failed."""
    folder.flow(FLOW.replace("{required}", "false"))
    folder.treadle("run")
    return folder


def names(commands):
    return {"ids": ["-".join(one).replace("--", "") for one in commands]}


def test_a_task_that_failed_is_1_only_when_the_run_needs_it(folder):
    folder.flow(FLOW.replace("{required}", "true"))
    folder.treadle("run", "--keep-going", exits=1)
    folder.treadle("run", "good")
    folder.flow(FLOW.replace("{required}", "false"))
    folder.treadle("run")


@pytest.mark.parametrize(
    "command", [*LOOKING, *CHANGING, *NO_RECORDS], **names([*LOOKING, *CHANGING, *NO_RECORDS])
)
def test_all_is_well(done, command):
    done.treadle(*command)


@pytest.mark.parametrize("command", [*LOOKING, *CHANGING], **names([*LOOKING, *CHANGING]))
def test_a_file_where_the_records_should_be(done, command):
    shutil.rmtree(done / ".treadle")
    done.write(".treadle", "")
    assert str(done / ".treadle") in done.treadle(*command, exits=3).stderr
    assert done.read(".treadle") == ""


@pytest.mark.parametrize("command", [LOOKING[0], LOOKING[1], *CHANGING], **names([*LOOKING[:2], *CHANGING]))
def test_records_of_a_newer_treadle(done, command):
    done.write(".treadle/VERSION", "99\n")
    before = done.snapshot()
    assert "version 99, of a newer Treadle" in done.treadle(*command, exits=3).stderr
    assert done.snapshot() == before


@pytest.mark.parametrize("command", [*CHANGING, ("unlock",)], **names([*CHANGING, ("unlock",)]))
def test_a_lock_that_is_none(done, command):
    (done / ".treadle/lock").mkdir()
    assert "lock': Is a directory" in done.treadle(*command, exits=3).stderr


def test_a_log_that_cannot_be_read(done):
    (found,) = json.loads(done.treadle("logs", "good", "--json").stdout)["logs"]
    log = pathlib.Path(found["log"])
    log.unlink(missing_ok=True)
    log.mkdir()
    assert "cannot read the log" in done.treadle("logs", "good", exits=3).stderr


@pytest.mark.parametrize(
    "command", [*LOOKING, *CHANGING, ("unlock",)], **names([*LOOKING, *CHANGING, ("unlock",)])
)
def test_a_work_folder_that_is_not_there(done, command):
    found = done.treadle(*command, "--workdir", "nowhere", exits=0 if "--runs" in command else 2)
    assert "nowhere" in found.stderr

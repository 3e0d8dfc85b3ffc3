"""Several runs in one folder: one at a time, each told who is at work, none disturbs another's records."""

from __future__ import annotations

import getpass
import os
import signal
import socket

import pytest
from story_trouble import none_left

from waiting import until

FLOW = """
[[rules]]
name = "slow"
output = ["slow.txt"]
shell = "echo x >> begun; until test -e go; do sleep 0.02; done; echo done > {output}"
"""


@pytest.fixture
def busy(folder):
    """A folder where a run is at work; it ends when `go` is there."""
    folder.flow(FLOW)
    run = folder.start("run")
    folder.until("begun")
    yield folder, run
    folder.write("go", "")
    run.communicate(timeout=60)


def test_a_second_run_is_refused_and_told_who_is_at_work(busy):
    folder, run = busy
    said = folder.treadle("run", exits=3).stderr
    for word in (getpass.getuser(), socket.gethostname(), str(run.pid), str(folder.path), "--wait"):
        assert word in said


@pytest.mark.parametrize(
    "command", [("touch",), ("evict", "slow"), ("clean", "-y")], ids=lambda words: words[0]
)
def test_whatever_changes_records_is_refused_too(busy, command):
    folder, run = busy
    assert str(run.pid) in folder.treadle(*command, exits=3).stderr


def test_whoever_only_looks_is_let_in(busy):
    folder, _ = busy
    before = folder.snapshot()
    assert "running" in folder.treadle("status").stdout
    assert folder.will_run() == {"slow"}
    folder.treadle("why", "slow")
    folder.treadle("logs", "slow")
    folder.treadle("graph")
    assert folder.snapshot() == before


def test_a_run_that_waits_begins_when_the_other_has_ended_and_finds_nothing_to_do(busy):
    folder, run = busy
    waiting = folder.start("run", "--wait")
    assert str(run.pid) in waiting.stderr.readline()
    folder.write("go", "")
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, err
    assert "nothing to do" in err
    assert run.wait(60) == 0
    assert folder.read("begun") == "x\n"
    assert len(folder.runs()) == 1


def test_of_ten_starts_at_once_exactly_one_runs(folder):
    folder.flow(FLOW)
    runs = [folder.start("run") for _ in range(10)]
    until(lambda: sum(run.poll() is not None for run in runs) == 9, "the end of nine")
    folder.until("begun")
    folder.write("go", "")
    ends = []
    for run in runs:
        _, err = run.communicate(timeout=60)
        assert "Traceback" not in err
        ends.append(run.returncode)
    assert sorted(ends) == [0, *[3] * 9]
    assert folder.read("begun") == "x\n"
    assert len(folder.runs()) == 1
    assert not [name for name in os.listdir(folder / ".treadle") if name.startswith("lock")]
    none_left(folder.path)


def test_of_ten_starts_after_a_kill_exactly_one_goes_on(folder):
    folder.flow(FLOW)
    killed = folder.start("run")
    folder.until("begun")
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    runs = [folder.start("run") for _ in range(10)]
    until(lambda: sum(run.poll() is not None for run in runs) == 9, "the end of nine")
    until(lambda: folder.read("begun") == "x\nx\n", "the second attempt")
    folder.write("go", "")
    ends = []
    for run in runs:
        _, err = run.communicate(timeout=60)
        assert "Traceback" not in err
        ends.append(run.returncode)
    assert sorted(ends) == [0, *[3] * 9]
    assert folder.read("begun") == "x\nx\n"
    none_left(folder.path)


def two(folder) -> tuple[str, str]:
    """Two workflows in one folder, with a task of the same name each."""
    for name in ("one", "two"):
        folder.flow(
            f"""
            [[rules]]
            name = "make"
            output = ["{name}.txt"]
            shell = "echo {name} >> ran; until test -e go; do sleep 0.02; done; echo {name} > {{output}}"

            [[rules]]
            name = "look"
            input = ["{name}.txt"]
            shell = "echo look {name} >> ran"
            """,
            head=f'[workflow]\nname = "{name}"\nstrict_shell = true\n',
            name=f"{name}.oxoflow",
        )
    return "one.oxoflow", "two.oxoflow"


def test_two_workflows_of_one_folder_run_one_after_the_other_undisturbed(folder):
    one, other = two(folder)
    folder.write("go", "")
    for file in (one, other):
        assert folder.run_as_previewed(file) == {"make", "look"}
    for file in (one, other, one):
        assert folder.run_as_previewed(file) == set()
    assert folder.read("ran") == "one\nlook one\ntwo\nlook two\n"
    folder.write("one.txt", "scribbled")
    assert folder.will_run(other) == set()
    assert folder.will_run(one) == {"make", "look"}


def test_two_workflows_of_one_folder_do_not_run_at_the_same_time(folder):
    one, other = two(folder)
    run = folder.start("run", one)
    folder.until("ran")
    assert str(run.pid) in folder.treadle("run", other, exits=3).stderr
    folder.write("go", "")
    run.communicate(timeout=60)
    assert folder.run_as_previewed(other) == {"make", "look"}


def test_a_killed_run_of_one_workflow_is_mended_by_a_run_of_the_other(folder):
    one, other = two(folder)
    run = folder.start("run", one)
    folder.until("ran")
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=60)
    folder.write("go", "")
    assert folder.run_as_previewed(other) == {"make", "look"}
    none_left(folder.path)
    assert folder.run_as_previewed(one) == {"make", "look"}
    assert folder.run_as_previewed(other) == set()

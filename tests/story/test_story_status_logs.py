"""`treadle status` and `treadle logs`: of a run that goes on, that is done, that failed, that was killed."""

from __future__ import annotations

import json
import os
import signal

import pytest

SLOW = """
[[rules]]
name = "slow"
output = ["slow.txt"]
shell = '''
echo first words
touch started
while [ ! -e go ]; do sleep 0.02; done
echo last words >&2
touch {output}
'''

[[rules]]
name = "after"
input = ["slow.txt"]
output = ["after.txt"]
shell = "touch {output}"
"""

FAILING = """
[[values]]
name = "part"
values = ["a", "b"]

[[rules]]
name = "good"
output = ["good.txt"]
shell = "seq 40; touch {output}"

[[rules]]
name = "bad"
input = ["good.txt"]
output = ["bad.{part}.txt"]
shell = "echo about to fail with {part}; exit 3"

[[rules]]
name = "after"
input = ["bad.{part}.txt"]
output = ["after.txt"]
shell = "touch {output}"
"""


@pytest.fixture
def running(folder):
    """A run at work on its first task; ended when the test is over, whatever came of it."""
    folder.flow(SLOW)
    process = folder.start("run")
    try:
        folder.until("started")
        yield folder, process
    finally:
        folder.write("go", "")
        process.communicate(timeout=60)


def status(folder, *args: str):
    return json.loads(folder.treadle("status", "--json", *args).stdout)


def test_without_a_run_there_is_nothing_to_tell(folder):
    assert "no run is recorded" in folder.treadle("status", exits=2).stderr
    assert folder.treadle("status", "--runs").stdout == ""
    assert json.loads(folder.treadle("status", "--runs", "--json").stdout) == {"schema": 1, "runs": []}


def test_a_run_that_goes_on_is_running(running):
    folder, _ = running
    shown = folder.treadle("status").stdout
    assert "  running" in shown.splitlines()[0]
    assert "running slow for" in shown
    found = status(folder)
    assert found["state"] == "running"
    assert found["ended"] is None
    assert [one["task"] for one in found["running"]] == ["slow"]
    assert "running" in folder.treadle("status", "--runs").stdout


def test_logs_of_a_live_run_are_there_and_can_be_followed_to_the_end(running):
    folder, process = running
    assert folder.treadle("logs", "slow").stdout == "first words\n"
    follower = folder.start("logs", "-f", "slow")
    assert follower.stdout.readline() == "first words\n"
    folder.write("go", "")
    rest, _ = follower.communicate(timeout=60)
    assert rest == "last words\n"
    assert follower.returncode == 0
    assert process.wait(timeout=60) == 0


def test_a_second_run_is_refused_and_names_the_first(running):
    folder, process = running
    done = folder.treadle("run", exits=3)
    assert str(process.pid) in done.stderr
    assert "--wait" in done.stderr


def test_a_run_that_is_done(folder):
    folder.flow(FAILING.replace("exit 3", "touch {output}"))
    folder.treadle("run")
    lines = folder.treadle("status").stdout.splitlines()
    assert lines[0].endswith("  done")
    assert "4 tasks: 4 done" in lines[2]
    assert status(folder)["state"] == "done"
    assert status(folder)["exit_code"] == 0


def test_a_run_that_failed_names_what_failed_and_what_it_blocked(folder):
    folder.flow(FAILING)
    folder.treadle("run", "-k", "-j1", exits=1)  # of two at once either may end first
    shown = folder.treadle("status").stdout
    assert "  failed" in shown.splitlines()[0]
    assert "bad/part=a failed with exit code 3" in shown
    assert "blocks 1 task: after" in shown
    assert "treadle logs bad/part=a" in shown
    found = status(folder)
    assert found["state"] == "failed"
    assert found["counts"] | {"succeeded": 1, "failed": 2, "blocked": 1} == found["counts"]
    assert [one["task"] for one in found["failed"]] == ["bad/part=a", "bad/part=b"]


def test_a_run_that_was_killed_and_one_that_mends_it(running):
    folder, process = running
    process.kill()
    process.communicate()
    shown = folder.treadle("status").stdout
    assert "was killed; treadle run goes on from there" in shown
    assert "  was at work on " in shown
    assert "since the start" not in shown, "nobody knows when it ended"
    assert status(folder)["state"] == "killed"
    folder.write("go", "")
    said = folder.treadle("run").stderr
    assert "was killed" in said
    assert "1 attempt of it counted as interrupted" in said
    first, last = folder.runs()
    assert "was killed; what it had finished is recorded" in folder.treadle("status", "--run", first).stdout
    assert status(folder, "--run", last)["state"] == "done"


def test_a_run_that_was_interrupted(running):
    folder, process = running
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert status(folder)["state"] == "interrupted"


def test_the_runs_that_are_kept_are_listed_the_newest_first(folder):
    folder.flow(FAILING)
    folder.treadle("run", exits=1)
    folder.flow(FAILING.replace("exit 3", "touch {output}"))
    folder.treadle("run")
    lines = folder.treadle("status", "--runs").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(reversed(folder.runs()))
    assert "story" in lines[0]
    assert "done" in lines[0]
    assert "failed" in lines[1]
    newest, oldest = json.loads(folder.treadle("status", "--runs", "--json").stdout)["runs"]
    assert (newest["state"], newest["exit_code"]) == ("done", 0)
    assert (oldest["state"], oldest["exit_code"]) == ("failed", 1)
    assert newest["counts"] == {"succeeded": 3, "up_to_date": 1}
    assert newest["started"] < newest["ended"]


def test_the_end_of_a_run_id_names_it(folder):
    folder.flow(FAILING)
    folder.treadle("run", exits=1)
    (run,) = folder.runs()
    assert status(folder, "--run", run[-4:])["run"] == run
    assert run in folder.treadle("status", "--run", "nope", exits=2).stderr


def test_logs_of_all_that_failed(folder):
    folder.flow(FAILING)
    folder.treadle("run", "-k", "-j1", exits=1)
    assert folder.treadle("logs", "--failed").stdout == (
        "==> bad/part=a <==\nabout to fail with a\n==> bad/part=b <==\nabout to fail with b\n"
    )


def test_the_last_lines_of_a_log(folder):
    folder.flow(FAILING)
    folder.treadle("run", exits=1)
    assert folder.treadle("logs", "good", "-n", "3").stdout == "38\n39\n40\n"
    assert len(folder.treadle("logs", "good").stdout.splitlines()) == 40


def test_logs_of_an_earlier_run_when_the_last_one_did_not_try_the_task(folder):
    folder.flow(FAILING)
    folder.treadle("run", exits=1)
    folder.flow(FAILING.replace("exit 3", "touch {output}"))
    folder.treadle("run")
    assert folder.treadle("logs", "good").stdout.endswith("40\n")


def test_logs_of_a_task_that_nobody_knows_name_the_nearest(folder):
    folder.flow(FAILING)
    folder.treadle("run", exits=1)
    assert "did you mean 'good'?" in folder.treadle("logs", "goood", exits=2).stderr
    assert "--failed" in folder.treadle("logs", exits=2).stderr


def test_logs_as_json_name_the_files(folder):
    folder.flow(FAILING)
    folder.treadle("run", exits=1)
    (one,) = json.loads(folder.treadle("logs", "good", "--json").stdout)["logs"]
    assert one["task"] == "good"
    assert os.path.getsize(one["log"]) > 0


def test_a_failure_is_told_with_the_end_of_its_log_and_the_way_on(folder):
    folder.flow(FAILING)
    said = folder.treadle("run", exits=1).stderr
    assert "about to fail with a" in said
    assert "treadle logs bad/part=a" in said
    assert "treadle exec bad/part=a" in said

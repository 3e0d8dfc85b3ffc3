"""Looking at a run while it goes, from streams that are closed, full or abandoned, and at foreign records."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest
from story_folder import TREADLE
from story_trouble import none_left

from waiting import until

FLOW = """
[[rules]]
name = "first"
output = ["first.txt"]
shell = "echo first line; echo x > {output}"

[[rules]]
name = "second"
input = ["first.txt"]
output = ["second.txt"]
shell = "echo hello; touch begun; until test -e go; do sleep 0.02; done; echo good-bye; cp {input} {output}"
"""


@pytest.fixture
def flow(folder):
    folder.flow(FLOW)
    return folder


def begin(folder, **options) -> subprocess.Popen[str]:
    run = folder.start("run", **options)
    folder.until("begun")
    return run


def finish(folder, run: subprocess.Popen[str]) -> str:
    folder.write("go", "")
    _, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert folder.read("second.txt") == "x\n"
    return err


def test_status_tells_what_runs_and_what_is_done(flow):
    run = begin(flow)
    said = flow.treadle("status").stdout
    assert "running" in said
    assert "running second" in said
    assert "1 done" in said
    found = json.loads(flow.treadle("status", "--json").stdout)
    assert [one["task"] for one in found["running"]] == ["second"]
    assert found["counts"]["succeeded"] == 1
    assert found["exit_code"] is None
    finish(flow, run)
    assert "done" in flow.treadle("status").stdout


def test_status_and_logs_of_a_run_that_was_killed(flow):
    run = begin(flow)
    run.kill()
    run.communicate(timeout=60)
    assert "was killed; treadle run goes on from there" in flow.treadle("status").stdout
    assert flow.treadle("logs", "second").stdout == "hello\n"
    assert flow.treadle("logs", "-f", "second").stdout == "hello\n", "nobody will end this one any more"
    flow.write("go", "")
    flow.treadle("run")
    assert "done" in flow.treadle("status").stdout
    none_left(flow.path)


def test_whoever_looks_again_and_again_while_a_run_goes_on_never_trips(folder):
    """Journal, checkpoint file and `latest` are read while they are written, by two runs in a row."""
    numbers = ", ".join(f'"{number}"' for number in range(150))
    folder.flow(
        f"""
        [[values]]
        name = "n"
        values = [{numbers}]

        [[rules]]
        name = "each"
        output = ["out/{{n}}"]
        shell = "echo {{n}} > {{output}}"
        """
    )
    for more in ((), ("--force",)):
        run = folder.start("run", "--json", "-j2", *more)
        while run.poll() is None:
            for command in ("status", "plan", "logs each", "status --json"):
                ended = folder.treadle(*command.split(), exits=None)
                early = "no run is recorded" in ended.stderr or "no attempt of" in ended.stderr
                assert ended.returncode == 0 or early, ended.stderr
        out, _ = run.communicate()
        assert json.loads(out)["counts"]["succeeded"] == 150


def test_logs_are_followed_until_the_task_has_ended(flow):
    run = begin(flow)
    following = flow.start("logs", "-f", "second")
    assert following.stdout.readline() == "hello\n"
    finish(flow, run)
    out, _ = following.communicate(timeout=60)
    assert out == "good-bye\n"
    assert following.returncode == 0


def test_logs_that_are_followed_end_with_ctrl_c_or_when_the_reader_goes(flow):
    run = begin(flow)
    for _ in range(2):
        following = flow.start("logs", "-f", "second")
        following.stdout.readline()
        following.send_signal(signal.SIGINT)
        _, err = following.communicate(timeout=60)
        assert following.returncode == 130
        assert err == ""
    following = flow.start("logs", "-f", "second")
    following.stdout.readline()
    following.stdout.close()
    finish(flow, run)
    assert following.wait(60) == 141
    assert following.stderr.read() == ""


def test_a_run_goes_on_when_nobody_reads_what_it_says(flow):
    run = begin(flow)
    run.stderr.close()
    run.stdout.close()
    flow.write("go", "")
    assert run.wait(60) == 0
    assert flow.events()[-1]["exit_code"] == 0
    assert flow.run_as_previewed() == set()


def test_a_run_whose_json_nobody_reads_has_run_all_the_same(flow):
    flow.write("go", "")
    run = flow.start("run", "--json")
    run.stdout.close()
    _, err = run.communicate(timeout=60) if run.stdout is None else (None, run.stderr.read())
    assert run.wait(60) == 141
    assert "Traceback" not in err
    assert flow.events()[-1]["exit_code"] == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_trouble(flow, closed):
    flow.write("go", "")
    for command in ("plan", "run", "status", "logs second", "run --json --force"):
        done = subprocess.run(
            ["sh", "-c", f"'{TREADLE}' {command} {closed}"],
            cwd=flow.path,
            env=flow.env(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    journals = [flow.events(run) for run in flow.runs()]
    assert [journal[-1]["event"] for journal in journals] == ["run_ended", "run_ended"]
    assert flow.run_as_previewed() == set()


def test_a_terminal_that_cannot_show_every_letter_gets_what_it_can(folder):
    folder.flow(
        """
        [[rules]]
        name = "greet"
        output = ["grüße.txt"]
        shell = "echo x > {output}; false"
        """,
        head='[workflow]\nname = "wörk"\n',
    )
    for command in ("plan", "plan --tasks", "plan --json", "run", "status", "why greet", "graph"):
        done = folder.treadle(*command.split(), exits=None, env=folder.env(PYTHONIOENCODING="ascii"))
        assert done.returncode in (0, 1)
        assert done.stdout.isascii() or "--json" in command
    assert "w\\xf6rk" in folder.treadle("status", env=folder.env(PYTHONIOENCODING="ascii")).stdout


def test_a_full_disk_behind_stderr_does_not_end_a_run(flow):
    flow.write("go", "")
    with open("/dev/full", "w") as full:
        assert subprocess.run([TREADLE, "run"], cwd=flow.path, env=flow.env(), stderr=full).returncode == 0


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_stdout_is_said(flow, unbuffered):
    flow.write("go", "")
    flow.treadle("run")
    for command in ("plan", "plan --json", "graph", "run --json", "--version", "logs first"):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [TREADLE, *command.split()],
                cwd=flow.path,
                env=flow.env(PYTHONUNBUFFERED=unbuffered),
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert done.returncode == 3
        assert done.stderr.splitlines()[-1] == "error: cannot write to stdout: No space left on device"
        assert "Traceback" not in done.stderr


def test_records_of_a_newer_treadle_are_left_alone(flow):
    flow.write("go", "")
    flow.treadle("run")
    flow.write(".treadle/VERSION", "99\n")
    before = flow.snapshot()
    for command in ("plan", "run", "why second", "touch", "clean -y", "evict first"):
        said = flow.treadle(*command.split(), exits=3).stderr
        assert "version 99" in said
        assert "newer Treadle" in said
    for command in ("status", "unlock"):
        flow.treadle(command, exits=None)
    assert flow.snapshot() == before


def test_a_version_that_is_no_number_is_told(flow):
    flow.write("go", "")
    flow.treadle("run")
    flow.write(".treadle/VERSION", "banana\n")
    for command in ("plan", "run"):
        said = flow.treadle(command, exits=3).stderr
        assert "banana" in said
        assert "VERSION" in said


def test_a_log_that_is_asked_for_before_it_is_there(flow):
    run = begin(flow)
    os.unlink(flow / ".treadle/runs/latest/logs/1")
    assert flow.treadle("logs", "first").stdout == ""
    assert flow.treadle("logs", "-f", "first").stdout == ""
    os.unlink(flow / ".treadle/runs/latest/logs/2")
    following = flow.start("logs", "-f", "second")
    until(lambda: following.poll() is None, "the follower")
    finish(flow, run)
    out, err = following.communicate(timeout=60)
    assert (following.returncode, out, err) == (0, "", "second printed nothing\n")

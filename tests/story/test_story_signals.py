"""Ctrl-C, SIGTERM, a terminal that goes away: everything ends and is recorded, and the next run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import termios
from typing import Any

import pexpect
import pytest
from story_folder import TREADLE
from story_trouble import none_left

from waiting import until

# Both tasks write half of their output and wait until `quick` is there. One of them does not hear SIGTERM.
FLOW = """
[[rules]]
name = "calm"
output = ["calm.txt"]
shell = '''
printf half > {output}; touch calm.begun
until test -e quick; do sleep 0.05; done; echo whole > {output}
'''

[[rules]]
name = "stubborn"
output = ["stubborn.txt"]
shell = '''
trap '' TERM INT HUP
printf half > {output}; touch stubborn.begun
until test -e quick; do sleep 0.05; done; echo whole > {output}
'''

[[rules]]
name = "after"
input = ["calm.txt", "stubborn.txt"]
output = ["after.txt"]
shell = "cat {input} > {output}"
"""


@pytest.fixture
def flow(folder):
    folder.flow(FLOW)
    return folder


def begin(folder, *args: str, **options: Any) -> subprocess.Popen[str]:
    """Start a run and wait until both tasks are at work."""
    run = folder.start("run", "-j2", *args, **options)
    for name in ("calm.begun", "stubborn.begun"):
        until(lambda: (folder / name).exists() or run.poll() is not None, name)  # noqa: B023
    assert run.poll() is None, run.communicate()
    return run


def end(run: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end of a run: its exit code and what it said."""
    _, err = run.communicate(timeout=60)
    assert "Traceback" not in err
    return run.returncode, err


def all_has_ended(folder, code: int) -> None:
    """No process is left, the journal ended, nothing half-written passes for whole; and the rest is done."""
    none_left(folder.path)
    assert folder.events()[-1]["event"] == "run_ended"
    assert folder.events()[-1]["exit_code"] == code
    for name in ("calm.txt", "stubborn.txt"):
        assert not (folder / name).exists()
        assert folder.read(f"{name}.failed") == "half"
    folder.write("quick", "")
    assert folder.run_as_previewed() == {"calm", "stubborn", "after"}
    assert folder.read("after.txt") == "whole\nwhole\n"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_one_signal_ends_the_run_after_its_grace(flow, number, code):
    run = begin(flow, "--grace", "0.3s")
    run.send_signal(number)
    assert end(run)[0] == code
    all_has_ended(flow, code)


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (signal.SIGINT, signal.SIGINT, 130),
        (signal.SIGTERM, signal.SIGTERM, 143),
        (signal.SIGHUP, signal.SIGTERM, 143),
    ],
)
def test_a_second_signal_does_not_wait_for_the_grace(flow, first, second, code):
    run = begin(flow, "--grace", "1h")
    run.send_signal(first)
    flow.until("calm.txt.failed")
    assert run.poll() is None, "the other one has its grace"
    run.send_signal(second)
    ended, said = end(run)
    assert ended == code
    assert said.count("ending 2 tasks at work (ask again to end them at once)") == 1
    all_has_ended(flow, code)


def test_ctrl_c_at_any_moment_leaves_no_process_and_the_next_run_goes_on(folder, hosted):
    """While planning, taking the lock, starting, ending: before every fourth change to the disk."""
    for number in range(1, 300, 4):
        inner = folder.below(str(number))
        inner.flow(FLOW)
        inner.write("quick", "")
        ended = hosted.treadle(inner, "run", "--grace", "0s", when="move", number=number, sent=signal.SIGINT)
        if not hosted.met:
            break
        assert ended.code in (0, 130), "it was done when it came, or not"
        none_left(inner.path)
        assert hosted.treadle(inner, "run").code == 0
        assert inner.read("after.txt") == "whole\nwhole\n"
        assert "nothing to do" in hosted.treadle(inner, "run").err
    assert number > 30


def test_a_task_that_ends_well_in_its_grace_is_taken_as_done(folder):
    folder.flow(
        """
        [[rules]]
        name = "careful"
        output = ["careful.txt"]
        shell = '''
        trap 'echo whole > {output}; exit 0' TERM
        touch begun; while :; do sleep 0.05; done
        '''
        """
    )
    run = folder.start("run")
    folder.until("begun")
    run.send_signal(signal.SIGTERM)
    assert end(run)[0] == 143
    none_left(folder.path)
    settled = [event for event in folder.events() if event["event"] == "task_settled"]
    assert [event["state"] for event in settled] == ["cancelled"], (
        "it was told to end: that it was done is luck"
    )
    assert folder.will_run() == {"careful"}


def test_a_signal_while_a_lock_is_waited_for_ends_the_wait(flow):
    run = begin(flow, "--grace", "0s")
    waiting = flow.start("run", "--wait")
    line = waiting.stderr.readline()
    assert "wait" in line
    waiting.send_signal(signal.SIGINT)
    assert end(waiting)[0] == 130
    run.send_signal(signal.SIGINT)
    assert end(run)[0] == 130
    all_has_ended(flow, 130)


class Terminal:
    """The command at a terminal of its own; a shell would run it in the same way."""

    def __init__(self, folder, *args: str) -> None:
        env = {**folder.env(), "TERM": "xterm"}
        del env["NO_COLOR"]
        self.child = pexpect.spawn(
            TREADLE, list(args), cwd=str(folder.path), env=env, timeout=60, encoding="utf-8"
        )
        self.state = termios.tcgetattr(self.child.child_fd)


def test_ctrl_c_at_a_terminal_reaches_the_tasks_once_and_leaves_the_terminal_as_it_was(folder):
    folder.flow(
        """
        [[rules]]
        name = "listening"
        output = ["out.txt"]
        shell = '''
        trap 'echo INT >> heard' INT
        trap 'echo TERM >> heard; exit 1' TERM
        touch begun; while :; do sleep 0.05; done
        '''
        """
    )
    terminal = Terminal(folder, "run")
    folder.until("begun")
    terminal.child.expect("running")
    terminal.child.sendcontrol("c")
    terminal.child.expect(pexpect.EOF)
    written = terminal.child.before
    assert termios.tcgetattr(terminal.child.child_fd) == terminal.state
    terminal.child.close()
    assert terminal.child.exitstatus == 130
    assert folder.read("heard") == "TERM\n"
    assert "Traceback" not in written
    assert written.rfind("\x1b[?25h") > written.rfind("\x1b[?25l"), "the cursor is shown again"
    none_left(folder.path)


def test_a_terminal_that_goes_away_ends_the_run_in_order(flow):
    terminal = Terminal(flow, "run", "-j2", "--grace", "0.3s")
    flow.until("calm.begun")
    flow.until("stubborn.begun")
    os.close(terminal.child.child_fd)
    terminal.child.child_fd = -1
    until(lambda: flow.events()[-1]["event"] == "run_ended", "the end of the run")
    os.waitpid(terminal.child.pid, 0)
    all_has_ended(flow, 143)


def test_a_run_behind_nohup_does_not_hear_that_the_terminal_went_away(flow):
    run = begin(flow, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    run.send_signal(signal.SIGHUP)
    flow.write("quick", "")
    assert end(run)[0] == 0
    assert flow.read("after.txt") == "whole\nwhole\n"
    none_left(flow.path)

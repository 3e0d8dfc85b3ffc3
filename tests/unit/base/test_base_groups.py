"""Finding processes of attempts and ending them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from treadle.base import proc
from treadle.base.groups import read_process

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")


class Attempts:
    """Starts attempts of a run of its own, and leaves none behind."""

    def __init__(self, tmp_path):
        self.run = f"run-{os.getpid()}-{tmp_path.name}"
        self.ready = tmp_path / "ready"
        self.children: list[proc.Child] = []
        os.mkfifo(self.ready)

    def start(self, n: int, text: str, mark: bool = True) -> proc.Child:
        """Start `text`, and wait until it writes to $READY."""
        env = dict(os.environ) | {"READY": str(self.ready)}
        if mark:
            env["TREADLE_ATTEMPT"] = f"{self.run}.{n}"
        fd = os.open(os.devnull, os.O_WRONLY)
        child = proc.spawn(["bash", "-c", text], env=env, cwd=os.getcwd(), stdout_fd=fd)
        os.close(fd)
        self.children.append(child)
        self.ready.read_text()
        return child

    def group(self, child: proc.Child, n: int) -> tuple[int, int, str]:
        return (child.pid, child.started, f"{self.run}.{n}")


@pytest.fixture
def attempts(tmp_path):
    made = Attempts(tmp_path)
    yield made
    for child in made.children:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            os.waitpid(child.pid, 0)
        except ChildProcessError:
            pass
        os.close(child.pidfd)


WAIT = "echo > $READY; sleep 300"


def test_attempts_are_found_by_their_environment(attempts):
    one = attempts.start(1, "echo > $READY; exec sleep 300")
    attempts.start(12, "echo > $READY; exec sleep 300")
    other = attempts.start(3, "echo > $READY; exec sleep 300", mark=False)
    found = proc.attempts_alive(attempts.run)
    assert [value for *_, value in found] == [f"{attempts.run}.1", f"{attempts.run}.12"]
    assert found[0] == (one.pid, one.pid, one.started, f"{attempts.run}.1")
    assert other.pid not in [pid for pid, *_ in found]
    everyone = proc.attempts_alive(None)
    assert set(found) <= set(everyone)
    assert proc.attempts_alive(attempts.run[:-1]) == []


def test_this_process_is_never_taken_for_an_attempt(attempts):
    attempts.start(1, "echo > $READY; exec sleep 300")
    assert os.getpid() not in [pid for pid, *_ in proc.attempts_alive(None)]
    # The same for a driver that runs inside of an attempt, and for the shell that started it.
    text = (
        "import os; from treadle.base import proc;"
        "value = os.environ['TREADLE_ATTEMPT'];"
        "print(proc.kill_groups([(os.getpgrp(), 0, value)], 0.1), [p for p, *_ in proc.attempts_alive(None)"
        " if p in (os.getpid(), os.getppid())], flush=True)"
    )
    told = subprocess.run(
        ["bash", "-c", '"$0" -c "$1"; true', sys.executable, text],
        env=os.environ | {"TREADLE_ATTEMPT": f"{attempts.run}.77"},
        capture_output=True,
        text=True,
    )
    assert told.stdout == "[] []\n", told.stderr


def test_a_group_is_ended_by_sigterm_alone_where_that_is_enough(attempts):
    child = attempts.start(1, 'trap "exit 5" TERM; sleep 300 & echo > $READY; wait')
    began = time.monotonic()
    assert proc.kill_groups([attempts.group(child, 1)], grace=60) == []
    assert time.monotonic() - began < 30
    _, status = os.waitpid(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 5


def test_what_ignores_sigterm_is_killed_after_the_grace(attempts):
    child = attempts.start(1, 'trap "" TERM; echo > $READY; sleep 300; sleep 300')
    assert proc.kill_groups([attempts.group(child, 1)], grace=0.05) == []
    assert proc.live_members(child.pid) == []


def test_a_stopped_attempt_is_ended(attempts):
    child = attempts.start(1, WAIT)
    os.killpg(child.pid, signal.SIGSTOP)
    assert proc.kill_groups([attempts.group(child, 1)], grace=30) == []


def test_what_left_the_group_is_found_by_its_environment(attempts):
    child = attempts.start(1, 'setsid bash -c "echo > $READY; exec sleep 300" & wait')
    assert len({group for _, group, *_ in proc.attempts_alive(attempts.run)}) == 2
    assert proc.kill_groups([attempts.group(child, 1)], grace=5) == []
    assert proc.attempts_alive(attempts.run) == []


def test_members_whose_leader_is_gone_are_found_by_their_environment(attempts):
    child = attempts.start(1, "{ echo > $READY; exec sleep 300; } & disown; exit 0")
    os.waitpid(child.pid, 0)
    assert [one.group for one in proc.live_members(child.pid)] == [child.pid]
    assert proc.kill_groups([attempts.group(child, 1)], grace=5) == []
    assert proc.live_members(child.pid) == []


def test_another_process_with_a_recycled_number_is_left_alone(attempts):
    child = attempts.start(1, WAIT, mark=False)
    assert proc.kill_groups([(child.pid, child.started - 1, f"{attempts.run}.1")], grace=0) == []
    assert proc.kill_groups([(child.pid, 0, "")], grace=0) == []
    assert proc.live_members(child.pid)
    assert not proc.process_gone(child.pid, child.started)


def test_a_process_is_gone_when_it_ended_or_its_number_has_passed_on(attempts):
    child = attempts.start(1, "echo > $READY; read x < $READY")
    assert not proc.process_gone(child.pid, child.started)
    assert not proc.process_gone(child.pid, 0)
    assert proc.process_gone(child.pid, child.started + 1)
    attempts.ready.write_text("on\n")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert proc.process_gone(child.pid, child.started)  # a zombie
    os.waitpid(child.pid, 0)
    assert proc.process_gone(child.pid, child.started)


def test_stragglers_of_one_attempt_are_ended_and_no_others(attempts):
    attempts.start(1, "echo > $READY; exec sleep 300")
    attempts.start(11, "echo > $READY; exec sleep 300")
    proc.end_stragglers(f"{attempts.run}.1")
    os.waitpid(attempts.children[0].pid, 0)
    assert [value for *_, value in proc.attempts_alive(attempts.run)] == [f"{attempts.run}.11"]


def test_a_process_with_an_odd_name_is_read(attempts, tmp_path):
    tool = tmp_path / "a) R 1 (b"
    tool.symlink_to("/bin/sleep")
    fd = os.open(os.devnull, os.O_WRONLY)
    child = proc.spawn([str(tool), "300"], env=dict(os.environ), cwd=os.getcwd(), stdout_fd=fd)
    os.close(fd)
    attempts.children.append(child)
    found = read_process(child.pid)
    assert (found.parent, found.group, found.started) == (os.getpid(), child.pid, child.started)

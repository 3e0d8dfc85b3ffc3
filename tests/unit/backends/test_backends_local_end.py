"""Local attempts that are ended: time limits, cancelling, and what they leave behind."""

from __future__ import annotations

import os
import signal
import time

import pytest

from treadle.base import proc
from treadle.engine.backend import Accepted
from treadle.records.event import EndReason

STUBBORN = "trap '' TERM; touch ready; while :; do sleep 300; done"


def begin(local, text: str, shell: str = "bash", **changes) -> tuple[int, str]:
    n, answer = local.start(shell, "-c", text, **changes)
    assert isinstance(answer, Accepted)
    local.until("ready")
    return n, answer.job


def nobody_left(local) -> bool:
    return proc.attempts_alive(local.run) == []


def test_the_time_limit_ends_an_attempt(local):
    began = time.monotonic()
    outcome = local.sh("sleep 300", time_limit=1)
    assert (outcome.reason, outcome.signal) == (EndReason.TIME, signal.SIGTERM)
    assert "1s" in outcome.message
    assert 1 <= outcome.usage.wall <= time.monotonic() - began
    assert nobody_left(local)


def test_what_ignores_the_time_limit_is_killed_after_its_grace(local):
    outcome = local.sh("trap '' TERM; sleep 300; sleep 300", time_limit=1, grace=0.3)
    assert (outcome.reason, outcome.signal) == (EndReason.TIME, signal.SIGKILL)
    assert outcome.usage.wall >= 1.3
    assert nobody_left(local)


def test_an_attempt_that_ends_in_time_is_not_touched(local):
    outcome = local.sh("exit 3", time_limit=1)
    assert (outcome.reason, outcome.exit_code) == (EndReason.APP, 3)
    assert local.backend.next_timeout() is None


def test_exit_0_after_the_time_limit_is_no_success(local):
    outcome = local.sh("trap 'exit 0' TERM; sleep 300 & wait", time_limit=1)
    assert (outcome.reason, outcome.exit_code) == (EndReason.TIME, 0)


def test_a_warning_comes_before_the_time_limit(local):
    text = "trap 'echo saved > state; exit 0' TERM; touch ready; sleep 300 & wait"
    outcome = local.sh(text, time_limit=100, signal_before_end=99)
    assert (outcome.reason, outcome.exit_code) == (EndReason.OK, 0)
    assert (local.folder / "state").read_text() == "saved\n"
    assert outcome.usage.wall < 60


def test_what_ends_badly_after_the_warning_ended_for_time(local):
    outcome = local.sh("sleep 300", time_limit=100, signal_before_end=99)
    assert (outcome.reason, outcome.signal) == (EndReason.TIME, signal.SIGTERM)


def test_after_the_warning_children_have_until_the_limit(local):
    # The shell has no trap and ends at once; what it started saves its state.
    text = "bash -c 'trap \"sleep 0.3; echo saved > state; exit\" TERM; touch ready; sleep 300 & wait' | cat"
    n, _ = begin(local, text, time_limit=60, signal_before_end=59)
    local.finish(n)
    assert (local.folder / "state").read_text() == "saved\n"


def test_cancelling_asks_first(local):
    n, job = begin(local, "trap 'echo bye; exit 7' TERM; touch ready; sleep 300 & wait")
    local.backend.cancel([job])
    (outcome,) = local.finish(n)
    assert (outcome.reason, outcome.exit_code) == (EndReason.CANCELLED, 7)
    assert local.told(n) == "bye\n"
    assert nobody_left(local)


def test_cancelling_kills_after_the_grace(local):
    n, job = begin(local, STUBBORN, grace=0.2)
    local.backend.cancel([job])
    (outcome,) = local.finish(n)
    assert (outcome.reason, outcome.signal) == (EndReason.CANCELLED, signal.SIGKILL)
    assert nobody_left(local)


def test_cancelling_with_force_does_not_wait(local):
    n, job = begin(local, STUBBORN, grace=300)
    local.backend.cancel([job])
    local.backend.cancel([job, "99999999", "no-number"], force=True)
    (outcome,) = local.finish(n)
    assert (outcome.reason, outcome.signal) == (EndReason.CANCELLED, signal.SIGKILL)
    assert outcome.usage.wall < 60


def test_children_have_the_grace_when_their_shell_ends_at_once(local):
    text = "bash -c 'trap \"sleep 0.3; echo clean > state; exit\" TERM; touch ready; sleep 300 & wait' | cat"
    n, job = begin(local, text, grace=30)
    local.backend.cancel([job])
    (outcome,) = local.finish(n)
    assert outcome.reason is EndReason.CANCELLED
    assert (local.folder / "state").read_text() == "clean\n"
    assert outcome.usage.wall < 20


def test_children_that_outlive_their_shell_are_killed_after_the_grace(local):
    text = f'bash -c "{STUBBORN}" & wait'
    n, job = begin(local, text, grace=0.3)
    local.backend.cancel([job])
    (outcome,) = local.finish(n)
    assert (outcome.reason, outcome.signal) == (EndReason.CANCELLED, signal.SIGTERM)
    assert nobody_left(local)


def test_force_ends_what_outlives_its_shell(local):
    n, job = begin(local, f'bash -c "{STUBBORN}" & wait', grace=300)
    local.backend.cancel([job])
    local.turn(0.05)
    local.backend.cancel([job], force=True)
    local.finish(n)
    assert nobody_left(local)


def test_a_cancelled_attempt_leaves_nothing_in_other_sessions(local):
    n, job = begin(local, f'setsid bash -c "{STUBBORN}" & wait')
    local.backend.cancel([job])
    local.finish(n)
    deadline = time.monotonic() + 10
    while not nobody_left(local):
        assert time.monotonic() < deadline


def test_a_stopped_attempt_can_be_cancelled(local):
    n, job = begin(local, "touch ready; sleep 300", grace=300)
    os.killpg(int(job), signal.SIGSTOP)
    local.backend.cancel([job])
    (outcome,) = local.finish(n)
    assert outcome.reason is EndReason.CANCELLED


def test_an_attempt_that_ended_before_it_was_cancelled_keeps_its_end(local):
    n, answer = local.start("true")
    os.waitid(os.P_PID, int(answer.job), os.WEXITED | os.WNOWAIT)
    local.backend.cancel([answer.job])
    (outcome,) = local.finish(n)
    assert (outcome.reason, outcome.exit_code) == (EndReason.OK, 0)


def test_one_cancelled_attempt_does_not_touch_its_neighbours(local):
    os.mkfifo(local.folder / "hold")
    others = [local.start("sh", "-c", "read x < hold") for _ in range(2)]
    n, job = begin(local, "touch ready; sleep 300")
    local.backend.cancel([job])
    local.finish(n)
    assert sorted(local.live) == sorted(answer.job for _, answer in others)


@pytest.mark.parametrize("force", [False, True])
def test_many_are_cancelled_together(local, force):
    for _ in range(8):
        local.start("sleep", "300")
    local.backend.cancel(list(local.live), force=force)
    local.finish()
    assert {outcome.reason for outcome in local.ended.values()} == {EndReason.CANCELLED}
    assert nobody_left(local)

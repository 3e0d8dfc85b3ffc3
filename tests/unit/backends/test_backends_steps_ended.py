"""Steps through the local backend that are killed, cancelled or out of time, and what is left of them."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from step_driver import BOTH, StepDriver, assert_clean, begun, writes

from treadle.base.errors import StepError
from treadle.base.groups import attempts_alive
from treadle.base.layout import ArtifactPlaces
from treadle.plan.task import Where
from treadle.records.event import EndReason
from treadle.steps.record import ArtifactState, Standing
from treadle.steps.spec import StepSpec


@pytest.mark.parametrize("code", [0, 7])
def test_os_exit_is_the_failure_of_the_step(steps, code):
    def fn(out):
        writes("half")(out)
        print("so far so good", flush=True)
        os._exit(code)

    spec = StepSpec("train", fn=fn)
    outcome = steps.perform(spec)
    assert (outcome.reason, outcome.exit_code) == (EndReason.APP, code)
    assert "os._exit" in outcome.message
    error = steps.error(spec)
    assert isinstance(error, StepError)
    assert "'train_" in str(error)
    assert "so far so good" in str(error)
    assert_clean(steps, spec)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_worker_that_is_killed_is_the_failure_of_its_step(steps, number):
    def fn(out):
        writes("half")(out)
        os.kill(os.getpid(), number)
        time.sleep(60)

    spec = StepSpec("train", fn=fn)
    outcome = steps.perform(spec)
    assert (outcome.reason, outcome.signal) == (EndReason.APP, number)
    assert signal.Signals(number).name in str(steps.error(spec))
    assert_clean(steps, spec)
    again = StepSpec("train", fn=writes("whole"))
    assert steps.perform(again).reason is EndReason.OK


def test_what_was_published_by_a_worker_that_was_killed_then_counts(steps):
    def fn(out):
        sys.modules["__main__"].encode_answer = lambda answer: os.kill(os.getpid(), signal.SIGKILL)
        writes("whole")(out)

    spec = StepSpec("train", fn=fn)
    outcome = steps.perform(spec)
    assert (outcome.reason, outcome.signal) == (EndReason.OK, signal.SIGKILL)
    assert steps.book.records[spec.task_id] == steps.seen(spec).record
    assert steps.content(spec) == "whole"


def test_the_time_limit_ends_a_worker(steps):
    def fn(out):
        writes("half")(out)
        time.sleep(300)

    spec = StepSpec("slow", fn=fn)
    outcome = steps.perform(spec, time_limit=1)
    assert outcome.reason is EndReason.TIME
    assert "time limit" in str(steps.error(spec))
    assert_clean(steps, spec, Standing.INTERRUPTED)


def test_a_worker_that_is_deaf_is_killed_after_its_grace(steps):
    def fn(out):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.system("sleep 300")

    outcome = steps.perform(StepSpec("deaf", fn=fn), time_limit=1, grace=0.2)
    assert (outcome.reason, outcome.signal) == (EndReason.TIME, signal.SIGKILL)


@BOTH
def test_a_function_that_looks_at_ctx_cancelled_ends_by_itself(steps, where, tmp_path):
    def fn(out, ctx):
        while not ctx.cancelled:
            (tmp_path / "ready").touch()
            time.sleep(0.01)
        with open(f"{ctx.checkpoint_dir}/state", "w") as file:
            file.write("saved")
        raise RuntimeError("stopping")

    spec = StepSpec("train", fn=fn)
    job = steps.submit(spec, where, grace=30)
    begun(steps, tmp_path / "ready")
    steps.backend.cancel([job])
    steps.until(lambda: not steps.live)
    assert steps.ended[spec.task_id].reason is EndReason.CANCELLED
    assert Path(ArtifactPlaces(steps.path(spec)).checkpoints, "state").read_text() == "saved"
    assert steps.seen(spec).status.state is Standing.INTERRUPTED


@BOTH
def test_what_was_finished_in_spite_of_being_cancelled_counts(steps, where, tmp_path):
    def fn(out, ctx):
        while not ctx.cancelled:
            (tmp_path / "ready").touch()
            time.sleep(0.01)
        writes("whole")(out)

    spec = StepSpec("train", fn=fn)
    job = steps.submit(spec, where, grace=30)
    begun(steps, tmp_path / "ready")
    steps.backend.cancel([job])
    steps.until(lambda: not steps.live)
    assert steps.ended[spec.task_id].reason is EndReason.OK
    assert steps.book.records[spec.task_id] == steps.seen(spec).record


def test_a_thread_that_does_not_hear_is_left_behind_in_bounded_time(steps, tmp_path):
    end = threading.Event()

    def fn(out):
        (tmp_path / "ready").touch()
        end.wait(60)

    spec = StepSpec("deaf", fn=fn)
    job = steps.submit(spec, Where.THREAD, grace=0.1)
    begun(steps, tmp_path / "ready")
    before = time.monotonic()
    steps.backend.cancel([job])
    steps.until(lambda: not steps.live)
    end.set()
    assert time.monotonic() - before < 20
    outcome = steps.ended[spec.task_id]
    assert outcome.reason is EndReason.CANCELLED
    assert "left behind" in outcome.message
    assert spec.task_id not in steps.book.errors


def test_a_thread_that_ends_after_all_is_closed_disturbs_nobody(tmp_path):
    """Its descriptor may be another one's by then."""
    steps, end = StepDriver(tmp_path), threading.Event()

    def fn(out):
        (tmp_path / "ready").touch()
        end.wait(60)

    spec = StepSpec("deaf", fn=fn)
    job = steps.submit(spec, Where.THREAD, grace=0.0)
    begun(steps, tmp_path / "ready")
    steps.backend.cancel([job])
    before = set(os.listdir("/dev/fd"))
    steps.close()
    assert len(before - set(os.listdir("/dev/fd"))) >= 3  # the pipe and the epoll
    readers = [os.pipe() for _ in range(10)]
    end.set()
    deadline = time.monotonic() + 30
    while steps.seen(spec).state is not ArtifactState.COMPLETE:
        assert time.monotonic() < deadline
    while any(one.name.startswith("treadle thread-") for one in threading.enumerate()):
        assert time.monotonic() < deadline
    for reader, writer in readers:
        assert not select.select([reader], [], [], 0)[0]
        os.close(reader)
        os.close(writer)


def test_whatever_the_function_leaves_running_ends_with_the_worker(steps, tmp_path):
    def fn(out):
        threading.Thread(target=time.sleep, args=(300,)).start()
        os.system("sleep 300 &")
        return "fine"

    assert steps.perform(StepSpec("leaky", fn=fn)).reason is EndReason.OK
    assert attempts_alive(steps.run.run) == []


def test_a_resumable_step_goes_on_after_kill_9(steps, tmp_path):
    def fn(out):
        with open(out, "a") as file:
            file.write("part ")
        if Path(out).read_text() == "part ":
            os.kill(os.getpid(), signal.SIGKILL)

    spec = StepSpec("train", fn=fn, resumable=True)
    assert steps.perform(spec).signal == signal.SIGKILL
    assert steps.perform(spec).reason is EndReason.OK
    assert steps.content(spec) == "part part "

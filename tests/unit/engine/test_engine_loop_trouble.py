"""The loop: signals, a full disk, a backend that fails, a lock that is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest
from loop_bench import BAD, Bench, task

from treadle.base.errors import DiskError, LockError
from treadle.engine.backend import Abilities, Submission
from treadle.engine.news import Interrupt
from treadle.plan.task import Policy
from treadle.records.event import AttemptEnded, AttemptStarted, End, EndReason, Event, Outcome, RunEnded
from treadle.records.recorder import Recorder
from treadle.testing.backend import OK
from treadle.testing.clock import JumpingClock

# Signals


def interrupting(bench: Bench, *numbers: int) -> None:
    """Send us signals once the first attempt has started."""

    def listener(events: Sequence[Event]) -> None:
        bench.heard.extend(events)
        if any(isinstance(event, AttemptStarted) for event in events):
            bench.listener = bench.heard.extend
            for number in numbers:
                os.kill(os.getpid(), number)

    bench.listener = lambda events: listener(events)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_cancels_what_runs_and_is_recorded(bench: Bench, number: int, code: int) -> None:
    def act(submission: Submission) -> None:
        bench.write("x", "half")

    bench.acts = {"a": act}
    interrupting(bench, number)
    before = signal.getsignal(number)
    result = bench.drive(task("a", outputs=["x"]), task("b", ["a"]))
    assert result.exit_code == code
    assert result.counts == {"cancelled": 2}
    assert bench.ends() == {"a": End.CANCELLED}
    assert bench.names() == ["x.failed"]
    assert bench.events(RunEnded)[0].exit_code == code
    assert bench.backend.cancelled == [("1", False)]
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_is_forked_meanwhile_hears_signals_as_it_did_before_the_run(bench: Bench, number: int) -> None:
    ends: list[int] = []

    def act(submission: Submission) -> Outcome:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # that of a child that is deaf to the other one
            os.write(writer, b"\0")
            signal.pause()
            os._exit(0)
        os.read(reader, 1)
        os.kill(child, number)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return OK

    bench.acts = {"a": act}
    before = signal.signal(number, signal.SIG_DFL)
    try:
        assert bench.drive(task("a")).exit_code == 0
    finally:
        signal.signal(number, before)
    assert ends == [-number]


def test_a_hangup_leaves_jobs_that_outlive_us(bench: Bench) -> None:
    bench.backend.abilities = Abilities(adoption=True, batch=True)
    bench.acts = {"a": lambda submission: None}
    interrupting(bench, signal.SIGHUP)
    assert bench.drive(task("a")).exit_code == 143
    assert bench.backend.cancelled == []
    assert bench.ends() == {}


def test_an_interrupt_can_be_made_to_wait(bench: Bench) -> None:
    bench.acts = {"a": lambda submission: None}

    def listener(events: Sequence[Event]) -> None:
        if any(isinstance(event, AttemptStarted) for event in events):
            os.kill(os.getpid(), signal.SIGINT)
            bench.backend.end("a")

    bench.listener = listener
    result = bench.drive(task("a"), task("b", ["a"]), on_interrupt=Interrupt.WAIT)
    assert (result.exit_code, result.counts) == (130, {"succeeded": 1, "cancelled": 1})


# The disk, the backend, the lock


class Full:
    """Records on a disk that is full from the nth write on, until the clock has come to `until`."""

    def __init__(self, recorder: Recorder, clock: JumpingClock, nth: int, until: float) -> None:
        self.recorder, self.clock, self.nth, self.until = recorder, clock, nth, until

    def write(self, events: Sequence[Event]) -> None:
        self.nth -= 1
        if self.nth < 0 and self.clock.monotonic() < self.until:
            raise DiskError("no space", code="disk-full")
        self.recorder.write(events)

    def sync(self) -> None:
        self.recorder.sync()


@pytest.mark.parametrize("nth", range(3))
def test_a_journal_that_cannot_be_written_is_waited_for(bench: Bench, nth: int) -> None:
    bench.wrap = lambda recorder: Full(recorder, bench.clock, nth, 35.0)
    result = bench.drive(task("a", outputs=["a"]), task("b", ["a"], inputs=["a"], outputs=["b"]))
    assert result.exit_code == 0
    assert bench.ends() == {"a": End.SUCCEEDED, "b": End.SUCCEEDED}
    assert isinstance(bench.events()[-1], RunEnded)
    started = [event.n for event in bench.events(AttemptStarted)]
    assert len(bench.backend.submissions) == len(started) == 2, "nothing starts without its intent"
    assert bench.clock.passed == pytest.approx(40, abs=3)


def test_a_journal_that_stays_unwritable_ends_the_run_with_3(bench: Bench) -> None:
    bench.wrap = lambda recorder: Full(recorder, bench.clock, 0, 10_000.0)
    assert bench.drive(task("a")).exit_code == 3
    assert bench.backend.submissions == []
    assert 600 <= bench.clock.passed <= 620


def test_a_last_write_that_stays_impossible_ends_the_run_with_3(bench: Bench) -> None:
    bench.wrap = lambda recorder: Full(recorder, bench.clock, 1, 10_000.0)
    assert bench.drive(task("a")).exit_code == 3
    assert len(bench.backend.submissions) == 1


def test_an_attempt_that_fails_for_the_disk_is_tried_again_when_there_is_space(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = {"free": 0}
    real = os.statvfs("/")

    def statvfs(path: str) -> os.statvfs_result:
        return os.statvfs_result((1, 1, *real[2:4], space["free"], *real[5:]))

    monkeypatch.setattr(os, "statvfs", statvfs)

    def act(submission: Submission) -> Outcome:
        return BAD if submission.attempt == 1 else OK

    bench.acts = {"a": act}
    wait = bench.clock.wait

    def waiting(selector: Any, timeout: float | None) -> Any:
        if bench.clock.passed > 25:
            space["free"] = 1 << 30
        return wait(selector, timeout)

    bench.clock.wait = waiting  # type: ignore[method-assign]
    assert bench.drive(task("a"), task("b", ["a"])).exit_code == 0
    (ended,) = bench.events(AttemptEnded)
    assert ended.outcome.reason is EndReason.DISK
    assert bench.codes() == ["disk_waiting", "disk_fine"]
    assert 30 <= bench.clock.passed < 45


def test_a_backend_that_fails_ends_the_run_with_3(bench: Bench) -> None:
    def act(submission: Submission) -> None:
        bench.backend.outage = "no controller"

    bench.acts = {"a": act}
    assert bench.drive(task("a"), task("b", ["a"])).exit_code == 3
    assert "backend_failed" in bench.codes()


def test_a_backend_that_fails_as_it_is_called_ends_the_run_with_3(bench: Bench) -> None:
    bench.backend.outage = "no controller"
    assert bench.drive(task("a")).exit_code == 3
    assert bench.ends() == {"a": End.FAILED}


def test_a_lock_that_is_lost_stops_everything_and_leaves_no_process(bench: Bench) -> None:
    class Lost:
        def __init__(self, recorder: Recorder) -> None:
            self.recorder, self.writes = recorder, 0

        def write(self, events: Sequence[Event]) -> None:
            self.writes += 1
            if self.writes > 1:
                raise LockError("no longer ours")
            self.recorder.write(events)

        def sync(self) -> None:
            self.recorder.sync()

    bench.wrap = Lost
    bench.acts = {"a": lambda submission: None}
    with pytest.raises(LockError):
        bench.drive(task("a"))
    assert bench.backend.running == {}


def test_the_lock_beats_while_the_run_waits(bench: Bench) -> None:
    beats: list[float] = []

    class Lock:
        def beat(self) -> None:
            beats.append(bench.clock.monotonic())

    bench.lock = Lock()
    bench.acts = {"a": lambda submission: BAD if submission.attempt == 1 else OK}
    bench.drive(task("a", policy=Policy(retries=1, retry_delay=100)))
    assert [round(beat) for beat in beats] == [0, 15, 30, 45, 60, 75, 90]


def test_a_bug_in_a_listener_leaves_no_process(bench: Bench) -> None:
    bench.acts = {"a": lambda submission: None}

    def broken(events: Sequence[Event]) -> None:
        if any(isinstance(event, AttemptStarted) for event in events):
            raise RuntimeError("broken")

    bench.listener = broken
    with pytest.raises(RuntimeError):
        bench.drive(task("a"))
    assert bench.backend.running == {}

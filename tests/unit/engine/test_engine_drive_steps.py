"""The loop with steps: what it hands to the backend, deferred attempts, sources, threads of the user."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.base.errors import PlanError
from treadle.base.layout import RunFolder, StateFolder
from treadle.engine.backend import Submission
from treadle.engine.loop import BackendDriver, DriveOptions, DriveResult, drive
from treadle.engine.source import Batch
from treadle.plan.task import Policy, Resources, ScheduledTask, Where
from treadle.records.event import (
    AttemptStarted,
    AttemptSubmitted,
    End,
    EndReason,
    Event,
    Noticed,
    Outcome,
    PlanEntered,
    RunEnded,
    TaskSettled,
    evidence_key,
)
from treadle.records.past import Past
from treadle.testing import plans
from treadle.testing.backend import OK, Defer, FakeBackend
from treadle.testing.clock import JumpingClock

BAD = Outcome(reason=EndReason.APP, message="it raised")
step = plans.step


class Kept:
    """Records in a list."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, events: Sequence[Event]) -> None:
        self.events += events

    def sync(self) -> None:
        pass


class Batches:
    """A source that gives one batch after the other, the next when a task of ours has ended."""

    def __init__(self, *batches: list[ScheduledTask], later: bool = False) -> None:
        self.left = list(batches)
        self.due = not later
        self.started = self.stopped = 0
        self.ends: dict[str, End] = {}
        self.endless: Callable[[], list[ScheduledTask]] | None = None

    def start(self, ring: Callable[[], None]) -> None:
        self.started += 1
        self.ring = ring

    def take(self) -> list[Batch]:
        if not self.due or self.stopped or self.done:
            return []
        self.due = False
        plan = plans.plan(self.endless() if self.endless else self.left.pop(0))
        return [Batch(plan, plans.decision(plan), "digest")]

    def ended(self, task: str, end: End) -> None:
        self.ends[task] = end
        self.due = True
        self.ring()

    @property
    def done(self) -> bool:
        return not self.left and self.endless is None

    def stop(self) -> None:
        self.stopped += 1


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = RunFolder(StateFolder(str(folder)).run("20260101T000000Z-aaaa").root)
        os.makedirs(self.run.logs)
        self.acts: dict[str, Any] = {}
        self.backend = FakeBackend(self._act)
        self.kept = Kept()
        self.listener: Callable[[Sequence[Event]], None] = lambda events: None

    def _act(self, submission: Submission) -> Any:
        act = self.acts.get(submission.task.id, OK)
        return act(submission) if callable(act) else act

    def drive(
        self,
        *tasks: ScheduledTask,
        source: Batches | None = None,
        clock: JumpingClock | None = None,
        **options: Any,
    ) -> DriveResult:
        plan = plans.plan(tasks)
        return drive(
            plan,
            plans.decision(plan),
            Past(),
            self.backend,
            self.kept,
            DriveOptions(**{"jobs": 2, "max_concurrent": 4, "max_remote": 4, **options}),
            run=self.run,
            workdir=str(self.folder),
            clock=clock or JumpingClock(),
            listener=self.listener,
            source=source,
        )

    def events(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.kept.events if isinstance(event, kind)]

    def ends(self) -> dict[str, End]:
        return {event.task: event.state for event in self.events(TaskSettled)}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# What the backend gets


def test_a_step_is_handed_over_without_a_command(bench: Bench) -> None:
    asking = Resources(threads=64, time_limit=60)
    bench.drive(
        step("@a", where=Where.CLIENT, resources=asking), step("@b", where=Where.PROCESS, resources=asking)
    )
    first, second = bench.backend.submissions
    assert (first.argv, first.cwd, first.log) == ((), str(bench.folder), bench.run.attempt_log(1))
    assert first.env == {"TREADLE_ATTEMPT": "20260101T000000Z-aaaa.1"}
    assert first.resources == asking
    assert second.resources == Resources(threads=2, time_limit=60)
    submitted = bench.events(AttemptSubmitted)[0]
    assert (submitted.task, submitted.outputs, submitted.before) == ("@a", (), ())


def test_a_step_without_inputs_leaves_no_evidence_here(bench: Bench) -> None:
    bench.drive(step("@a"))
    (settled,) = bench.events(TaskSettled)
    assert settled.evidence is None
    assert settled.key == evidence_key("small", "@a", (), "made/a")


@pytest.mark.parametrize("path", ["made/a", "s3://bucket/a"])
def test_a_step_that_fails_where_its_own_disk_is_full_is_tried_again_when_there_is_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    staging, clock, real = bench.folder / "staging", JumpingClock(), os.statvfs(bench.folder)
    (bench.folder / "made").mkdir()
    staging.mkdir()
    monkeypatch.setenv("TREADLE_STAGING", str(staging))
    written = str(staging if "://" in path else bench.folder / "made")
    tries: list[float] = []

    def statvfs(folder: str) -> os.statvfs_result:
        free = 0 if folder == written and clock.passed < 25 else 1 << 30
        return os.statvfs_result((1, 1, *real[2:4], free, *real[5:]))

    def act(submission: Submission) -> Outcome:
        tries.append(clock.passed)
        return BAD if len(tries) == 1 else OK

    monkeypatch.setattr(os, "statvfs", statvfs)
    bench.acts = {"@a": act}
    task = step("@a")
    assert task.call is not None
    task = replace(task, call=replace(task.call, path=path))
    assert bench.drive(task, clock=clock).exit_code == 0
    assert len(tries) == 2
    assert tries[1] >= 30


def test_a_step_with_inputs_leaves_evidence_of_them_alone(bench: Bench) -> None:
    (bench.folder / "in.txt").write_text("x")
    bench.drive(step("@a", inputs=["in.txt"]))
    (settled,) = bench.events(TaskSettled)
    assert [record.path for record in settled.evidence.inputs] == ["in.txt"]
    assert settled.evidence.outputs == ()


def test_an_input_that_changed_meanwhile_is_told(bench: Bench) -> None:
    path = bench.folder / "in.txt"
    path.write_text("x")

    def meddle(submission: Submission) -> Outcome:
        path.write_text("other")
        return OK

    bench.acts["@a"] = meddle
    bench.drive(step("@a", inputs=["in.txt"]))
    assert [event.code for event in bench.events(Noticed)] == ["input_changed"]


def test_a_failed_step_leaves_a_script_that_says_how_to_call_it(bench: Bench) -> None:
    bench.acts["@a"] = BAD
    result = bench.drive(step("@a"), step("@b", ["@a"]))
    assert (result.exit_code, result.blocked) == (1, {"@b": "@a"})
    assert result.failures[0].outcome == BAD
    text = Path(bench.run.attempt_text(1)).read_text()
    assert text.startswith("#!/bin/sh\n")
    assert f"cd -- {bench.folder} || exit 1\nexec treadle exec PIPELINE.py @a\n" in text


def test_no_attempt_of_a_step_touches_the_disk(bench: Bench) -> None:
    before = sorted(os.walk(bench.folder))
    bench.drive(step("@a"), step("@b", ["@a"]))
    assert sorted(os.walk(bench.folder)) == before


# Deferred


def test_a_deferred_attempt_is_submitted_again_under_its_one_intent(bench: Bench) -> None:
    answers = iter([Defer("them", at_once=True), OK])
    bench.acts["@a"] = lambda submission: next(answers)
    result = bench.drive(step("@a"), step("@b", ["@a"]), max_concurrent=1)
    assert result.counts == {"succeeded": 2}
    first, second, _ = bench.backend.submissions
    assert (first.attempt, first.n, first.name) == (second.attempt, second.n, second.name)
    assert [event.n for event in bench.events(AttemptSubmitted)] == [1, 2]
    assert [(event.n, event.job) for event in bench.events(AttemptStarted)] == [(1, "1"), (1, "2"), (2, "3")]
    (told,) = bench.events(Noticed)
    assert (told.code, told.values) == ("lease_held", {"holder": "them", "path": "made/a"})


def test_while_one_is_deferred_others_have_its_slot(bench: Bench) -> None:
    answers = iter([Defer("them"), OK])
    bench.acts["@a"] = lambda submission: next(answers)

    def free(submission: Submission) -> Outcome:
        bench.backend.free("@a")
        return OK

    bench.acts["@b"] = free
    result = bench.drive(step("@a"), step("@b"), step("@c", ["@a"]), max_concurrent=1)
    assert result.counts == {"succeeded": 3}
    assert [one.task.id for one in bench.backend.submissions] == ["@a", "@b", "@a", "@c"]


def test_an_interruption_ends_what_is_deferred(bench: Bench) -> None:
    bench.acts["@a"] = Defer("them")

    def interrupt(events: Sequence[Event]) -> None:
        if any(isinstance(event, Noticed) for event in events):
            signal.raise_signal(signal.SIGINT)

    bench.listener = interrupt
    result = bench.drive(step("@a"), step("@b", ["@a"]))
    assert (result.exit_code, result.counts) == (130, {"cancelled": 2})
    assert bench.backend.cancelled == [("1", True)]
    assert not bench.backend.deferred
    assert bench.ends() == {"@a": End.CANCELLED}


# Sources


def test_batches_join_until_the_source_is_done(bench: Bench) -> None:
    source = Batches([step("@b", ["@a"])], [step("@c", ["@b"]), step("@d")])
    result = bench.drive(step("@a"), source=source)
    assert (result.exit_code, result.counts) == (0, {"succeeded": 4})
    assert source.ends == dict.fromkeys(["@a", "@b", "@c", "@d"], End.SUCCEEDED)
    assert (source.started, source.stopped) == (1, 1)
    assert [(event.round, event.tasks) for event in bench.events(PlanEntered)] == [(1, 1), (2, 2), (3, 4)]
    assert isinstance(bench.kept.events[-1], RunEnded)


def test_a_source_without_anything_ends_the_run_at_once(bench: Bench) -> None:
    assert bench.drive(source=Batches()).counts == {}


def test_a_batch_may_come_from_another_thread_while_nothing_runs(bench: Bench) -> None:
    source = Batches([step("@b")], later=True)

    def bring() -> None:
        source.due = True
        source.ring()

    def start(ring: Callable[[], None]) -> None:
        source.ring = ring
        threading.Timer(0.05, bring).start()

    source.start = start  # type: ignore[method-assign]
    assert bench.drive(source=source).counts == {"succeeded": 1}


def test_a_failure_stops_the_source(bench: Bench) -> None:
    bench.acts["@a"] = BAD
    source = Batches([step("@b")], later=True)
    result = bench.drive(step("@a"), source=source)
    assert (result.exit_code, result.counts) == (1, {"failed": 1})
    assert source.stopped == 1


def test_with_keep_going_it_is_asked_for_more(bench: Bench) -> None:
    bench.acts["@a"] = BAD
    source = Batches([step("@b", ["@a"]), step("@c")], later=True)
    result = bench.drive(step("@a"), source=source, keep_going=True, forget=True)
    assert (result.exit_code, result.counts) == (1, {"failed": 1, "blocked": 1, "succeeded": 1})
    assert result.blocked == {"@b": "@a"}


def test_an_interruption_stops_an_endless_source(bench: Bench) -> None:
    source = Batches()
    numbers = iter(range(10**9))
    source.endless = lambda: [step(f"@{next(numbers)}") for _ in range(3)]

    def interrupt(events: Sequence[Event]) -> None:
        if len(source.ends) > 50:
            signal.raise_signal(signal.SIGINT)

    bench.listener = interrupt
    result = bench.drive(source=source, forget=True)
    assert result.exit_code == 130
    assert source.stopped == 1


def test_a_source_that_raises_leaves_nothing_behind(bench: Bench) -> None:
    source = Batches([step("@b")], later=True)
    source.endless = lambda: 1 // 0  # type: ignore[return-value]
    bench.acts["@a"] = None

    def bring(submission: Submission) -> None:
        source.due = True

    bench.acts["@a"] = bring
    with pytest.raises(ZeroDivisionError):
        bench.drive(step("@a"), source=source)
    assert source.stopped == 1
    assert bench.backend.cancelled == [("1", True)]


# The driver itself


def test_the_driver_runs_in_a_thread_that_is_not_the_main_one(bench: Bench) -> None:
    found: list[DriveResult] = []
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: found.append(bench.drive(step("@a"), step("@b", ["@a"]))))
    thread.start()
    thread.join(30)
    assert found[0].counts == {"succeeded": 2}
    assert signal.getsignal(signal.SIGINT) is before


def test_the_driver_is_an_object_with_one_method(bench: Bench) -> None:
    plan = plans.plan([step("@a", policy=Policy())])
    driver = BackendDriver(
        plan,
        plans.decision(plan),
        Past(),
        bench.backend,
        bench.kept,
        DriveOptions(max_concurrent=1),
        run=bench.run,
        workdir=str(bench.folder),
    )
    assert driver.run().counts == {"succeeded": 1}


def test_what_can_never_run_here_is_refused_before_anything_starts(bench: Bench) -> None:
    with pytest.raises(PlanError, match="step 'a' asks for 1 GPU"):
        bench.drive(step("@a", where=Where.PROCESS, resources=Resources(gpus=1)), step("@b"), gpus=0)
    assert not bench.backend.submissions

"""The loop with a backend whose jobs outlive it: what it hears, what it writes, what it leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.backends.pair import PairBackend
from treadle.base.layout import StateFolder
from treadle.engine.backend import Abilities, JobStatus, Remark, Submission, Witnessed, Written
from treadle.engine.loop import DriveOptions, DriveResult, drive
from treadle.engine.news import InFlight, Interrupt
from treadle.plan.task import Growth, Policy, Resources, ScheduledTask
from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    AttemptSubmitted,
    EndReason,
    Event,
    EvidenceWithdrawn,
    JobSeen,
    Noticed,
    Outcome,
    RunDetached,
    RunEnded,
    RunStarted,
    TaskSettled,
)
from treadle.records.job import jobs_of
from treadle.records.journal import Journal, is_ended, read_journal
from treadle.records.past import Past
from treadle.testing import plans
from treadle.testing.backend import OK, FakeBackend, FakeQueue
from treadle.testing.clock import JumpingClock

STAYS = Abilities(adoption=True, batch=True)
OLD = "20260101T000000Z-0000"
OOM = Outcome(reason=EndReason.OOM)


class Bench:
    """A work folder in which one plan is driven once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = StateFolder(str(folder)).run("20260101T000001Z-aaaa")
        self.backend = FakeBackend(self._act, STAYS)
        self.acts: dict[str, Callable[[Submission], Outcome | str | None]] = {}
        self.clock = JumpingClock()
        self.heard: Callable[[Event], None] = lambda event: None

    def _act(self, submission: Submission) -> Outcome | str | None:
        act = self.acts.get(submission.task.id)
        if act is not None:
            return act(submission)
        self.make(submission)
        return OK

    def make(self, submission: Submission) -> None:
        for path in submission.task.outputs:
            (self.folder / path).write_text(submission.task.id)

    def drive(self, *tasks: ScheduledTask, **wiring: Any) -> DriveResult:
        os.makedirs(self.run.logs)
        first = RunStarted(time=0.0, format=1, run=self.run.run, treadle="0", workflow="small")
        journal = Journal.create(self.run.events, first)
        plan = plans.plan(tasks)
        options = wiring.pop("options", DriveOptions())
        try:
            return drive(
                plan,
                plans.decision(plan),
                Past(),
                self.backend,
                journal,
                options,
                run=self.run,
                workdir=str(self.folder),
                clock=self.clock,
                listener=lambda events: [self.heard(one) for one in events] and None,
                **wiring,
            )
        finally:
            journal.close()

    def events(self, kind: type[Event] = Event) -> list[Any]:
        return [event for event in read_journal(self.run.events).events if isinstance(event, kind)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


task = plans.task


def test_an_intent_tells_the_identity_by_which_its_job_is_known_again(bench: Bench) -> None:
    bench.drive(task("a"), task("b", text="other"))
    one, other = bench.events(AttemptSubmitted)
    assert one.identity != other.identity != ""
    assert all(event.waiting for event in bench.events(AttemptStarted))


def test_an_attempt_that_asks_for_more_than_its_task_says_so(bench: Bench) -> None:
    ends = iter([OOM, OK])
    bench.acts["a"] = lambda submission: next(ends)
    policy = Policy(retries=1, retry_memory=Growth(2.0, 0))
    bench.drive(task("a", resources=Resources(memory=5), policy=policy))
    assert [event.grown for event in bench.events(AttemptSubmitted)] == [None, Resources(memory=10)]


def test_where_a_job_waits_and_what_it_is_called_is_written_once(bench: Bench) -> None:
    def act(submission: Submission) -> None:
        return None

    bench.acts["a"] = act
    steps = iter(
        [
            lambda: bench.backend.show("a", JobStatus.PENDING, "Priority"),
            lambda: bench.backend.show("a", JobStatus.PENDING, "Priority", "501"),
            lambda: bench.backend.show("a", JobStatus.PENDING, "Priority", "501"),
            lambda: bench.backend.show("a", JobStatus.RUNNING, "", "501"),
            lambda: bench.backend.show("a", JobStatus.PENDING, "requeued: BeginTime", "501"),
            lambda: bench.backend.show("a", JobStatus.RUNNING, "", "501"),
            lambda: bench.backend.end("a"),
        ]
    )
    _stepwise(bench, steps)
    bench.drive(task("a"))
    assert [(one.state, one.job, one.reason) for one in bench.events(JobSeen)] == [
        ("pending", "", "Priority"),
        ("pending", "501", "Priority"),
        ("running", "501", ""),
        ("pending", "501", "requeued: BeginTime"),
        ("running", "501", ""),
    ]
    (job,) = jobs_of(bench.events())
    assert (job.job, job.state) == ("501", "succeeded")


def _stepwise(bench: Bench, steps: Any) -> None:
    """Let the world take its next step whenever the driver has nothing to do."""
    wait = bench.clock.wait

    def next_wait(selector: Any, timeout: float | None) -> list[object]:
        if timeout is None or timeout > 0:
            step = next(steps, None)
            if step is not None:
                step()
                return []
        return wait(selector, timeout)

    bench.clock.wait = next_wait  # type: ignore[method-assign]
    # a poll is due whenever the backend has news
    bench.backend.next_timeout = lambda: 0.0 if bench.backend._news else 1.0  # type: ignore[method-assign]


def test_what_the_backend_remarks_is_written(bench: Bench) -> None:
    bench.backend.said = [Remark("backend_down", {"message": "no controller"})]
    bench.drive(task("a"))
    assert [(one.code, one.values) for one in bench.events(Noticed)] == [
        ("backend_down", {"message": "no controller"})
    ]


def test_a_file_may_arrive_late(bench: Bench) -> None:
    bench.backend.abilities = Abilities(adoption=True, batch=True, latency=30.0)
    bench.acts["a"] = lambda submission: OK
    wait = bench.clock.wait

    def arrives(selector: Any, timeout: float | None) -> list[object]:
        if bench.clock.passed > 10:
            (bench.folder / "a.txt").write_text("late")
        return wait(selector, timeout)

    bench.clock.wait = arrives  # type: ignore[method-assign]
    assert bench.drive(task("a", outputs=["a.txt"])).exit_code == 0
    assert bench.clock.passed < 30


def test_a_file_that_never_arrives_fails_its_task(bench: Bench) -> None:
    bench.backend.abilities = Abilities(adoption=True, batch=True, latency=30.0)
    bench.acts["a"] = lambda submission: OK
    result = bench.drive(task("a", outputs=["a.txt"]))
    assert "did not make a.txt" in result.failures[0].outcome.message  # type: ignore[union-attr]
    assert 29 < bench.clock.passed < 40


def test_the_digests_of_a_job_are_its_evidence(bench: Bench) -> None:
    def act(submission: Submission) -> Outcome:
        bench.make(submission)
        stat = os.stat(bench.folder / "a.txt")
        note = Written(0, "f", stat.st_size, stat.st_mtime_ns, "e" * 64)
        bench.backend.written["a"] = Witnessed(outputs=(note,), end=stat.st_mtime)
        return OK

    bench.acts["a"] = act
    bench.drive(task("a", outputs=["a.txt"]))
    (settled,) = bench.events(TaskSettled)
    assert settled.evidence.outputs[0].digest == "e" * 64


def test_a_success_that_is_taken_back_is_set_aside_and_made_again(bench: Bench) -> None:
    bench.backend.provisional = {"a"}
    count = iter((1, 2))

    def act(submission: Submission) -> Outcome:
        number = next(count)
        (bench.folder / "a.txt").write_text(str(number))
        if number == 2:
            bench.backend.provisional = set()
        return OK

    def heard(event: Event) -> None:
        if isinstance(event, TaskSettled) and event.n == 1:
            bench.backend.tell_again("1", OOM)

    bench.acts["a"], bench.heard = act, heard
    result = bench.drive(
        task("a", outputs=["a.txt"], policy=Policy(retries=1)), options=DriveOptions(linger=20.0)
    )
    assert result.exit_code == 0
    assert [event.again for event in bench.events(EvidenceWithdrawn)] == [True]
    assert (bench.folder / "a.txt").read_text() == "2"
    assert (bench.folder / "a.txt.failed").read_text() == "1"


# Adoption


def adopted(n: int = 7, *, anew: bool = False, before: Any = ()) -> InFlight:
    intent = AttemptSubmitted(
        time=5.0, task="a", attempt=1, n=n, name=f"old-{n}", backend="fake", outputs=("a.txt",),
        before=before, identity="i", run=OLD,
    )  # fmt: skip
    return InFlight(1, n, "501", intent, anew)


def test_a_job_that_nobody_knows_is_interrupted_cleaned_up_and_run_again(bench: Bench) -> None:
    (bench.folder / "a.txt").write_text("half")
    result = bench.drive(task("a", outputs=["a.txt"]), adopted={"a": adopted()})
    assert result.exit_code == 0
    (ended,) = bench.events(AttemptEnded)
    assert (ended.n, ended.run, ended.outcome.reason) == (7, OLD, EndReason.INTERRUPTED)
    assert (bench.folder / "a.txt.failed").read_text() == "half"
    assert [one.n for one in bench.events(AttemptSubmitted)] == [7, 8]


def test_a_job_that_an_earlier_driver_had_cancelled_is_run_again(bench: Bench) -> None:
    queue = FakeQueue()
    bench.backend = FakeBackend(bench._act, queue=queue)
    old = Submission(
        task=task("a", outputs=["a.txt"]), attempt=1, n=7, name="old-7", argv=(), env={}, cwd="", log="",
        resources=Resources(),
    )  # fmt: skip
    queue.ended["old-7"] = (old, Outcome(reason=EndReason.CANCELLED))
    result = bench.drive(old.task, adopted={"a": replace(adopted(), doomed=True)})
    assert result.exit_code == 0
    (ended,) = bench.events(AttemptEnded)
    assert ended.outcome.reason is EndReason.INTERRUPTED
    assert "had it cancelled" in ended.outcome.message


def test_jobs_of_a_backend_that_cannot_be_told_are_recorded_as_unheard(bench: Bench) -> None:
    def act(submission: Submission) -> None:
        bench.backend.outage = "no controller"

    bench.acts = {"a": act}
    result = bench.drive(task("a"))
    assert (result.exit_code, result.detached) == (3, 1)
    (seen,) = bench.events(JobSeen)
    assert (seen.task, seen.state, seen.reason) == ("a", "ending", "not heard: no controller")


def test_a_scheduler_that_fails_leaves_no_process_of_this_machine(bench: Bench) -> None:
    class Stubborn(FakeBackend):
        def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
            if force:
                super().cancel(jobs, force=force)

    here, there = Stubborn(lambda one: None, Abilities()), FakeBackend(lambda one: None, STAYS)
    there._count = 100
    bench.backend = PairBackend(here, there, local_rules={"b"})  # type: ignore[assignment]

    def heard(event: Event) -> None:
        if isinstance(event, AttemptStarted) and event.job == "101":
            there.outage = "no controller"

    bench.heard = heard
    result = bench.drive(task("a"), task("b"))
    assert (result.exit_code, result.detached) == (3, 1)
    assert here.cancelled == [("1", True)]


def test_a_failure_of_an_adopted_job_names_the_log_where_it_is(bench: Bench) -> None:
    queue = FakeQueue()
    sent: list[Submission] = []

    def act(submission: Submission) -> Outcome:
        sent.append(submission)
        return Outcome(reason=EndReason.APP, exit_code=2)

    bench.backend = FakeBackend(act, queue=queue)
    old = Submission(
        task=task("a", outputs=["a.txt"]), attempt=1, n=7, name="old-7", argv=(), env={}, cwd="", log="",
        resources=Resources(),
    )  # fmt: skip
    queue.waiting["old-7"] = old
    result = bench.drive(old.task, adopted={"a": adopted()})
    assert result.failures[0].log == bench.run.beside(OLD).attempt_log(7)
    (record,) = jobs_of(bench.events(), bench.run)
    assert record.log == result.failures[0].log


def test_what_a_job_of_another_command_made_is_set_aside(bench: Bench) -> None:
    queue = FakeQueue()
    bench.backend = FakeBackend(bench._act, queue=queue)
    one = task("a", outputs=["a.txt"])
    (bench.folder / "a.txt").write_text("of the old command")
    old = Submission(
        task=one, attempt=1, n=7, name="old-7", argv=(), env={}, cwd="", log="", resources=Resources()
    )
    queue.ended["old-7"] = (old, OK)
    result = bench.drive(one, adopted={"a": adopted(anew=True)})
    assert result.exit_code == 0
    assert (bench.folder / "a.txt.failed").read_text() == "of the old command"
    assert (bench.folder / "a.txt").read_text() == "a"
    assert [one.n for one in bench.events(TaskSettled)] == [8]


# Leaving


def _signalled(bench: Bench, number: int, *tasks: str, times: int = 1) -> None:
    """A signal comes once these are submitted, so many times."""
    left = set(tasks)

    def act(submission: Submission) -> None:
        left.discard(submission.task.id)
        if not left:
            for _ in range(times):
                os.kill(os.getpid(), number)

    for one in tasks:
        bench.acts[one] = act


def test_a_terminal_that_goes_away_leaves_the_jobs(bench: Bench) -> None:
    _signalled(bench, signal.SIGHUP, "a")
    result = bench.drive(task("a"), task("b", ["a"]))
    assert (result.exit_code, result.detached) == (143, 1)
    assert isinstance(bench.events()[-1], RunDetached)
    assert not is_ended(bench.run.events)
    assert bench.backend.cancelled == []


def test_sigterm_near_the_end_of_our_own_job_leaves_the_jobs(bench: Bench) -> None:
    _signalled(bench, signal.SIGTERM, "a")
    result = bench.drive(task("a"), options=DriveOptions(until=bench.clock.now() + 60))
    assert (result.exit_code, result.detached) == (143, 1)


@pytest.mark.parametrize("until", [None, 1_000_000.0 + 36_000])
def test_sigterm_at_any_other_time_cancels_them(bench: Bench, until: float | None) -> None:
    _signalled(bench, signal.SIGTERM, "a")
    result = bench.drive(task("a"), options=DriveOptions(until=until))
    assert (result.exit_code, result.detached) == (143, 0)
    assert bench.backend.cancelled
    assert isinstance(bench.events()[-1], RunEnded)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_who_is_told_twice_to_leave_the_jobs_leaves_them(bench: Bench, number: int) -> None:
    """A scheduler tells all processes of a job that it ends, and the wrapper passes that on."""
    _signalled(bench, number, "a", times=2)
    result = bench.drive(task("a"), options=DriveOptions(until=bench.clock.now() + 60))
    assert (result.exit_code, result.detached) == (143, 1)
    assert bench.backend.cancelled == []


def test_sigterm_that_a_job_hears_twice_at_once_is_one(bench: Bench) -> None:
    _signalled(bench, signal.SIGTERM, "a", times=2)
    result = bench.drive(task("a"), options=DriveOptions(until=bench.clock.now() + 36_000))
    assert (result.exit_code, result.detached) == (143, 0)
    assert [force for _, force in bench.backend.cancelled] == [False]


def test_ctrl_c_leaves_them_where_that_is_wished(bench: Bench) -> None:
    _signalled(bench, signal.SIGINT, "a")
    result = bench.drive(task("a"), options=DriveOptions(on_interrupt=Interrupt.DETACH))
    assert (result.exit_code, result.detached) == (130, 1)


def test_a_driver_that_cannot_go_on_leaves_jobs_and_ends_its_own_processes(bench: Bench) -> None:
    """`Jobs.abandon` in a run of two backends."""
    here, there = FakeBackend(lambda one: None, Abilities()), FakeBackend(lambda one: None, STAYS)
    there._count = 100
    bench.backend = PairBackend(here, there, local_rules={"b"})  # type: ignore[assignment]

    def heard(event: Event) -> None:
        if isinstance(event, AttemptStarted):
            raise RuntimeError("a bug")

    bench.heard = heard
    with pytest.raises(RuntimeError):
        bench.drive(task("a"), task("b"))
    assert [job for job, _ in here.cancelled] == ["1"]
    assert there.cancelled == []
    assert not is_ended(bench.run.events)

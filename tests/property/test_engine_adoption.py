"""The driver killed at any event, on a backend whose jobs go on: every task is at work exactly once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.api.adoption import taken
from treadle.base.layout import StateFolder
from treadle.decide.decide import Options, decide
from treadle.decide.facts import gather
from treadle.decide.reason import Decision, Verdict
from treadle.engine.backend import Submission
from treadle.engine.loop import DriveOptions, DriveResult, drive
from treadle.engine.news import Interrupt
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.compact import Checkpoint
from treadle.records.event import FORMAT, AttemptSubmitted, Event, Outcome, RunStarted, TaskSettled
from treadle.records.handover import Handover
from treadle.records.journal import Journal, is_ended, read_journal
from treadle.records.owner import Owner
from treadle.records.past import load_past
from treadle.records.recorder import Recorder
from treadle.records.recover import recover
from treadle.records.runs import new_run, prune
from treadle.records.version import prepare
from treadle.testing import plans
from treadle.testing.backend import OK, FakeBackend, FakeQueue
from treadle.testing.clock import JumpingClock

DEAD = Owner(uuid="of-a-run-elsewhere", host="elsewhere", pid=7, user="ann", locked=True)


class Killed(BaseException):
    """What `kill -9` is for a test."""


class Dying:
    """Records that are cut off after so many events; the last ones that were written are on the disk."""

    def __init__(self, records: Recorder | Handover, after: int, *, late: bool = False) -> None:
        self._records = records
        self._left = after
        self._late = late

    def write(self, events: Sequence[Event]) -> None:
        if len(events) < self._left or (self._late and len(events) == self._left):
            self._left -= len(events)
            self._records.write(events)
            if self._late and not self._left:
                raise Killed
            return
        self._records.write(events[: self._left])
        raise Killed

    def sync(self) -> None:
        self._records.sync()


class Folder:
    """A work folder in which one run after the other drives the same plan through the same queue."""

    def __init__(self, root: str, *tasks: ScheduledTask) -> None:
        self.root = root
        self.state = StateFolder(root)
        prepare(self.state)
        self.plan: ScheduledPlan = plans.plan(tasks)
        self.queue = FakeQueue()
        self.submitted: list[Submission] = []
        self.decision = Decision({})
        self.number = 0

    def script(self, submission: Submission) -> Outcome:
        waiting = [one.task.id for one in self.queue.waiting.values()]
        assert submission.task.id not in waiting, "two jobs of one task are in the queue"
        for path in submission.task.outputs:
            Path(self.root, path).write_text(f"{submission.task.id}\n")
        return OK

    def look(self) -> dict[str, Verdict]:
        """What a preview says."""
        past, options = load_past(self.state), Options(workdir=self.root, flowdir=self.root)
        decision = decide(self.plan, gather(self.plan, past, options), past, options)
        return {task: answer.verdict for task, answer in decision.answers.items()}

    def run(
        self,
        after: int = 0,
        *,
        late: bool = False,
        outer: bool = False,
        detach: bool = False,
    ) -> DriveResult | None:
        """Drive; killed after so many events (0: not), below or above what hands jobs over."""
        self.number += 1
        past = recover(self.state).past
        options = Options(workdir=self.root, flowdir=self.root)
        facts = gather(self.plan, past, options)
        self.decision = decide(self.plan, facts, past, options)
        if not self.decision.to_run() and not self.decision.in_flight():
            return DriveResult(exit_code=0, counts={})
        jobs = taken(self.plan, self.decision, past)
        folder = new_run(self.state, DEAD, now=1_800_000_000.0 + self.number)
        first = RunStarted(time=0.0, format=FORMAT, run=folder.run, treadle="0", workflow=self.plan.name)
        recorder = Recorder(Journal.create(folder.events, first), Checkpoint.open(self.state, folder.run))
        inner = Dying(recorder, after, late=late) if after and not outer else recorder
        records = Handover(inner, self.state, jobs.flights, folder.run)
        backend = FakeBackend(self.script, queue=self.queue)
        try:
            return drive(
                self.plan,
                self.decision,
                past,
                backend,
                Dying(records, after, late=late) if after and outer else records,
                DriveOptions(on_interrupt=Interrupt.DETACH if detach else None),
                run=folder,
                workdir=self.root,
                known=facts.records,
                clock=JumpingClock(),
                adopted=jobs.jobs,
                after=jobs.after,
            )
        except Killed:
            return None
        finally:
            recorder.close()
            self.submitted += backend.submissions

    def events(self, kind: type[Event]) -> list[Event]:
        """Those of all runs."""
        return [
            event
            for run in self.state.run_ids()
            for event in read_journal(self.state.run(run).events).events
            if isinstance(event, kind)
        ]


def diamond() -> list[ScheduledTask]:
    return [
        plans.task("a", outputs=["a.txt"]),
        plans.task("b", ["a"], inputs=["a.txt"], outputs=["b.txt"]),
        plans.task("c", ["a"], inputs=["a.txt"], outputs=["c.txt", "c.log"]),
        plans.task("d", ["b", "c"], inputs=["b.txt", "c.txt"], outputs=["d.txt"]),
        plans.task("e"),
    ]


def check(folder: Folder) -> None:
    """All is there, made once, recorded once, and every run has ended."""
    assert dict(folder.queue.ran) == dict.fromkeys("abcde", 1)
    assert sorted(one.task for one in folder.events(TaskSettled)) == list("abcde")
    assert set(folder.look().values()) == {Verdict.UP_TO_DATE}
    assert all(is_ended(folder.state.run(run).events) for run in folder.state.run_ids())


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 24), min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
)
def test_killed_at_any_events_every_task_is_at_work_exactly_once(
    kills: list[int], late: bool, outer: bool, between: int
) -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = Folder(root, *diamond())
        for after in kills:
            folder.run(after, late=late, outer=outer)
            folder.queue.work(folder.script, between)  # jobs go on meanwhile
        result = folder.run()
        assert result is not None
        assert result.exit_code == 0
        check(folder)


def test_killed_at_every_event_and_then_at_every_event_again() -> None:
    for first in range(1, 20):
        for second in range(1, 8):
            with tempfile.TemporaryDirectory() as root:
                folder = Folder(root, *diamond())
                folder.run(first)
                folder.run(second)
                assert folder.run() is not None
                check(folder)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 24), st.sampled_from("abcde"))
def test_a_job_that_is_lost_is_at_work_again_and_nothing_else_is(after: int, lost: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = Folder(root, *diamond())
        folder.run(after)
        names = [one.name for one in folder.submitted if one.task.id == lost]
        settled = {one.task for one in folder.events(TaskSettled)}
        again = bool(names) and lost not in settled
        before = folder.queue.ran[lost]
        if again:
            folder.queue.lose(names[-1])
        folder.run()
        wanted = dict.fromkeys("abcde", 1) | {lost: 1 + before if again else 1}
        assert dict(folder.queue.ran) == wanted
        assert set(folder.look().values()) == {Verdict.UP_TO_DATE}


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 24), st.sampled_from("abcd"), st.integers(0, 2))
def test_a_command_that_changes_meanwhile_never_runs_beside_its_old_job(
    after: int, changed: str, between: int
) -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = Folder(root, *diamond())
        folder.run(after)
        folder.queue.work(folder.script, between)
        tasks = [
            plans.task(
                one.id, one.needs, inputs=one.inputs, outputs=one.outputs,
                text="other" if one.id == changed else "true",
            )
            for one in diamond()
        ]  # fmt: skip
        folder.plan = plans.plan(tasks)
        result = folder.run()
        assert result is not None
        assert result.exit_code == 0
        assert set(folder.look().values()) == {Verdict.UP_TO_DATE}


def test_a_preview_tells_what_is_in_flight() -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = Folder(root, *diamond())
        folder.run(5)
        in_flight = {one.task for one in folder.events(AttemptSubmitted)}
        looked = folder.look()
        assert {task for task, verdict in looked.items() if verdict is Verdict.IN_FLIGHT} == in_flight
        assert in_flight


def test_runs_with_jobs_in_flight_are_never_pruned() -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = Folder(root, *diamond())
        folder.run(5)
        (first,) = folder.state.run_ids()
        recover(folder.state)
        for number in range(3):
            other = new_run(folder.state, DEAD, now=1_900_000_000.0 + number)
            head = RunStarted(time=0.0, format=FORMAT, run=other.run, treadle="0", workflow="other")
            journal = Journal.create(other.events, head)
            journal.close()
            recover(folder.state)
        assert first not in prune(folder.state, keep=1)
        assert os.path.isdir(folder.state.run(first).root)

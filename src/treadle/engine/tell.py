"""The machine's voice: its events, each with the time of the turn."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.decide.reason import Decision, Verdict
from treadle.engine.node import Node
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    AttemptSubmitted,
    End,
    Event,
    Evidence,
    EvidenceWithdrawn,
    JobSeen,
    Noticed,
    Outcome,
    OutcomeConfirmed,
    PlanEntered,
    RunDetached,
    RunEnded,
    TaskSettled,
    key_of_task,
)


class Teller:
    """Collects the events of one turn. `plan` is the one that the run is at, the latest batch at last."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events: list[Event] = []
        self.plan: ScheduledPlan | None = None
        self._round = 0
        self._entered: dict[Verdict, int] = {}

    def turn(self, now: float) -> list[Event]:
        """Begin a turn; the list that its events will be in."""
        self.now, self.events = now, []
        return self.events

    def entered(
        self, plan: ScheduledPlan, digest: str, decision: Decision, *, joins: bool = False
    ) -> dict[Verdict, int]:
        """A plan was decided; the number of tasks by verdict. When it `joins`, those before it count, too, as
        they do in a plan that has grown."""
        counts = self._entered if joins else dict.fromkeys(Verdict, 0)
        for answer in decision.answers.values():
            counts[answer.verdict] += 1
        self.plan, self._entered = plan, counts
        self._round += 1
        event = PlanEntered(
            time=self.now,
            round=self._round,
            digest=digest,
            tasks=sum(counts.values()),
            will_run=counts[Verdict.WILL_RUN] + counts[Verdict.IN_FLIGHT],
            up_to_date=counts[Verdict.UP_TO_DATE],
            skipped=counts[Verdict.SKIPPED],
        )
        self.events.append(event)
        return counts

    def adopted(self, intent: AttemptSubmitted) -> None:
        """An attempt of an earlier run is this one's from now on."""
        self.events.append(intent)

    def started(
        self, task: str, n: int, job: str, started: int, waiting: bool = False, run: str = ""
    ) -> None:
        event = AttemptStarted(
            time=self.now, task=task, n=n, job=job, started=started, waiting=waiting, run=run
        )
        self.events.append(event)

    def seen(self, node: Node, state: str, job: str, reason: str = "") -> None:
        """What a backend's queue shows of a job."""
        event = JobSeen(
            time=self.now, task=node.task.id, n=node.n, state=state, job=job, reason=reason, run=node.run
        )
        self.events.append(event)

    def withdrawn(self, node: Node, outcome: Outcome, again: bool) -> None:
        """A success was taken back."""
        assert self.plan is not None
        event = EvidenceWithdrawn(
            time=self.now,
            task=node.task.id,
            key=key_of_task(self.plan.name, node.task),
            attempt=node.attempt,
            n=node.n,
            outcome=outcome,
            again=again,
            run=node.run,
        )
        self.events.append(event)

    def confirmed(self, node: Node, outcome: Outcome) -> None:
        """A success stands after all."""
        event = OutcomeConfirmed(time=self.now, task=node.task.id, n=node.n, outcome=outcome, run=node.run)
        self.events.append(event)

    def tried(self, node: Node, outcome: Outcome, retry_in: float) -> None:
        """An attempt failed, and another follows."""
        event = AttemptEnded(
            time=self.now,
            task=node.task.id,
            attempt=node.attempt,
            n=node.n,
            outcome=outcome,
            retry_in=retry_in,
            run=node.run,
        )
        self.events.append(event)

    def old_ended(self, task: str, attempt: int, n: int, run: str, outcome: Outcome) -> None:
        """A job of an earlier run, whose task runs anew, is gone."""
        event = AttemptEnded(time=self.now, task=task, attempt=attempt, n=n, outcome=outcome, run=run)
        self.events.append(event)

    def settled(
        self,
        task: ScheduledTask,
        end: End,
        attempt: int = 0,
        n: int = 0,
        outcome: Outcome | None = None,
        evidence: Evidence | None = None,
        cause: str = "",
        run: str = "",
    ) -> TaskSettled:
        """A task came to its end."""
        assert self.plan is not None
        event = TaskSettled(
            time=self.now,
            task=task.id,
            key=key_of_task(self.plan.name, task),
            state=end,
            attempt=attempt,
            n=n,
            outcome=outcome,
            evidence=evidence,
            cause=cause,
            run=run,
        )
        self.events.append(event)
        return event

    def noticed(self, code: str, task: str = "", **values: str) -> None:
        self.events.append(Noticed(time=self.now, code=code, task=task, values=values))

    def over(self, exit_code: int, counts: Mapping[End, int], left: int = 0) -> None:
        """The run ended; or we leave it, for so many jobs go on."""
        there = {end.value: count for end, count in counts.items() if count}
        if left:
            self.events.append(RunDetached(time=self.now, exit_code=exit_code, jobs=left, counts=there))
        else:
            self.events.append(RunEnded(time=self.now, exit_code=exit_code, counts=there))

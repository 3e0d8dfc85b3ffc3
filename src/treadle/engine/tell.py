"""The machine's voice: its events, each with the time of the turn."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.decide.reason import Decision, Verdict
from treadle.engine.node import Node
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    End,
    Event,
    Evidence,
    Noticed,
    Outcome,
    PlanEntered,
    RunEnded,
    TaskSettled,
    evidence_key,
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

    def started(self, task: str, n: int, job: str, started: int) -> None:
        self.events.append(AttemptStarted(time=self.now, task=task, n=n, job=job, started=started))

    def tried(self, node: Node, outcome: Outcome, retry_in: float) -> None:
        """An attempt failed, and another follows."""
        event = AttemptEnded(
            time=self.now,
            task=node.task.id,
            attempt=node.attempt,
            n=node.n,
            outcome=outcome,
            retry_in=retry_in,
        )
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
    ) -> TaskSettled:
        """A task came to its end."""
        assert self.plan is not None
        event = TaskSettled(
            time=self.now,
            task=task.id,
            key=evidence_key(self.plan.name, task.id, task.outputs),
            state=end,
            attempt=attempt,
            n=n,
            outcome=outcome,
            evidence=evidence,
            cause=cause,
        )
        self.events.append(event)
        return event

    def noticed(self, code: str, task: str = "", **values: str) -> None:
        self.events.append(Noticed(time=self.now, code=code, task=task, values=values))

    def over(self, exit_code: int, counts: Mapping[End, int]) -> None:
        """The run ended."""
        there = {end.value: count for end, count in counts.items() if count}
        self.events.append(RunEnded(time=self.now, exit_code=exit_code, counts=there))

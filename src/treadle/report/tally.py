"""One fold of a run's events, for whoever shows a run: the live view, `status`, `logs`, the last words."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    AttemptSubmitted,
    End,
    Event,
    Noticed,
    Outcome,
    OutputEvicted,
    PlanEntered,
    RunEnded,
    RunStarted,
    TaskSettled,
)


class Trying(Struct, kw_only=True):
    """An attempt that has not ended; `since` is None until it runs."""

    task: str
    attempt: int
    n: int
    submitted: float
    since: float | None = None
    job: str = ""


class Failure(Struct, frozen=True, kw_only=True):
    """A task that failed for good, its last attempt `n`, and how that ended."""

    task: str
    attempt: int
    n: int
    outcome: Outcome | None


class Tally:
    """What a run's events add up to so far. `feed` as they come; the rest is read.

    `will_run` counts tasks that the decision said would run; `settled` those of them that have ended.
    `ends` counts all that have come to an end, also those that the decision left alone. `lean`: nothing is
    kept of tasks that ended well (a stream of them may be endless).
    """

    def __init__(self) -> None:
        self.lean = False
        self.run = ""
        self.workflow = ""
        self.started: float | None = None
        self.ended: float | None = None
        self.exit_code: int | None = None
        self.mended = False
        self.pid = 0
        self.host = ""
        self.tasks = 0
        self.will_run = 0
        self.rounds = 0
        self.settled = 0
        self.ends: dict[End, int] = dict.fromkeys(End, 0)
        self.states: dict[str, TaskSettled] = {}
        self.trying: dict[int, Trying] = {}
        self.failures: list[Failure] = []
        self.blocked: dict[str, list[str]] = {}
        self.retried: list[AttemptEnded] = []
        self.notices: list[Noticed] = []
        self.attempts: dict[str, list[int]] = {}

    def feed(self, events: Iterable[Event]) -> None:
        """Take in what happened next."""
        for event in events:
            match event:
                case AttemptSubmitted():
                    self.trying[event.n] = Trying(
                        task=event.task, attempt=event.attempt, n=event.n, submitted=event.time
                    )
                    if not self.lean:
                        self.attempts.setdefault(event.task, []).append(event.n)
                case AttemptStarted():
                    if trying := self.trying.get(event.n):
                        trying.since, trying.job = event.time, event.job
                case TaskSettled():
                    self._settle(event)
                case AttemptEnded():
                    self.trying.pop(event.n, None)
                    self.retried.append(event)
                case Noticed():
                    self.notices.append(event)
                    if event.code == "lease_held":
                        self._defer(event.task)
                case RunStarted():
                    self.run, self.workflow, self.started = event.run, event.workflow, event.time
                    self.pid, self.host = event.pid, event.host
                case PlanEntered():
                    self.rounds = event.round
                    self.tasks, self.will_run = event.tasks, event.will_run
                    self.ends[End.UP_TO_DATE], self.ends[End.SKIPPED] = event.up_to_date, event.skipped
                case RunEnded():
                    self.ended, self.exit_code, self.mended = event.time, event.exit_code, event.mended
                    self.trying.clear()
                case OutputEvicted():
                    pass

    def _defer(self, task: str) -> None:
        """Its attempt does not run: someone else is making the same, and it waits for that."""
        numbers = self.attempts.get(task)
        if numbers and (trying := self.trying.get(numbers[-1])):
            trying.since = None

    def _settle(self, event: TaskSettled) -> None:
        if event.state is End.UP_TO_DATE:
            return  # looked at anew and found unchanged: `PlanEntered` has counted it
        self.trying.pop(event.n, None)
        self.settled += 1
        self.ends[event.state] += 1
        if not self.lean:
            self.states[event.task] = event
        if event.state is End.FAILED:
            self.failures.append(
                Failure(task=event.task, attempt=event.attempt, n=event.n, outcome=event.outcome)
            )
        elif event.state is End.BLOCKED:
            self.blocked.setdefault(event.cause, []).append(event.task)

    @property
    def running(self) -> list[Trying]:
        """Attempts that run now, the oldest first."""
        return [trying for trying in self.trying.values() if trying.since is not None]

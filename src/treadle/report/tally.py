"""One fold of a run's events, for whoever shows a run: the live view, `status`, `logs`, the last words."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from treadle.records.event import (
    AttemptEnded,
    AttemptHandedOver,
    AttemptStarted,
    AttemptSubmitted,
    End,
    Event,
    EvidenceWithdrawn,
    JobSeen,
    Noticed,
    Outcome,
    OutcomeConfirmed,
    OutputEvicted,
    PlanEntered,
    RunDetached,
    RunEnded,
    RunStarted,
    TaskSettled,
)


class Trying(Struct, kw_only=True):
    """An attempt that has not ended; `since` is None until it runs.

    `job` is the backend's id, `reason` why the job waits in its queue, in the scheduler's words. `run` is the
    earlier run that submitted it (empty: this one).
    """

    task: str
    attempt: int
    n: int
    submitted: float
    since: float | None = None
    job: str = ""
    backend: str = ""
    reason: str = ""
    run: str = ""


class Failure(Struct, frozen=True, kw_only=True):
    """A task that failed for good, its last attempt `n` (of the earlier run `run`, where that submitted it),
    and how that ended."""

    task: str
    attempt: int
    n: int
    outcome: Outcome | None
    run: str = ""


class Tally:
    """What a run's events add up to so far. `feed` as they come; the rest is read.

    `will_run` counts tasks that the decision said would run; `settled` those of them that have ended.
    `ends` counts all that have come to an end, also those that the decision left alone. `lean`: nothing is
    kept of tasks that ended well (a stream of them may be endless). `origins` are the earlier runs that
    submitted attempts which this one took over. `left` counts jobs that go on without a driver.
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
        self.origins: dict[int, str] = {}
        self.left = 0

    def feed(self, events: Iterable[Event]) -> None:
        """Take in what happened next."""
        for event in events:
            match event:
                case AttemptSubmitted():
                    self.trying[event.n] = Trying(
                        task=event.task,
                        attempt=event.attempt,
                        n=event.n,
                        submitted=event.time,
                        backend=event.backend,
                        run=event.run,
                    )
                    if not self.lean:
                        self.attempts.setdefault(event.task, []).append(event.n)
                    if event.run:
                        self.origins[event.n] = event.run
                case AttemptStarted():
                    if trying := self.trying.get(event.n):
                        trying.since, trying.job = None if event.waiting else event.time, event.job
                case JobSeen():
                    self._see(event)
                case TaskSettled():
                    self._settle(event)
                case EvidenceWithdrawn():
                    self._take_back(event)
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
                case RunDetached():
                    self.left = event.jobs
                case OutputEvicted() | AttemptHandedOver() | OutcomeConfirmed():
                    pass

    def _see(self, event: JobSeen) -> None:
        """What the queue says of its job."""
        if (trying := self.trying.get(event.n)) is None:
            return
        trying.job, trying.reason = event.job or trying.job, event.reason
        if event.state == "running":
            trying.since = trying.since or event.time
        elif event.state == "pending":  # requeued, if it ran
            trying.since = None

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
                Failure(
                    task=event.task,
                    attempt=event.attempt,
                    n=event.n,
                    outcome=event.outcome,
                    run=event.run,
                )
            )
        elif event.state is End.BLOCKED:
            self.blocked.setdefault(event.cause, []).append(event.task)

    def _take_back(self, event: EvidenceWithdrawn) -> None:
        """A success that was told is none: the task is tried again, or the event of its failure follows."""
        self.ends[End.SUCCEEDED] -= 1
        self.settled -= 1
        self.states.pop(event.task, None)

    @property
    def partial(self) -> list[Noticed]:
        """Of the gathers that went on without some of their inputs, what was told of each."""
        return [one for one in self.notices if one.code == "partial_result"]

    @property
    def running(self) -> list[Trying]:
        """Attempts that run now, the oldest first."""
        return [trying for trying in self.trying.values() if trying.since is not None]

    @property
    def waiting(self) -> list[Trying]:
        """Attempts that a scheduler holds and that do not run, in the order of their submission."""
        return [trying for trying in self.trying.values() if trying.since is None and trying.job]

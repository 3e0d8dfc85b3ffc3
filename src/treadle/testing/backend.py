"""A backend without processes: attempts do and end as a script says, at once, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from treadle.base.errors import SchedulerError
from treadle.engine.backend import Abilities, Accepted, JobReport, JobStatus, Refused, Submission
from treadle.engine.compose import by_hand
from treadle.records.event import EndReason, Outcome

OK = Outcome(exit_code=0)
CANCELLED = Outcome(reason=EndReason.CANCELLED)


class Defer(Struct, frozen=True):
    """`holder` is making the artifact of the step: the attempt waits until it is freed (`at_once`: it is)."""

    holder: str = "someone@host, process 1"
    at_once: bool = False


# What an attempt does: its outcome; None: it runs until it is cancelled; a text: it is refused.
Script = Callable[[Submission], Outcome | Defer | str | None]


def succeed(submission: Submission) -> Outcome:
    """The plain script: every attempt ends well and makes nothing."""
    return OK


class FakeBackend:
    """Calls `script` for each attempt when it is submitted, and tells its end at the next poll.

    `submissions` are all that came, `running` those that hang, `deferred` those that wait for someone else.
    While `outage` is not empty every call
    raises `SchedulerError` with that text.
    """

    name = "fake"

    def __init__(self, script: Script = succeed, abilities: Abilities | None = None) -> None:
        self.abilities = abilities or Abilities()
        self.submissions: list[Submission] = []
        self.running: dict[str, Submission] = {}
        self.deferred: dict[str, Submission] = {}
        self.cancelled: list[tuple[str, bool]] = []
        self.outage = ""
        self._script = script
        self._news: list[JobReport] = []
        self._count = 0

    def render_script(self, submission: Submission) -> str:
        if submission.task.call is not None:
            return by_hand(submission)
        return f"# {submission.task.id}\n{' '.join(submission.argv)}\n"

    def submit(self, batch: Sequence[Submission]) -> list[Accepted | Refused]:
        self._check()
        return [self._submit(submission) for submission in batch]

    def _submit(self, submission: Submission) -> Accepted | Refused:
        self.submissions.append(submission)
        outcome = self._script(submission)
        if isinstance(outcome, str):
            return Refused(outcome)
        self._count += 1
        job = str(self._count)
        if isinstance(outcome, Defer):
            self.deferred[job] = submission
            self._news.append(JobReport(job=job, status=JobStatus.DEFERRED, reason=outcome.holder))
            if outcome.at_once:
                self.free(submission.task.id)
        elif outcome is None:
            self.running[job] = submission
        else:
            self._end(job, outcome)
        return Accepted(job)

    def end(self, task: str, outcome: Outcome = OK) -> None:
        """Let an attempt end that hangs."""
        job = next(job for job, submission in self.running.items() if submission.task.id == task)
        del self.running[job]
        self._end(job, outcome)

    def free(self, task: str) -> None:
        """Let a deferred attempt be tried again."""
        job = next(job for job, submission in self.deferred.items() if submission.task.id == task)
        del self.deferred[job]
        self._news.append(JobReport(job=job, status=JobStatus.FREED))

    def _end(self, job: str, outcome: Outcome) -> None:
        self._news.append(JobReport(job=job, status=JobStatus.ENDED, outcome=outcome))

    def poll(self, jobs: Sequence[str]) -> list[JobReport]:
        self._check()
        news, self._news = self._news, []
        return news

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        self._check()
        for job in jobs:
            self.cancelled.append((job, force))
            self.deferred.pop(job, None)
            if self.running.pop(job, None) is not None:
                self._end(job, CANCELLED)

    def accounting(self, jobs: Sequence[str]) -> dict[str, Outcome]:
        return {}

    def logs(self, job: str) -> list[str]:
        return []

    def find(self, names: Sequence[str]) -> dict[str, str]:
        return {}

    def fileno(self) -> int | None:
        return None

    def next_timeout(self) -> float | None:
        return 0.0 if self._news or self.outage else None

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self.outage:
            raise SchedulerError(self.outage)

"""A backend without processes: attempts do and end as a script says, at once, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.base.errors import SchedulerError
from treadle.engine.backend import Abilities, Accepted, JobReport, JobStatus, Refused, Submission
from treadle.records.event import EndReason, Outcome

OK = Outcome(exit_code=0)
CANCELLED = Outcome(reason=EndReason.CANCELLED)

# What an attempt does: its outcome; None: it runs until it is cancelled; a text: it is refused.
Script = Callable[[Submission], Outcome | str | None]


def succeed(submission: Submission) -> Outcome:
    """The plain script: every attempt ends well and makes nothing."""
    return OK


class FakeBackend:
    """Calls `script` for each attempt when it is submitted, and tells its end at the next poll.

    `submissions` are all that came, `running` those that hang. While `outage` is not empty every call
    raises `SchedulerError` with that text.
    """

    name = "fake"

    def __init__(self, script: Script = succeed, abilities: Abilities | None = None) -> None:
        self.abilities = abilities or Abilities()
        self.submissions: list[Submission] = []
        self.running: dict[str, Submission] = {}
        self.cancelled: list[tuple[str, bool]] = []
        self.outage = ""
        self._script = script
        self._ended: dict[str, JobReport] = {}
        self._count = 0

    def render_script(self, submission: Submission) -> str:
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
        if outcome is None:
            self.running[job] = submission
        else:
            self._end(job, outcome)
        return Accepted(job)

    def end(self, task: str, outcome: Outcome = OK) -> None:
        """Let an attempt end that hangs."""
        job = next(job for job, submission in self.running.items() if submission.task.id == task)
        del self.running[job]
        self._end(job, outcome)

    def _end(self, job: str, outcome: Outcome) -> None:
        self._ended[job] = JobReport(job=job, status=JobStatus.ENDED, outcome=outcome)

    def poll(self, jobs: Sequence[str]) -> list[JobReport]:
        self._check()
        ended, self._ended = self._ended, {}
        return list(ended.values())

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        self._check()
        for job in jobs:
            self.cancelled.append((job, force))
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
        return 0.0 if self._ended or self.outage else None

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self.outage:
            raise SchedulerError(self.outage)

"""A backend without processes: attempts do and end as a script says, at once, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from treadle.base.errors import SchedulerError
from treadle.engine.backend import (
    Abilities,
    Accepted,
    Adoptee,
    JobReport,
    JobStatus,
    Refused,
    Remark,
    Submission,
    Witnessed,
)
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


class FakeQueue:
    """Jobs that go on when their driver is gone, by name; hand it to one `FakeBackend` after the other.

    A job is done by `work`, which every poll does as well: its script is called then, and what came of it is
    kept for whoever asks. `hold` keeps jobs from being done. `ran` counts how often each task was at work.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, Submission] = {}
        self.ended: dict[str, tuple[Submission, Outcome]] = {}
        self.ran: Counter[str] = Counter()
        self.hold: Callable[[Submission], bool] = lambda submission: False

    def take(self, submission: Submission) -> None:
        """A job is in the queue. Raises `SchedulerError` for a name that is there already."""
        if submission.name in self.waiting or submission.name in self.ended:
            raise SchedulerError(f"there is a job of the name {submission.name} already")
        self.waiting[submission.name] = submission

    def work(self, script: Script, most: int | None = None) -> None:
        """Do the first `most` jobs that are not held (None: all)."""
        ready = [name for name, one in self.waiting.items() if not self.hold(one)]
        for name in ready[:most]:
            one = self.waiting.pop(name)
            self.ran[one.task.id] += 1
            outcome = script(one)
            self.ended[name] = (one, outcome if isinstance(outcome, Outcome) else OK)

    def cancel(self, name: str) -> None:
        """End a job that has not been at work."""
        one = self.waiting.pop(name, None)
        if one is not None:
            self.ended[name] = (one, CANCELLED)

    def lose(self, name: str) -> None:
        """A job vanishes, and nobody knows it any more."""
        self.waiting.pop(name, None)
        self.ended.pop(name, None)


class FakeBackend:
    """Calls `script` for each attempt when it is submitted, and tells its end at the next poll.

    `submissions` are all that came, `running` those that hang, `deferred` those that wait for someone else.
    While `outage` is not empty every call raises `SchedulerError` with that text. With a `queue` its jobs
    outlive it. `written` is what jobs note of their files, by task; successes of the tasks `provisional` may
    be taken back, by `tell_again`. `said` are remarks that are to be told.
    """

    name = "fake"

    def __init__(
        self,
        script: Script = succeed,
        abilities: Abilities | None = None,
        *,
        queue: FakeQueue | None = None,
    ) -> None:
        self.abilities = abilities or Abilities(adoption=queue is not None, batch=queue is not None)
        self.queue = queue
        self.written: dict[str, Witnessed] = {}
        self.provisional: set[str] = set()
        self.said: list[Remark] = []
        self._watched: set[str] = set()
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
        if self.queue is not None:
            self.queue.take(submission)
            self._watched.add(submission.name)
            return Accepted(submission.name)
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
            self._end(job, outcome, submission)
        return Accepted(job)

    def end(self, task: str, outcome: Outcome = OK) -> None:
        """Let an attempt end that hangs."""
        job = next(job for job, submission in self.running.items() if submission.task.id == task)
        self._end(job, outcome, self.running.pop(job))

    def free(self, task: str) -> None:
        """Let a deferred attempt be tried again."""
        job = next(job for job, submission in self.deferred.items() if submission.task.id == task)
        del self.deferred[job]
        self._news.append(JobReport(job=job, status=JobStatus.FREED))

    def show(self, task: str, status: JobStatus, reason: str = "", job_id: str = "") -> None:
        """Tell where an attempt is that hangs."""
        job = next(job for job, submission in self.running.items() if submission.task.id == task)
        self._news.append(JobReport(job=job, status=status, reason=reason, job_id=job_id))

    def tell_again(self, job: str, outcome: Outcome) -> None:
        """More of a success that was provisional: it stands, or it is taken back."""
        self._news.append(JobReport(job=job, status=JobStatus.ENDED, outcome=outcome))

    def _end(self, job: str, outcome: Outcome, submission: Submission) -> None:
        if not self.written and not self.provisional:
            self._news.append(JobReport(job=job, status=JobStatus.ENDED, outcome=outcome))
            return
        task = submission.task.id
        report = JobReport(
            job=job,
            status=JobStatus.ENDED,
            outcome=outcome,
            written=self.written.get(task),
            provisional=task in self.provisional,
        )
        self._news.append(report)

    def adopt(self, batch: Sequence[Adoptee]) -> list[Accepted | Refused]:
        """Those that the queue knows."""
        self._check()
        answers: list[Accepted | Refused] = []
        for one in batch:
            name = one.submission.name
            if self.queue is not None and (name in self.queue.waiting or name in self.queue.ended):
                self._watched.add(name)
                answers.append(Accepted(name))
            else:
                answers.append(Refused(f"nobody knows {name}"))
        return answers

    def remarks(self) -> list[Remark]:
        said, self.said = self.said, []
        return said

    def poll(self, jobs: Sequence[str]) -> list[JobReport]:
        self._check()
        if self.queue is not None:
            self.queue.work(self._script)
            for name in sorted(self._watched & self.queue.ended.keys()):
                self._watched.remove(name)
                submission, outcome = self.queue.ended[name]
                self._end(name, outcome, submission)
        news, self._news = self._news, []
        return news

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        self._check()
        for job in jobs:
            self.cancelled.append((job, force))
            self.deferred.pop(job, None)
            if self.queue is not None:
                self.queue.cancel(job)
            if (submission := self.running.pop(job, None)) is not None:
                self._end(job, CANCELLED, submission)

    def accounting(self, jobs: Sequence[str]) -> dict[str, Outcome]:
        return {}

    def logs(self, job: str) -> list[str]:
        return []

    def find(self, names: Sequence[str]) -> dict[str, str]:
        known = {**self.queue.waiting, **self.queue.ended} if self.queue is not None else {}
        return {name: name for name in names if name in known}

    def fileno(self) -> int | None:
        return None

    def next_timeout(self) -> float | None:
        if self._news or self.outage:
            return 0.0
        return 1.0 if self._watched else None

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self.outage:
            raise SchedulerError(self.outage)

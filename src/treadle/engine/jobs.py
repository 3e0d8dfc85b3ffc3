"""The backend as the loop sees it: attempts go in as one batch, ends come out as news."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping

from treadle.base.errors import DiskError, SchedulerError
from treadle.engine.attempt import Attempt
from treadle.engine.backend import (
    Accepted,
    ExecutorBackend,
    JobReport,
    JobStatus,
    Refused,
    Submission,
    part_for,
    withdraw,
)
from treadle.engine.check import Eyes
from treadle.engine.conclude import Concluder
from treadle.engine.inbox import Inbox
from treadle.engine.news import (
    BackendFailed,
    Cancel,
    Deferred,
    Ended,
    Freed,
    InFlight,
    Launch,
    Running,
    Started,
)
from treadle.engine.news import Refused as RefusedNews
from treadle.engine.prepare import Preparer
from treadle.engine.slate import EMPTY
from treadle.plan.task import ScheduledPlan
from treadle.records.event import AttemptSubmitted, EndReason, Outcome

_PATIENCE = 5.0  # seconds for killed attempts to be gone when we cannot go on


class Jobs:
    """Attempts from their intent to their end, and the jobs that the backend holds.

    `poll_due` says that the backend has, or may have, news.
    """

    def __init__(
        self, backend: ExecutorBackend, preparer: Preparer, concluder: Concluder, inbox: Inbox
    ) -> None:
        self._backend = backend
        self._preparer = preparer
        self._concluder = concluder
        self._inbox = inbox
        self._held: dict[str, Attempt] = {}
        self._starting: list[Attempt] = []
        self.poll_due = False

    def intend(self, launch: Launch, now: float) -> AttemptSubmitted | None:
        """The intent of an attempt, to be written before `start` (None: it is written already)."""
        try:
            attempt, event = self._preparer.intent(launch, now)
        except DiskError as error:
            self._inbox.tell(RefusedNews(launch.task.id, launch.n, str(error)))
            return self._preparer.submitted(launch, now)
        self._starting.append(attempt)
        return None if launch.again else event

    def start(self) -> None:
        """Start what was intended: one batch."""
        starting, self._starting = self._starting, []
        batch: list[Submission] = []
        ready: list[Attempt] = []
        for attempt in starting:
            submission = self._prepared(attempt)
            if submission is not None:
                batch.append(submission)
                ready.append(attempt)
        if not batch:
            return
        try:
            answers = self._backend.submit(batch)
        except SchedulerError as error:
            self._inbox.tell(BackendFailed(str(error)))
            for attempt in ready:
                self._inbox.tell(_ended(attempt, EndReason.LOST, str(error)))
            return
        for attempt, answer in zip(ready, answers, strict=True):
            self._answered(attempt, answer)

    def _prepared(self, attempt: Attempt) -> Submission | None:
        try:
            submission, moved = self._preparer.submission(attempt)
        except DiskError as error:
            if error.diagnostics[0].code == "disk-full":
                self._inbox.tell(_ended(attempt, EndReason.DISK, str(error)))
            else:
                self._inbox.tell(RefusedNews(attempt.task.id, attempt.n, str(error)))
            return None
        for one in moved:
            self._inbox.note("set_aside", attempt.task.id, path=one.path, aside=one.aside)
        return submission

    def _answered(self, attempt: Attempt, answer: Accepted | Refused) -> None:
        if not isinstance(answer, Accepted):
            self._inbox.tell(RefusedNews(attempt.task.id, attempt.n, answer.message))
            return
        attempt.job = answer.job
        attempt.running = not (answer.waits or part_for(self._backend, attempt.task).abilities.batch)
        self._held[answer.job] = attempt
        self._concluder.accepted(attempt)
        self._inbox.tell(Started(attempt.task.id, attempt.n, answer.job, answer.started, attempt.running))

    def drop(self, why: str) -> None:
        """What was intended cannot start: its intent could not be written."""
        starting, self._starting = self._starting, []
        for attempt in starting:
            self._inbox.tell(_ended(attempt, EndReason.DISK, why))

    def adopt(self, adopted: Mapping[str, InFlight], plan: ScheduledPlan, eyes: Eyes) -> None:
        """Take over jobs of an earlier run."""
        for task, job in adopted.items():
            held = plan.tasks[task]
            attempt = Attempt(held, job.attempt, job.n, held.resources, EMPTY)
            attempt.job = job.job
            attempt.before = eyes.before(held)
            self._held[job.job] = attempt
        self.poll_due = bool(self._held)

    def poll(self) -> None:
        """Ask for news of all jobs, if there are any."""
        self.poll_due = False
        if not self._held:
            return
        try:
            reports = self._backend.poll(list(self._held))
        except SchedulerError as error:
            self._inbox.tell(BackendFailed(str(error)))
            return
        for report in reports:
            self._hear(report)

    def _hear(self, report: JobReport) -> None:
        attempt = self._held.get(report.job)
        if attempt is None:
            return
        if report.outcome is not None:
            del self._held[report.job]
            self._concluder.end(attempt, report.outcome)
        elif report.status is JobStatus.RUNNING and not attempt.running:
            attempt.running = True
            self._inbox.tell(Running(attempt.task.id, attempt.n))
        elif report.status is JobStatus.DEFERRED and not attempt.deferred:
            attempt.deferred = True
            self._inbox.tell(Deferred(attempt.task.id, attempt.n, report.reason))
        elif report.status is JobStatus.FREED and attempt.deferred:
            del self._held[report.job]
            self._inbox.tell(Freed(attempt.task.id, attempt.n))

    def cancel(self, command: Cancel) -> None:
        """Ask for the end of jobs; deferred ones have ended for us with that."""
        try:
            if command.waiting:
                withdraw(self._backend, command.jobs)
            else:
                self._backend.cancel(command.jobs, force=command.force)
        except SchedulerError as error:
            self._inbox.tell(BackendFailed(str(error)))
        for job in command.jobs:
            if (attempt := self._held.get(job)) is not None and attempt.deferred:
                del self._held[job]
        self.poll_due = True

    def abandon(self) -> None:
        """We cannot go on: leave no process behind. Jobs that outlive a driver are left to the next one."""
        if self._backend.abilities.adoption:
            return
        with contextlib.suppress(Exception):
            until = time.monotonic() + _PATIENCE
            self._backend.cancel(list(self._held), force=True)
            self._held = {job: attempt for job, attempt in self._held.items() if not attempt.deferred}
            while self._held and time.monotonic() < until:
                for report in self._backend.poll(list(self._held)):
                    if report.outcome is not None:
                        self._held.pop(report.job, None)
                time.sleep(0.01)


def _ended(attempt: Attempt, reason: EndReason, message: str) -> Ended:
    return Ended(attempt.task.id, attempt.n, Outcome(reason=reason, message=message))

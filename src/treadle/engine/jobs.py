"""The backend as the loop sees it: attempts go in as one batch, ends come out as news."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence

from treadle.base.errors import DiskError, SchedulerError
from treadle.engine.attempt import Attempt
from treadle.engine.backend import (
    Accepted,
    Adoptee,
    ExecutorBackend,
    JobReport,
    JobStatus,
    Refused,
    Submission,
)
from treadle.engine.besides import adopt, leave, maker_of, parts_of, remarks_of, withdraw
from treadle.engine.check import Eyes
from treadle.engine.conclude import Concluder
from treadle.engine.inbox import Inbox
from treadle.engine.news import (
    BackendFailed,
    Cancel,
    Confirmed,
    Deferred,
    Ended,
    Freed,
    InFlight,
    Launch,
    Running,
    Seen,
    Started,
    Withdrawn,
)
from treadle.engine.news import Refused as RefusedNews
from treadle.engine.prepare import Preparer
from treadle.plan.task import ScheduledPlan
from treadle.records.event import AttemptSubmitted, EndReason, Outcome

_SHOWN = (JobStatus.PENDING, JobStatus.UNKNOWN, JobStatus.ENDING)
_PATIENCE = 5.0  # seconds for killed attempts to be gone when we cannot go on


class Jobs:
    """Attempts from their intent to their end, and the jobs that the backend holds.

    `poll_due` says that the backend has, or may have, news. Jobs whose success may be taken back are asked
    for until that is settled.
    """

    def __init__(
        self, backend: ExecutorBackend, preparer: Preparer, concluder: Concluder, inbox: Inbox
    ) -> None:
        self._backend = backend
        self._preparer = preparer
        self._concluder = concluder
        self._inbox = inbox
        self._held: dict[str, Attempt] = {}
        self._doubted: dict[str, Attempt] = {}
        self._withdrawn: dict[str, Attempt] = {}  # by task, until it is tried again
        self._starting: list[Attempt] = []
        self._freed: set[str] = set()  # tasks that waited for someone else, and do no more
        self._part = parts_of(backend)
        self._remarks = remarks_of(backend)
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

    @property
    def intended(self) -> bool:
        """Whether anything waits to be started."""
        return bool(self._starting)

    def start(self) -> None:
        """Start what was intended: one batch."""
        if not self._starting:
            return
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
        self._note_remarks()

    def _prepared(self, attempt: Attempt) -> Submission | None:
        if self._withdrawn and (old := self._withdrawn.pop(attempt.task.id, None)) is not None:
            self._concluder.clear(old)
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
        abilities = self._part(attempt.task).abilities
        attempt.job = answer.job
        attempt.running = not (answer.waits or abilities.batch)
        self._held[answer.job] = attempt
        if not attempt.adopted:
            self._concluder.accepted(attempt)
        self._inbox.tell(
            Started(
                attempt.task.id, attempt.n, answer.job, answer.started, attempt.running, abilities.adoption
            )
        )

    def drop(self, why: str) -> None:
        """What was intended cannot start: its intent could not be written."""
        starting, self._starting = self._starting, []
        for attempt in starting:
            self._inbox.tell(_ended(attempt, EndReason.DISK, why))

    def adopt(self, adopted: Mapping[str, InFlight], plan: ScheduledPlan, eyes: Eyes) -> None:
        """Take over jobs of earlier runs. Those that are nowhere any more have ended, as interrupted.

        Raises `SchedulerError` when nobody can be asked, and `DiskError`.
        """
        attempts: list[Attempt] = []
        batch: list[Adoptee] = []
        for task, job in adopted.items():
            held = plan.tasks[task]
            if job.intent is not None:
                attempt, adoptee = self._preparer.adopted(held, job)
                attempts.append(attempt)
                batch.append(adoptee)
            else:
                attempt = self._preparer.bare(held, job)
                attempt.before = eyes.before(held)
                self._held[job.job] = attempt
        for attempt, answer in zip(attempts, adopt(self._backend, batch) if batch else (), strict=True):
            if isinstance(answer, Accepted):
                self._answered(attempt, answer)
            else:
                self._concluder.end(attempt, Outcome(reason=EndReason.INTERRUPTED, message=answer.message))
        self.poll_due = bool(self._held)

    def poll(self) -> None:
        """Ask for news of all jobs, if there are any."""
        self.poll_due = False
        if not self._held and not self._doubted:
            return
        try:
            reports = self._backend.poll([*self._held, *self._doubted] if self._doubted else list(self._held))
        except SchedulerError as error:
            self._note_remarks()
            self._inbox.tell(BackendFailed(str(error)))
            return
        for report in reports:
            self._hear(report)
        self._note_remarks()

    def _hear(self, report: JobReport) -> None:
        attempt = self._held.get(report.job)
        if attempt is None:
            if report.job in self._doubted and report.outcome is not None:
                self._hear_again(report, report.outcome)
            return
        if report.outcome is not None:
            del self._held[report.job]
            plain = report.written is None and not report.provisional and not report.job_id
            if plain and attempt.task.id not in self._freed:
                self._concluder.end(attempt, report.outcome)
            else:
                self._end(attempt, report, report.outcome)
        elif report.status is JobStatus.RUNNING and not attempt.running:
            attempt.running = True
            self._inbox.tell(Running(attempt.task.id, attempt.n, report.job_id))
        elif report.status is JobStatus.DEFERRED and not attempt.deferred:
            attempt.deferred = True
            self._inbox.tell(Deferred(attempt.task.id, attempt.n, report.reason))
        elif report.status is JobStatus.FREED and attempt.deferred:
            del self._held[report.job]
            self._freed.add(attempt.task.id)
            self._inbox.tell(Freed(attempt.task.id, attempt.n))
        elif report.status in _SHOWN:
            self._show(attempt, report)

    def _end(self, attempt: Attempt, report: JobReport, outcome: Outcome) -> None:
        """It ended, with more to say than how."""
        if report.job_id and report.job_id not in (report.job, attempt.shown[1]):
            self._inbox.tell(Seen(attempt.task.id, attempt.n, "running", report.job_id))
        if self._freed and attempt.task.id in self._freed:
            self._note_taken(attempt, outcome)
        doubted = report.provisional and outcome.reason is EndReason.OK and not attempt.anew
        if doubted:
            self._doubted[report.job] = attempt
        self._concluder.end(attempt, outcome, report.written, doubted=doubted)

    def _note_taken(self, attempt: Attempt, outcome: Outcome) -> None:
        """Say of a step that waited for someone else whether it came to what they had made."""
        self._freed.discard(attempt.task.id)
        if outcome.reason is not EndReason.OK:
            return
        name = f"{attempt.folder.run}.{attempt.n}"
        if maker := maker_of(self._part(attempt.task), attempt.task.id, name):
            self._inbox.note("result_taken", attempt.task.id, maker=maker)

    def _hear_again(self, report: JobReport, outcome: Outcome) -> None:
        """More of a success that was told already: it stands, or it was none."""
        attempt = self._doubted[report.job]
        if not report.provisional:
            del self._doubted[report.job]
        if outcome.reason is EndReason.OK:
            self._inbox.tell(Confirmed(attempt.task.id, attempt.n, outcome))
        else:
            if attempt.task.outputs and not attempt.task.policy.resumable:
                self._withdrawn[attempt.task.id] = attempt
            self._inbox.tell(Withdrawn(attempt.task.id, attempt.n, outcome))

    def _show(self, attempt: Attempt, report: JobReport) -> None:
        """Where a job waits, and its real id: told when it is news."""
        shown = (report.status.value, report.job_id or attempt.shown[1], report.reason)
        if shown != attempt.shown:
            attempt.shown = shown
            attempt.running = attempt.running and report.status is JobStatus.ENDING
            self._inbox.tell(Seen(attempt.task.id, attempt.n, *shown))

    def _note_remarks(self) -> None:
        for remark in self._remarks() if self._remarks is not None else ():
            attempt = self._held.get(remark.job) if remark.job else None
            self._inbox.note(remark.code, attempt.task.id if attempt is not None else "", **remark.values)

    def cancel(self, command: Cancel) -> None:
        """Ask for the end of jobs; deferred ones have ended for us with that."""
        try:
            if command.waiting:
                withdraw(self._backend, command.jobs)
            else:
                self._backend.cancel(command.jobs, force=command.force)
        except SchedulerError as error:
            self._note_unheard(command.jobs, str(error.diagnostics[0].message))
            self._inbox.tell(BackendFailed(str(error)))
        for job in command.jobs:
            if (attempt := self._held.get(job)) is not None and attempt.deferred:
                del self._held[job]
        self.poll_due = True

    def _note_unheard(self, jobs: Sequence[str], why: str) -> None:
        """The backend could not be told: for whoever takes over the jobs that outlive us."""
        for job in jobs:
            if (attempt := self._held.get(job)) is not None and self._outlives(attempt):
                reason = f"not heard: {why}"
                self._show(attempt, JobReport(job=job, status=JobStatus.ENDING, reason=reason))

    def leave(self) -> None:
        """Wait no longer for jobs that outlive us: the backend says of each how it stands, and fails."""
        leave(self._backend)
        self.poll_due = True

    def abandon(self) -> None:
        """We cannot go on: leave no process behind. Jobs that outlive a driver are left to the next one."""
        ours = {job: one for job, one in self._held.items() if not self._outlives(one)}
        if not ours:
            return
        with contextlib.suppress(Exception):
            until = time.monotonic() + _PATIENCE
            self._backend.cancel(list(ours), force=True)
            self._held = {job: attempt for job, attempt in ours.items() if not attempt.deferred}
            while self._held and time.monotonic() < until:
                for report in self._backend.poll(list(self._held)):
                    if report.outcome is not None:
                        self._held.pop(report.job, None)
                time.sleep(0.01)

    def _outlives(self, attempt: Attempt) -> bool:
        return self._part(attempt.task).abilities.adoption


def _ended(attempt: Attempt, reason: EndReason, message: str) -> Ended:
    return Ended(attempt.task.id, attempt.n, Outcome(reason=reason, message=message))

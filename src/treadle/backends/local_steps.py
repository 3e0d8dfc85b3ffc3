"""Steps on this machine: in a thread, or as a worker process; and those that wait for another run's work."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from threading import Lock

from msgspec.structs import replace

from treadle.backends.answers import Answer, Answered, error_of, read_answer
from treadle.backends.clients import CLIENT, current_client
from treadle.backends.last_breath import Lifeline
from treadle.backends.lease_watch import LeaseWatch, Watched
from treadle.backends.origins import Origins
from treadle.backends.payload import encode, make_private_folder, worker_argv, write_payload
from treadle.backends.step_ends import clear_after, published_by, untold_error, warn_of_lost
from treadle.backends.step_threads import StepThreads, ThreadJob
from treadle.backends.store_syncs import StoreSyncs
from treadle.base.errors import DiskError
from treadle.base.files import remove
from treadle.base.layout import RunFolder
from treadle.base.mask import Mask
from treadle.base.proc import host
from treadle.engine.backend import Accepted, JobReport, JobStatus, Refused, Submission
from treadle.engine.signals import Wake
from treadle.records.event import EndReason, Outcome, Usage
from treadle.steps.book import Entry, StepBook
from treadle.steps.order import Done, Order, order_of
from treadle.steps.owner import this_owner
from treadle.steps.perform import in_a_line, own_frames_off, perform
from treadle.steps.record import ArtifactRecord, Owner
from treadle.steps.store import ArtifactStore
from treadle.steps.stores import store_for
from treadle.steps.where import env_of

_CANCELLED = Outcome(reason=EndReason.CANCELLED)


class LocalSteps:
    """The steps among the attempts of a local backend. All methods are for the loop's own thread."""

    def __init__(self, book: StepBook, *, unsafe_locks: bool = False, mask: Mask | None = None) -> None:
        self._book = book
        self._unsafe_locks = unsafe_locks
        self._wake = Wake()
        self._closing = Lock()
        self._closed = False
        self._threads = StepThreads(self.ring)
        self._leases = LeaseWatch(self.ring)
        self._syncs = StoreSyncs()
        self._origins = Origins(mask)
        self._lifeline: Lifeline | None = None
        self._held: dict[str, Submission] = {}
        self._news: list[JobReport] = []
        self._numbers = count(1)
        self._folders: set[str] = set()
        self._waited: set[str] = set()  # tasks that were deferred

    @property
    def reader(self) -> int:
        """A descriptor that is readable when `take` has news."""
        return self._wake.reader

    def ring(self) -> None:
        """Make `reader` readable. Any thread may call it; one that was left behind even after `close`, when
        the descriptor may be somebody else's."""
        with self._closing:
            if not self._closed:
                self._wake.ring()

    def begin(self, submission: Submission) -> Accepted | Refused:
        """Call the function of a step in a thread."""
        entry = self._book[submission.task.id]
        self._origins.ask(submission.cwd)

        def call(asked: Callable[[], bool]) -> Done | Owner:
            return perform(self._order(submission, entry), self._store_of(entry.path), cancelled=asked)

        job = f"thread-{next(self._numbers)}"
        try:
            waits = self._threads.begin(job, call)
        except RuntimeError as error:
            return Refused(
                f"no thread can be started ({error}): the limit of this machine is reached (ulimit -u)"
            )
        self._held[job] = submission
        return Accepted(job, waits=waits)

    def as_process(self, submission: Submission) -> tuple[Submission, str]:
        """A step's submission with the command of its worker, and what that gets as stdin.

        Raises `StepError` for a function that cannot be sent, `DiskError`.
        """
        entry = self._book[submission.task.id]
        self._origins.ask(submission.cwd)
        order = self._order(submission, entry)
        run = _run_of(submission)
        path, answer = run.payload(submission.n), run.result(submission.n)
        if run.payloads not in self._folders:
            make_private_folder(run.payloads)
            self._folders.add(run.payloads)
        write_payload(path, encode(order, answer), answer)
        if self._lifeline is None:
            self._lifeline = Lifeline()
        env = {**submission.env, CLIENT: current_client().address, **env_of(entry.spec)}
        return replace(submission, argv=worker_argv(path), env=env), self._lifeline.stdin

    def _order(self, submission: Submission, entry: Entry, *, tells: bool = False) -> Order:
        """The order of an attempt; its owner is the driver, in whose place a worker puts itself."""
        attempt = attempt_name(submission)
        return order_of(
            entry,
            attempt=attempt,
            number=submission.attempt,
            owner=this_owner(attempt),
            provenance=self._origins.get(),
            tells=tells,
            unsafe_locks=self._unsafe_locks,
            fresh=submission.attempt == 1 and submission.task.id not in self._waited,
        )

    def refused(self, submission: Submission, error: Exception) -> None:
        """A step could not be begun."""
        self._book.errors[submission.task.id] = error

    def began(self, submission: Submission, job: str) -> None:
        """A worker was started."""
        self._held[job] = submission

    def ended(self, job: str, outcome: Outcome) -> JobReport | None:
        """What is to be told of a process that ended so (None: it was no worker)."""
        submission = self._held.get(job)
        if submission is None:
            return None
        run = _run_of(submission)
        answer = read_answer(run.result(submission.n))
        with suppress(DiskError):
            remove(run.payload(submission.n))
            remove(run.result(submission.n))
        if answer is None:
            return self._died(job, submission, outcome)
        if answer.holder is not None:
            return self._deferred(job, answer.holder)
        return self._answered(job, submission, answer, outcome)

    def _answered(self, job: str, submission: Submission, answer: Answer, outcome: Outcome) -> JobReport:
        if answer.record is not None:  # published, whatever we did to it meanwhile
            return self._done(job, answer.record, replace(outcome, reason=EndReason.OK, message=""))
        if outcome.reason in (EndReason.OK, EndReason.APP):
            error = error_of(answer)
            refused = answer.state is Answered.REFUSED
            reason = EndReason.NEVER_STARTED if refused else EndReason.APP
            return self._failed(job, error, replace(outcome, reason=reason, message=answer.line))
        return self._failed(job, untold_error(submission, outcome), outcome)

    def _died(self, job: str, submission: Submission, outcome: Outcome) -> JobReport:
        """It ended without an answer: crashed, was killed, or called `os._exit`."""
        if outcome.reason is EndReason.OK or (outcome.reason is EndReason.APP and not outcome.message):
            message = f"its worker process ended with exit code {outcome.exit_code} in the middle (os._exit?)"
            outcome = replace(outcome, reason=EndReason.APP, message=message)
        entry, attempt = self._book[submission.task.id], attempt_name(submission)
        store = self._store_of(entry.path)
        if record := published_by(store, entry, attempt):
            return self._done(job, record, replace(outcome, reason=EndReason.OK, message=""))
        clear_after(store, entry, attempt, outcome)
        return self._failed(job, untold_error(submission, outcome), outcome)

    def take(self) -> list[JobReport]:
        """News of steps in threads, and of those that wait for someone else."""
        self._wake.drain()
        news, self._news = self._news, []
        for one in self._threads.take():
            news.append(self._thread_ended(one))
        for job in self._threads.begun():
            news.append(JobReport(job=job, status=JobStatus.RUNNING))
        for job in self._leases.take():
            if self._held.pop(job, None) is not None:
                news.append(JobReport(job=job, status=JobStatus.FREED))
        return news

    def _thread_ended(self, one: ThreadJob) -> JobReport:
        outcome = Outcome(
            start=one.begun_on or None,
            end=one.ended_on or None,
            host=host(),
            usage=Usage(wall=one.ended_on - one.begun_on if one.ended_on else None),
        )
        if one.given_up:
            message = "it was asked to end and did not: its thread is left behind" if one.begun_on else ""
            return self._failed(one.job, None, replace(outcome, reason=EndReason.CANCELLED, message=message))
        if not one.raised:
            if isinstance(one.value, Owner):
                return self._deferred(one.job, one.value)
            if not one.value.taken:
                self._syncs.note(self._store_of(one.value.record.path))
            return self._done(one.job, one.value.record, outcome)
        error = own_frames_off(one.value)
        reason = EndReason.CANCELLED if one.asked else EndReason.APP
        return self._failed(one.job, error, replace(outcome, reason=reason, message=in_a_line(error)))

    def _done(self, job: str, record: ArtifactRecord, outcome: Outcome) -> JobReport:
        task = self._held.pop(job).task.id
        if record.result is not None and record.result.lost and task not in self._book.records:
            warn_of_lost(record, self._book[task].spec.fn)
        self._book.records[task] = record
        self._book.errors.pop(task, None)
        return JobReport(job=job, status=JobStatus.ENDED, outcome=outcome)

    def _failed(self, job: str, error: BaseException | None, outcome: Outcome) -> JobReport:
        task = self._held.pop(job).task.id
        if error is not None:
            self._book.errors[task] = error
        return JobReport(job=job, status=JobStatus.ENDED, outcome=outcome)

    def _deferred(self, job: str, holder: Owner) -> JobReport:
        return JobReport(job=job, status=JobStatus.DEFERRED, reason=str(holder))

    def told(self, report: JobReport) -> None:
        """A report went out. What is deferred is watched from now on: `FREED` must come after it."""
        if report.status is not JobStatus.DEFERRED:
            return
        task = self._held[report.job].task.id
        entry = self._book[task]
        self._waited.add(task)
        self._leases.add(
            Watched(
                report.job,
                self._store_of(entry.path),
                entry.path,
                entry.spec.identity,
                wanted=entry.wanted,
                replaces=entry.replaces,
            )
        )

    def _store_of(self, path: str) -> ArtifactStore:
        return store_for(path, unsafe_locks=self._unsafe_locks)

    def cancel(self, job: str, *, force: bool) -> None:
        """Ask a thread to end, or wait for a lease no longer."""
        submission = self._held.get(job)
        if submission is None:
            return
        if self._leases.drop(job):
            self._news.append(self._failed(job, None, _CANCELLED))
        else:
            self._threads.end(job, 0.0 if force else submission.grace)

    def keep_line(self, most: int) -> None:
        """Run no more than `most` steps in threads at a time."""
        self._threads.most = most

    def withdraw(self, job: str) -> None:
        """End a step that waits in line; one that has begun goes on."""
        if self._threads.withdraw(job):
            self._news.append(self._failed(job, None, _CANCELLED))

    def wait(self) -> float | None:
        """Seconds until `take` must be called whatever happens (None: only when `reader` is readable)."""
        if self._news:
            return 0.0
        self._threads.go_on()
        at = self._threads.next_at()
        return None if at is None else max(0.0, at - time.monotonic())

    def close(self) -> None:
        """Give back what is held. A thread that still runs goes on."""
        with self._closing:
            self._closed = True
            self._wake.close()
        self._leases.close()
        self._threads.close()
        self._syncs.close()
        if self._lifeline is not None:
            self._lifeline.close()


def attempt_name(submission: Submission) -> str:
    """`<run>.<n>`: how an attempt is called beside its artifact."""
    _, run, _, _ = submission.log.rsplit("/", 3)  # as `_run_of`, on the path of every step
    return f"{run}.{submission.n}"


def _run_of(submission: Submission) -> RunFolder:
    """The run's folder, which has the log of each attempt in `logs/`."""
    return RunFolder(os.path.dirname(os.path.dirname(submission.log)))

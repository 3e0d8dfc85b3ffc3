"""Jobs of a client: a function, what it needs, and a handle on it. On top of any backend there is.

A job is a command of the backend, which calls the function (`backends.call`). One thread, while there are
jobs in flight, takes in the news; handles only wait for it.
"""

from __future__ import annotations

import os
import pickle
import select
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from msgspec import Struct

from treadle.backends.answers import error_of
from treadle.backends.call import call_argv, encode_call, read_returned
from treadle.backends.payload import make_private_folder, write_payload
from treadle.backends.step_ends import log_tail
from treadle.base.errors import StepError, TreadleError
from treadle.base.files import make_parents, remove
from treadle.base.layout import RunFolder
from treadle.base.names import encode, job_name
from treadle.engine.backend import Accepted, ExecutorBackend, JobReport, JobStatus, Submission
from treadle.engine.signals import Wake
from treadle.plan.task import Command, Resources, ScheduledTask
from treadle.records.event import EndReason, Outcome
from treadle.steps.resources import ResourceConfig

_LONGEST_WAIT = 1.0  # seconds between two looks at a backend that has no descriptor and no wish
_GRACE = 10.0


class JobRequest(Struct, frozen=True, kw_only=True):
    """What a client is asked to run: `fn(*args, **kwargs)`.

    `name` is for people and begins the job's own name where that may be long; `env_vars` are set for the
    job alone, and nothing else of our environment is promised there. `cwd` is absolute (default: ours).
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}
    name: str = ""
    resources: ResourceConfig | None = None
    env_vars: Mapping[str, str] = {}
    cwd: str = ""


class JobHandle(Protocol):
    """A job in flight, or ended."""

    @property
    def name(self) -> str: ...

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Block until it is done, at most `timeout` seconds; how it stands then."""
        ...

    def status(self) -> JobStatus: ...

    def logs(self) -> str:
        """What it wrote to stdout and stderr so far."""
        ...

    def terminate(self, *, force: bool = False) -> None:
        """Ask it to end: SIGTERM, then SIGKILL after 10 s (`force`: at once)."""
        ...

    def result(self, timeout: float | None = None) -> Any:
        """What the function returned; raises what it raised, with its traceback there as the cause.

        Raises `StepError` with the end of the log for one that could not say how it ended (a crash, its
        time, `terminate`), TimeoutError when it is not done in time.
        """
        ...


class Job:
    """The handle of one job of a backend."""

    def __init__(self, jobs: BackendJobs, submission: Submission, job: str, answer: str) -> None:
        self.job = job
        self.outcome: Outcome | None = None
        self._jobs = jobs
        self._submission = submission
        self._answer = answer
        self._status = JobStatus.PENDING
        self._done = threading.Event()

    @property
    def name(self) -> str:
        return self._submission.name

    def wait(self, timeout: float | None = None) -> JobStatus:
        self._done.wait(timeout)
        return self._status

    def status(self) -> JobStatus:
        return self._status

    def logs(self) -> str:
        with suppress(OSError), open(self._submission.log, encoding="utf-8", errors="replace") as file:
            return file.read()
        return ""

    def terminate(self, *, force: bool = False) -> None:
        self._jobs.cancel(self, force=force)

    def result(self, timeout: float | None = None) -> Any:
        if not self._done.wait(timeout):
            raise TimeoutError(f"{self.name} is not done after {timeout} s")
        outcome = self.outcome
        assert outcome is not None
        returned = read_returned(self._answer)
        if returned is not None and returned.failed is not None:
            raise error_of(returned.failed)
        if returned is not None and outcome.reason is EndReason.OK:
            return pickle.loads(returned.value)
        raise _ended_unsaid(self._submission, outcome)

    def hear(self, report: JobReport) -> None:
        """News of it, on the thread that takes them in."""
        self._status = report.status
        if report.outcome is not None:
            self.outcome = report.outcome
            self._done.set()


class BackendJobs:
    """The jobs of one client, in a folder of their own. Any thread may submit, cancel and wait.

    `wrap` may change the command of a job; `backend` is used under a lock, by one thread at a time.
    """

    def __init__(
        self,
        backend: ExecutorBackend,
        folder: RunFolder,
        *,
        wrap: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda argv: argv,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._backend = backend
        self._folder = folder
        self._wrap = wrap
        self._env = dict(env or {})
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._wake = Wake()
        self._live: dict[str, Job] = {}
        self._runs = False

    def submit(self, request: JobRequest) -> Job:
        """Hand a job in. Raises `StepError` when it is refused, `DiskError`, `SchedulerError`."""
        with self._lock:
            submission, answer = self._submission(request)
            (taken,) = self._backend.submit([submission])
            if not isinstance(taken, Accepted):
                raise StepError(f"job {submission.name} was refused: {taken.message}", code="job-refused")
            job = self._live[taken.job] = Job(self, submission, taken.job, answer)
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._work, name="treadle-jobs", daemon=True).start()
        self._wake.ring()
        return job

    def _submission(self, request: JobRequest) -> tuple[Submission, str]:
        n, run = next(self._numbers), self._folder
        make_parents(run.attempt_log(n))
        make_private_folder(run.payloads)
        label = request.name or getattr(request.fn, "__name__", "") or "job"
        try:
            payload = encode_call(request.fn, request.args, request.kwargs, run.returned(n))
        except Exception as error:
            raise StepError(
                f"job {label} cannot be sent to another process: {type(error).__name__}: {error}",
                hint="open what it closes over (a lock, a file, a connection) inside of the function",
                code="function-not-picklable",
            ) from error
        write_payload(run.request(n), payload, run.returned(n))
        rule = encode(label)
        return Submission(
            task=ScheduledTask(id=f"{rule}/n={n}", rule=rule, command=Command()),
            attempt=1,
            n=n,
            name=job_name(run.run, n),
            argv=self._wrap(call_argv(run.request(n))),
            env={"TREADLE_ATTEMPT": f"{run.run}.{n}", **self._env, **request.env_vars},
            cwd=request.cwd or os.getcwd(),
            log=run.attempt_log(n),
            resources=request.resources.to_resources() if request.resources is not None else Resources(),
            grace=_GRACE,
        ), run.returned(n)

    def cancel(self, job: Job, *, force: bool) -> None:
        """Ask a job to end; one that has ended is left alone."""
        with self._lock:
            if self._live.get(job.job) is job:
                self._backend.cancel([job.job], force=force)
        self._wake.ring()

    def _work(self) -> None:
        """Take in news as long as there are jobs."""
        while True:
            with self._lock:
                for report in self._polled():
                    self._live[report.job].hear(report)
                    if report.outcome is not None:
                        del self._live[report.job]
                if not self._live:
                    self._runs = False
                    return
                fd, wish = self._backend.fileno(), self._backend.next_timeout()
            watched = [self._wake.reader] if fd is None else [self._wake.reader, fd]
            if fd is None or wish is not None:
                wish = min(_LONGEST_WAIT, wish if wish is not None else _LONGEST_WAIT)
            ready, _, _ = select.select(watched, [], [], wish)
            if self._wake.reader in ready:
                self._wake.drain()

    def _polled(self) -> list[JobReport]:
        try:
            reports = self._backend.poll(list(self._live))
        except TreadleError as error:  # the backend as a whole: nothing more will be heard
            lost = Outcome(reason=EndReason.LOST, message=str(error))
            return [JobReport(job=job, status=JobStatus.ENDED, outcome=lost) for job in self._live]
        return [report for report in reports if report.job in self._live]

    def close(self, *, end: bool) -> None:
        """Forget the backend; `end`: what is in flight is ended first."""
        with self._lock:
            live = list(self._live.values())
            if end and live:
                self._backend.cancel([job.job for job in live], force=True)
        self._wake.ring()
        if end:
            for job in live:
                job.wait(_GRACE)
        with self._lock:
            if not self._live:
                self._backend.close()
                with suppress(TreadleError):
                    remove(self._folder.root)


def _ended_unsaid(submission: Submission, outcome: Outcome) -> StepError:
    """The error of a job that could not say how it ended."""
    ended = outcome.message or f"exit code {outcome.exit_code}"
    tail = log_tail(submission.log)
    return StepError(
        f"job {submission.name} ended ({outcome.reason.value}): {ended}",
        hint=f"its log ends with:\n{tail}" if tail else f"it wrote nothing to its log, {submission.log}",
        code="job-ended",
    )

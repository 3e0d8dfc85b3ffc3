"""`ExecutorBackend`: the one protocol behind the driver. A backend never decides what to run.

What a backend may have besides are small protocols of their own. It has one when it has its methods; nothing
is to be declared. The driver asks for them by `isinstance`, mostly once for a run (`besides.py`):

    Adopting    adopt                   jobs outlive the driver     else: found by `find`, by their names
    Remarking   remarks                 words of no one job's end   else: it has nothing to say
    Sharing     taken                   whose work a result is      else: taken to be its own
    Queueing    keep_line, withdraw     a line of its own           else: nothing is launched ahead, and what
                                                                    it has not told as running is cancelled
    Joining     fits_together           several tasks in one job    else: a job for each
    Parted      part                    two backends as one         else: it runs all tasks itself
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol, runtime_checkable

from msgspec import Struct

from treadle.base.layout import RunFolder
from treadle.plan.task import Resources, ScheduledTask
from treadle.records.event import ENDING, Outcome


class Abilities(Struct, frozen=True, kw_only=True):
    """What a backend can do, as data."""

    notifies: bool = False  # `fileno()` becomes readable when `poll` has news
    arrays: bool = False
    accounting: bool = False
    adoption: bool = False  # jobs outlive the driver and can be found by name
    adopts_steps: bool = False  # those of steps, too
    gpus: bool = False
    memory_limits: bool = False
    batch: bool = False  # a batch system: latency, outages and queues are normal
    latency: float = 0.0  # seconds that files which a job wrote may take to be seen here


class Submission(Struct, frozen=True, kw_only=True):
    """One attempt, ready to go: the task, its texts bound, and where it lives.

    `argv` is what to execute (empty: nothing, it ends well at once, and only this machine gets it); `env`
    is added to the environment; `cwd` is absolute; `log` is an absolute path that receives stdout and
    stderr. `log_from` is the log of an attempt that ended well (empty: there is none): where nothing stands
    in it, it may be renamed to be this one's. `resources` are those of this attempt (after growth and
    capping). `grace` is the time between SIGTERM and SIGKILL in seconds. `exclude` are nodes that failed
    under earlier attempts of the task, and are to be avoided. Submissions of one batch with one `unit` (0:
    none) are one job, in their order; each begins only once those of it in `after`, by their `n`, have
    ended well there.
    """

    task: ScheduledTask
    attempt: int
    n: int
    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    log: str
    resources: Resources
    grace: float = 10.0
    private_log: bool = False
    log_from: str = ""
    exclude: tuple[str, ...] = ()
    unit: int = 0
    after: tuple[int, ...] = ()


class Adoptee(Struct, frozen=True, kw_only=True):
    """An attempt of an earlier run that was never seen to end, as its journal tells of it.

    `submission` is what that driver sent, but for `argv`, `env` (TREADLE_ATTEMPT alone) and `resources`
    (what the task asks for, grown as it was): its `n`, `name` and `log` are those of the earlier run, whose
    folder is `run`; there its job folder and exit file stand. `job` is the id that the journal has (empty:
    the driver died before one came; a provisional one is possible). `since`: seconds since the epoch when
    the intent was written. `doomed`: that driver gave its backend up and asked for the end of the job, which
    may not have been heard. An end that may come of that is told as `cancelled`.
    """

    submission: Submission
    run: RunFolder
    job: str = ""
    since: float = 0.0
    doomed: bool = False


class Accepted(Struct, frozen=True):
    """The backend holds the attempt as `job`; `started` is the kernel start time of a local process.

    `job` stays the handle of the attempt in every call; where the scheduler's own id comes later it is told
    by `JobReport.job_id`. `waits`: it may have to wait in a line of this process; `RUNNING` is told then.
    """

    job: str
    started: int = 0
    waits: bool = False


class Refused(Struct, frozen=True):
    """The backend will not take this one request, in its own words: the task fails, the run goes on."""

    message: str


class JobStatus(StrEnum):
    """Where a job is, in the backend's eyes."""

    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"
    ENDING = ENDING  # the backend is given up, and was asked to end it; the reason tells why it did not hear
    DEFERRED = "deferred"  # of a step: someone else is making the same artifact
    FREED = "freed"  # of a deferred one: it can be tried again


class Written(Struct, frozen=True, array_like=True):
    """One input or output by its index: bytes, nanoseconds since the epoch, BLAKE2b-256 (empty: not taken).

    `kind` is `f` file, `d` folder, `-` not there. `checksum` is the one that the rule asks for, in hex.
    """

    index: int
    kind: str
    size: int = 0
    mtime: int = 0
    digest: str = ""
    checksum: str = ""


class Witnessed(Struct, frozen=True, kw_only=True):
    """What a job noted of its files: `inputs` (the script file behind them) at its start, `outputs` at its
    end, which was at `end` (seconds since the epoch by the node's clock). Paths that are not told were not
    looked at."""

    inputs: tuple[Written, ...] = ()
    outputs: tuple[Written, ...] = ()
    end: float | None = None


class JobReport(Struct, frozen=True, kw_only=True):
    """News of one job; `outcome` once it ended.

    A job that is `DEFERRED` holds nothing any more but a watch: `reason` names who holds the lease, and
    `FREED` follows, after which the backend has forgotten the job. Of a pending job `reason` is the queue's
    own word. `job_id` is what the scheduler calls the job, once that is known (empty: as `job`, or not yet).

    `written` is what the job itself noted of its files. `provisional`: of a success that later news may
    take back; the driver asks for the job until a further report with an outcome follows. That confirms the
    success when it is one (its figures replace the earlier ones), and withdraws it when it is none.
    """

    job: str
    status: JobStatus
    reason: str = ""
    outcome: Outcome | None = None
    job_id: str = ""
    written: Witnessed | None = None
    provisional: bool = False


class Remark(Struct, frozen=True):
    """Something of the backend as a whole, or of one job (`job`), that a person should be able to read later:
    `backend_down`, `backend_up`, ... with its values. It goes into the journal as a `Noticed`."""

    code: str
    values: dict[str, str] = {}
    job: str = ""


@runtime_checkable
class Adopting(Protocol):
    """What a backend with the ability `adoption` has besides, so that attempts outlive their driver."""

    def adopt(self, batch: Sequence[Adoptee]) -> list[Accepted | Refused]:
        """Take over attempts of earlier runs; one answer for each, in order.

        Accepted: it lives, or left its end behind (an exit file is enough), or that is not known yet; what
        becomes of it, and its id, arrive by `poll`. One that no source turns out to know, and that left no
        end, ends there with the reason `interrupted`. Refused: that is so for certain already. An answer that
        fails is no evidence: it is never a reason to give an attempt up.
        """
        ...


@runtime_checkable
class Remarking(Protocol):
    """What a backend may have besides: things to say that are of no one job's end."""

    def remarks(self) -> list[Remark]:
        """What there is to say since the last call. Asked after each `poll`, `submit` and `cancel`."""
        ...


@runtime_checkable
class Sharing(Protocol):
    """What a backend that runs steps may have besides: whose work the result of a step is."""

    def taken(self, task: str, attempt: str) -> str:
        """Who made the artifact that attempt `attempt` (`<run>.<n>`) came to, where it was not itself."""
        ...


@runtime_checkable
class Queueing(Protocol):
    """What a backend may have besides: a line of its own, in which what it holds waits to begin."""

    def keep_line(self, most: int) -> bool:
        """Run no more than `most` steps in threads at a time, and let others wait; False: it does not."""
        ...

    def withdraw(self, jobs: Sequence[str]) -> None:
        """End those of these jobs that have not begun. Their ends arrive by `poll`."""
        ...


@runtime_checkable
class Leaving(Protocol):
    """What a backend may have besides whose jobs outlive their driver."""

    def leave(self) -> None:
        """Somebody asked twice to be gone: fail by `poll` within a few seconds, whatever answers, and tell
        before that of each job in flight that it was to end (`ENDING`), with a reason if it was not heard."""
        ...


@runtime_checkable
class Joining(Protocol):
    """What a backend may have besides: jobs of several tasks, which come as submissions of one `unit`."""

    @property
    def fits_together(self) -> Callable[[Sequence[Resources]], bool] | None:
        """A method, mostly: whether one job can do tasks with such requests, one after the other. None: no
        job does several."""
        ...


@runtime_checkable
class Parted(Protocol):
    """What a backend has that joins others."""

    def part(self, task: ScheduledTask) -> ExecutorBackend:
        """The backend that runs this task. Always the same one."""
        ...


class ExecutorBackend(Protocol):
    """What the driver asks of a place where attempts run. Ids and batches are lists.

    Raises `SchedulerError` when the backend as a whole fails; never for one request.
    """

    @property
    def name(self) -> str: ...

    @property
    def abilities(self) -> Abilities: ...

    def render_script(self, submission: Submission) -> str:
        """The exact text that would run the attempt by hand."""
        ...

    def submit(self, batch: Sequence[Submission]) -> list[Accepted | Refused]:
        """Start the attempts; one answer for each, in order."""
        ...

    def poll(self, jobs: Sequence[str]) -> list[JobReport]:
        """News of these jobs, without waiting; jobs without news may be left out. An end is told once (but
        `JobReport.provisional`)."""
        ...

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        """Ask the jobs to end: SIGTERM, then SIGKILL after their grace (`force`: at once). Their ends
        arrive by `poll`."""
        ...

    def accounting(self, jobs: Sequence[str]) -> dict[str, Outcome]:
        """Figures that came later than the end, where the backend keeps any."""
        ...

    def logs(self, job: str) -> list[str]:
        """Absolute paths of what the job wrote to stdout and stderr."""
        ...

    def find(self, names: Sequence[str]) -> dict[str, str]:
        """Names of attempts -> job ids, for those that the backend still knows."""
        ...

    def fileno(self) -> int | None:
        """A descriptor that is readable when there is news (None: the driver must poll)."""
        ...

    def next_timeout(self) -> float | None:
        """Seconds until the backend wants `poll` to be called whatever happens (None: no wish)."""
        ...

    def close(self) -> None:
        """Give back what is held. Jobs are not touched."""
        ...

"""`ExecutorBackend`: the one protocol behind the driver. A backend never decides what to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol, cast

from msgspec import Struct

from treadle.plan.task import Resources, ScheduledTask
from treadle.records.event import Outcome


class Abilities(Struct, frozen=True, kw_only=True):
    """What a backend can do, as data."""

    notifies: bool = False  # `fileno()` becomes readable when `poll` has news
    arrays: bool = False
    accounting: bool = False
    adoption: bool = False  # jobs outlive the driver and can be found by name
    gpus: bool = False
    memory_limits: bool = False
    batch: bool = False  # a batch system: latency, outages and queues are normal


class Submission(Struct, frozen=True, kw_only=True):
    """One attempt, ready to go: the task, its texts bound, and where it lives.

    `argv` is what to execute; `env` is added to the environment; `cwd` is absolute; `log` is an
    absolute path that receives stdout and stderr. `resources` are those of this attempt (after
    growth and capping). `grace` is the time between SIGTERM and SIGKILL in seconds.
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


class Accepted(Struct, frozen=True):
    """The backend holds the attempt as `job`; `started` is the kernel start time of a local process."""

    job: str
    started: int = 0


class Refused(Struct, frozen=True):
    """The backend will not take this one request, in its own words: the task fails, the run goes on."""

    message: str


class JobStatus(StrEnum):
    """Where a job is, in the backend's eyes."""

    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"
    DEFERRED = "deferred"  # of a step: someone else is making the same artifact
    FREED = "freed"  # of a deferred one: it can be tried again


class JobReport(Struct, frozen=True, kw_only=True):
    """News of one job; `outcome` once it ended.

    A job that is `DEFERRED` holds nothing any more but a watch: `reason` names who holds the lease, and
    `FREED` follows, after which the backend has forgotten the job.
    """

    job: str
    status: JobStatus
    reason: str = ""
    outcome: Outcome | None = None


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
        """News of these jobs, without waiting; jobs without news may be left out. An end is told once."""
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


def part_for(backend: ExecutorBackend, task: ScheduledTask) -> ExecutorBackend:
    """The backend that runs this task: one of two that are joined (those have a `part`), else itself."""
    part = getattr(backend, "part", None)
    return backend if part is None else cast(ExecutorBackend, part(task))

"""What a run is driven with, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from treadle.engine.brakes import Settings
from treadle.engine.budget import Budget
from treadle.engine.news import Interrupt
from treadle.plan.task import ScheduledPlan
from treadle.records.event import Event, Outcome


class DriveOptions(Struct, frozen=True, kw_only=True):
    """How to drive.

    `jobs` is the CPU budget, `memory` in bytes and `gpus` what this machine has; None: not counted here
    (a scheduler counts). `local_rules` are the rules whose tasks run on this machine and are counted (None:
    all). `max_concurrent` is how many steps run on this machine at a time, `max_remote` how
    many jobs of the client are in flight. `forget`: of what has ended only how it ended is kept (streams).
    `grace` in seconds between SIGTERM and SIGKILL. `on_interrupt` None: cancel, but a terminal that goes
    away detaches where jobs outlive the driver, and so does SIGTERM shortly before `until` (seconds since
    the epoch), when the job ends that the driver itself is (None: it is none). `linger` in seconds: so long
    the end of the run waits for successes to be confirmed that may be taken back. `patient`: a full disk is
    waited for without end (somebody sits there and can press Ctrl-C). `scratch_dir` as in `compose.Place`.
    """

    jobs: int | None = None
    max_concurrent: int | None = None
    max_remote: int | None = None
    memory: int | None = None
    gpus: int | None = None
    local_rules: frozenset[str] | None = None
    keep_going: bool = False
    fail_fast: bool = False
    max_failures: int = 0
    cutoff: bool = True
    keep_temporary: bool = False
    forget: bool = False
    grace: float = 10.0
    on_interrupt: Interrupt | None = None
    until: float | None = None
    linger: float = 0.0
    patient: bool = False
    scratch_dir: str = ""

    def settings(self) -> Settings:
        return Settings(
            keep_going=self.keep_going,
            fail_fast=self.fail_fast,
            max_failures=self.max_failures,
            cutoff=self.cutoff,
            keep_temporary=self.keep_temporary,
            forget=self.forget,
            linger=self.linger,
        )

    def budget(self, plan: ScheduledPlan) -> Budget:
        """What may be in use at a time in a run of this plan."""
        return Budget(
            threads=self.jobs,
            memory=self.memory,
            gpus=self.gpus,
            pools=plan.pools,
            ceilings=plan.ceilings,
            slots=self.max_concurrent,
            remote=self.max_remote,
            local_rules=self.local_rules,
        )


class Failure(Struct, frozen=True, kw_only=True):
    """A task that failed for good: its last attempt `n`, how that ended, and its log."""

    task: str
    attempt: int
    n: int
    outcome: Outcome | None
    log: str


class DriveResult(Struct, frozen=True, kw_only=True):
    """How a run ended; `counts` of tasks by end, `blocked` the failed task at the root of each.

    `detached`: so many jobs go on, and the next run takes them over.
    """

    exit_code: int
    counts: dict[str, int]
    failures: tuple[Failure, ...] = ()
    blocked: dict[str, str] = {}
    detached: int = 0


class Records(Protocol):
    """Where events go (`records.recorder.Recorder`, or a journal alone)."""

    def write(self, events: Sequence[Event]) -> None:
        """Write the events of one turn; raises `DiskError`: none of them counts then, and `LockError`."""
        ...

    def sync(self) -> None:
        """See all events onto the disk; raises `DiskError`."""
        ...


class Beating(Protocol):
    """The lock, as the loop sees it."""

    def beat(self) -> None:
        """Show that we live."""
        ...


Listener = Callable[[Sequence[Event]], None]

"""What the world tells the machine, and what the machine asks of the world.

News go in by `Machine.handle`, commands come out of it. Neither holds a clock, a file or a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from treadle.decide.reason import Decision, Reason
from treadle.engine.node import Fewer
from treadle.plan.task import Resources, ScheduledPlan, ScheduledTask
from treadle.records.event import AttemptSubmitted, Event, Evidence, Outcome


class Interrupt(StrEnum):
    """How a run is to be stopped from outside."""

    CANCEL = "cancel"  # start nothing, end what runs; asked twice: at once
    WAIT = "wait"  # start nothing, let what runs come to its end
    DETACH = "detach"  # leave jobs that outlive us where they are, end the others, and go


class News(Struct, frozen=True):
    """Root of all news."""


class InFlight(Struct, frozen=True):
    """A job of an earlier run that still lives: its attempt numbers and its id.

    `intent` is its intent as that run journaled it, with that `run` in it. `anew`: it does something else by
    now; it is ended, and only then its task runs. `doomed` as in `Adoptee`.
    """

    attempt: int
    n: int
    job: str
    intent: AttemptSubmitted | None = None
    anew: bool = False
    doomed: bool = False

    @property
    def run(self) -> str:
        """The run that submitted it (empty: not said)."""
        return self.intent.run if self.intent is not None else ""


class Opened(News, frozen=True):
    """The run begins with this plan. `adopted`: jobs of earlier runs, by task.

    `more`: batches will be `Added`, and the run is not over before it is `Sealed`. `after`: the largest
    number of an attempt that is in flight and not this run's; ours go on from there.
    """

    plan: ScheduledPlan
    decision: Decision
    digest: str = ""
    adopted: Mapping[str, InFlight] = {}
    more: bool = False
    after: int = 0


class Grew(News, frozen=True):
    """Work was discovered: a larger plan takes the place of the running one. `found` are the checkpoint tasks
    that found it: where one of them did not end well after all, the plan does not count. `fewer` fills in
    gathers that go on without some of their inputs, as in `BackendDriver`."""

    plan: ScheduledPlan
    decision: Decision
    digest: str = ""
    found: tuple[str, ...] = ()
    fewer: Fewer | None = None


class Started(News, frozen=True):
    """The backend holds the attempt. `running` False: it waits in the backend's own queue. `stays`: it goes
    on when we are gone."""

    task: str
    n: int
    job: str
    started: int = 0
    running: bool = True
    stays: bool = False


class Running(News, frozen=True):
    """A job that waited in the backend's queue has begun; `job` is what the scheduler calls it."""

    task: str
    n: int
    job: str = ""


class Seen(News, frozen=True):
    """What the queue shows of a job that does not run: `state` (as in `JobSeen`), its own id once that
    is known, and why it waits, in the scheduler's words."""

    task: str
    n: int
    state: str
    job: str = ""
    reason: str = ""


class Confirmed(News, frozen=True):
    """A success that was `doubted` stands; `outcome` has the figures that are known by now."""

    task: str
    n: int
    outcome: Outcome


class Withdrawn(News, frozen=True):
    """A success that was `doubted` is none: `outcome` is how the attempt ended after all."""

    task: str
    n: int
    outcome: Outcome


class Deferred(News, frozen=True):
    """Someone else makes the artifact of this step: the attempt holds nothing until `Freed`."""

    task: str
    n: int
    holder: str = ""


class Freed(News, frozen=True):
    """A deferred attempt can be launched again: the artifact is there, or nobody makes it any more."""

    task: str
    n: int


class Added(News, frozen=True):
    """A further batch of steps arrived: a plan of its own, whose tasks may need those of earlier batches.

    A need that is no task of this run, or was up to date when it came, is met.
    """

    plan: ScheduledPlan
    decision: Decision
    digest: str = ""


class Sealed(News, frozen=True):
    """No further batch will come."""


class Ended(News, frozen=True):
    """An attempt ended and was looked at: outputs, inputs, evidence. `doubted`: of a success that
    `Confirmed` or `Withdrawn` may follow."""

    task: str
    n: int
    outcome: Outcome
    evidence: Evidence | None = None
    doubted: bool = False


class Vacated(News, frozen=True):
    """The job of a checkpoint task has ended well, and it takes nothing any more; what it found is told with
    its end, in the next round."""

    task: str
    n: int


class Refused(News, frozen=True):
    """The backend will not take this attempt, in its own words."""

    task: str
    n: int
    message: str


class Examined(News, frozen=True):
    """What still speaks for running a task that may be cut off; nothing: it settles as unchanged.

    `round` as in the command; `evidence`: the old evidence with what was looked at just now.
    """

    task: str
    round: int
    reasons: tuple[Reason, ...] = ()
    evidence: Evidence | None = None


class Elapsed(News, frozen=True):
    """The pause before the next attempt is over."""

    task: str


class Interrupted(News, frozen=True):
    """Someone wants the run to stop; `exit_code` is 130 or 143."""

    how: Interrupt = Interrupt.CANCEL
    exit_code: int = 130


class DiskFull(News, frozen=True):
    """No space is left where we write. `gave_up`: it was waited for long enough."""

    gave_up: bool = False


class DiskFine(News, frozen=True):
    """There is space again."""


class BackendFailed(News, frozen=True):
    """The backend as a whole failed. Told again: it cannot even cancel what it holds."""

    message: str


class Order(Struct, frozen=True):
    """Root of all commands."""


class Launch(Order, frozen=True):
    """Start an attempt with these resources (grown and capped), not on the nodes of `exclude`.

    `again`: it was deferred, and goes on as the attempt that it was: its intent is written already.
    `whole` is the task with all its inputs, where `task` goes on without those that are `lost`. Attempts of
    one `unit` (0: none) are one job, each to begin after those of it that it needs (`after`, by number).
    """

    task: ScheduledTask
    attempt: int
    n: int
    resources: Resources
    again: bool = False
    exclude: tuple[str, ...] = ()
    whole: ScheduledTask | None = None
    lost: tuple[str, ...] = ()
    unit: int = 0
    after: tuple[int, ...] = ()


class Examine(Order, frozen=True):
    """All upstream has ended: compare the task's inputs with its evidence, answer by `Examined`.

    `lost` are inputs that it has to do without."""

    task: ScheduledTask
    round: int
    lost: tuple[str, ...] = ()


class Cancel(Order, frozen=True):
    """End these jobs: SIGTERM, grace, SIGKILL (`force`: at once); `waiting`: those that have not begun."""

    jobs: tuple[str, ...]
    force: bool = False
    waiting: bool = False


class Leave(Order, frozen=True):
    """Wait no longer for jobs that outlive us, which were told to end: answer by `BackendFailed`, if there
    are any."""


class Wait(Order, frozen=True):
    """Answer by `Elapsed` after so many seconds."""

    task: str
    seconds: float


class WatchDisk(Order, frozen=True):
    """Nothing starts until there is space: look again and again, answer by `DiskFine`."""


class RemoveTemporary(Order, frozen=True):
    """Every dependent of the task has ended well: bury this output of it, and remove it."""

    task: ScheduledTask
    path: str


class Finish(Order, frozen=True):
    """The run is over."""

    exit_code: int


class Turn(Struct, frozen=True):
    """What the machine made of a batch of news: events to write first, then commands to obey."""

    events: list[Event]
    commands: list[Order]

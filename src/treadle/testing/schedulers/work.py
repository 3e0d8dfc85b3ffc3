"""Jobs and their elements, as a fake cluster holds them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct


class Stage(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDING = "ending"  # told to end, its processes are still there
    ENDED = "ended"


class End(StrEnum):
    """Why a run of an element is over."""

    COMPLETED = "completed"
    FAILED = "failed"  # its own exit code
    SIGNALLED = "signalled"
    LAUNCH = "launch"  # it could not be started
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    OOM = "oom"
    NODE_FAIL = "node_fail"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    VANISHED = "vanished"


class Run(Struct, frozen=True):
    """One earlier run of an element that ran again."""

    end: End
    node: str
    submitted: float
    started: float
    ended: float
    code: int = 0
    signal: int = 0
    cpu: float = 0.0
    peak: int = 0


class Wish(Struct, kw_only=True):
    """What was asked for, whatever the words: seconds, bytes (of the whole job), absolute paths.

    `indices` are those of an array (None: no array), `throttle` how many of them may run at once. `after`
    are jobs to wait for, each as (how, number). `out` and `err` may hold the scheduler's own patterns.
    """

    name: str
    script: bytes
    cwd: str
    workdir: str
    env: dict[str, str]
    arguments: str = ""
    command: str = ""
    shell: tuple[str, ...] = ()
    out: str = ""
    err: str = ""
    join: bool = True
    append: bool = False
    cpus: int = 1
    memory: int = 0
    limit: float = 0.0
    partition: str = ""
    account: str = ""
    qos: str = ""
    comment: str = ""
    gpus: int = 0
    held: bool = False
    requeue: bool = True
    indices: tuple[int, ...] | None = None
    array: str = ""
    throttle: int = 0
    begin: float = 0.0
    after: tuple[tuple[str, int], ...] = ()
    exclude: frozenset[str] = frozenset()
    select: str = ""
    signal: tuple[int, float] = (0, 0.0)


class Job:
    """One submission: its wish, and its elements (a single job has one, whose index is 0)."""

    __slots__ = (
        "elements",
        "never",
        "number",
        "running",
        "script",
        "submitted",
        "unfinished",
        "user",
        "waiting",
        "wish",
    )

    def __init__(self, number: int, wish: Wish, user: str, submitted: float) -> None:
        self.number = number
        self.wish = wish
        self.user = user
        self.submitted = submitted
        self.script = ""
        self.running = 0
        self.never = False  # what it waits for can not come
        indices = (0,) if wish.indices is None else wish.indices
        self.unfinished = len(indices)
        self.waiting = len(indices)  # elements that have never started
        self.elements = {index: Element(self, index) for index in indices}

    @property
    def is_array(self) -> bool:
        return self.wish.indices is not None

    def __iter__(self) -> Iterator[Element]:
        return iter(self.elements.values())


class Element:
    """One element of an array, or a single job; it may run more than once."""

    __slots__ = (
        "code",
        "cpu",
        "deleter",
        "end",
        "ended",
        "ending",
        "error",
        "held",
        "index",
        "job",
        "known",
        "lied",
        "met",
        "node",
        "not_before",
        "number",
        "peak",
        "pid",
        "reason",
        "recorded",
        "restarts",
        "runs",
        "shown",
        "signal",
        "stage",
        "started",
        "submitted",
        "traced",
    )

    def __init__(self, job: Job, index: int) -> None:
        self.job = job
        self.index = index
        self.number = job.number
        self.stage = Stage.PENDING
        self.submitted = job.submitted
        self.started = 0.0
        self.ended = 0.0
        self.not_before = job.wish.begin
        self.held = job.wish.held
        self.error = ""
        self.reason = ""
        self.node = ""
        self.pid = 0
        self.code = 0
        self.signal = 0
        self.cpu = 0.0
        self.peak = 0
        self.restarts = 0
        self.end: End | None = None
        self.ending: End | None = None
        self.deleter = ""
        self.shown = ""
        self.lied = ""
        self.known = True  # to the queue
        self.traced = True  # in the accounting, some day
        self.recorded = 0.0  # from when on accounting knows its end
        self.met: set[int] = set()
        self.runs: list[Run] = []

    @property
    def live(self) -> bool:
        return self.stage is not Stage.ENDED

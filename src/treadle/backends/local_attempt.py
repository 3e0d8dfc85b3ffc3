"""What the local backend keeps of an attempt while it lives, and the times at which it must act."""

from __future__ import annotations

import heapq
from enum import Enum, auto
from typing import Any

from treadle.base.proc import Child
from treadle.engine.backend import Submission
from treadle.records.event import EndReason


class Attempt:
    """One living process group. Times named `*_at` are of the monotonic clock."""

    __slots__ = (
        "asked",
        "begun_at",
        "begun_on",
        "check_pause",
        "child",
        "done",
        "gpus",
        "grace",
        "hung",
        "job",
        "killed",
        "leader_ended",
        "log",
        "mark",
        "oom_seen",
        "patience_at",
        "peak",
        "sample_at",
        "status",
        "time_limit",
        "usage",
        "warned",
        "why",
    )

    def __init__(
        self, submission: Submission, child: Child, gpus: tuple[str, ...], now: float, wall: float
    ) -> None:
        self.child = child
        self.job = str(child.pid)
        self.log = submission.log
        self.grace = submission.grace
        self.time_limit = submission.resources.time_limit
        self.mark = submission.env.get("TREADLE_ATTEMPT", "")
        self.gpus = gpus
        self.begun_at = now
        self.begun_on = wall
        self.why: EndReason | None = None  # why we end it, where we do
        self.warned = False  # SIGTERM went out before the time limit
        self.asked = False  # SIGTERM went out
        self.killed = False  # SIGKILL went out
        self.leader_ended = False
        self.done = False
        self.hung = False  # killed processes would not go away
        self.status: int | None = None  # as of wait(2); None: someone else took it
        self.usage: Any = None  # resource.struct_rusage of the leader and what it waited for
        self.oom_seen = (-1, -1)
        self.peak = 0
        self.sample_at = 0.0
        self.check_pause = 0.001
        self.patience_at = 0.0


class Act(Enum):
    """What is to be done when a time has come."""

    WARN = auto()
    LIMIT = auto()
    KILL = auto()
    CHECK = auto()


class Timers:
    """Times to act at, soonest first; those of attempts that are done are dropped without a wake-up."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Attempt, Act]] = []
        self._count = 0
        self._swept_at = 0

    def add(self, when: float, attempt: Attempt, act: Act) -> None:
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, attempt, act))
        if len(self._heap) > 2 * self._swept_at + 64:  # day-long limits of short tasks must not pile up
            self._heap = [entry for entry in self._heap if not entry[2].done]
            heapq.heapify(self._heap)
            self._swept_at = len(self._heap)

    def next(self) -> float | None:
        """The time of the soonest one that still matters."""
        while self._heap and self._heap[0][2].done:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> tuple[Attempt, Act] | None:
        """One whose time has come, or None."""
        when = self.next()
        if when is None or when > now:
            return None
        _, _, attempt, act = heapq.heappop(self._heap)
        return attempt, act

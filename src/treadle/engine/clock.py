"""The clock of the loop and its timers; a test may hand in a clock that jumps instead of waiting."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from selectors import BaseSelector
from typing import Protocol


class Clock(Protocol):
    """Time as the loop sees it, and the one place where it waits."""

    def now(self) -> float:
        """Seconds since the epoch, for events."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, for timers."""
        ...

    def wait(self, selector: BaseSelector, timeout: float | None) -> list[object]:
        """The data of what is readable, after at most `timeout` seconds (None: no limit)."""
        ...


class RealClock:
    """The clock of this machine."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def wait(self, selector: BaseSelector, timeout: float | None) -> list[object]:
        return [key.data for key, _ in selector.select(timeout)]


class Timers:
    """Things to do at a time of the monotonic clock."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def add(self, at: float, act: Callable[[], None]) -> None:
        """Call `act` once `at` has come."""
        self._count += 1  # so that two of one time never compare their functions
        heapq.heappush(self._heap, (at, self._count, act))

    def next(self) -> float | None:
        """When the first one is due."""
        return self._heap[0][0] if self._heap else None

    def fire(self, now: float) -> None:
        """Call all that are due."""
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2]()

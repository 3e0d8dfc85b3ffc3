"""The clock of a fake cluster, and what is to happen by it."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable


class Clock:
    """Seconds since the epoch, from `skew` beyond now on, `speed` times as fast as ours (0: it stands)."""

    def __init__(self, speed: float = 1.0, skew: float = 0.0) -> None:
        self.speed = speed
        self._base = time.time() + skew
        self._since = time.monotonic()

    def now(self) -> float:
        return self._base + (time.monotonic() - self._since) * self.speed

    def advance(self, seconds: float) -> None:
        self._base += seconds

    def wait(self, moment: float) -> float | None:
        """Real seconds until then; None: never, unless it is moved on."""
        left = moment - self.now()
        if left <= 0:
            return 0.0
        return left / self.speed if self.speed > 0 else None


class Timers:
    """Calls to be made at their moments by a clock, in order."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, moment: float, call: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, call))

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        self.at(self.clock.now() + seconds, call)

    def wait(self) -> float | None:
        """Real seconds until the next one (None: there is none that time alone brings)."""
        return self.clock.wait(self._heap[0][0]) if self._heap else None

    def run_due(self) -> None:
        now = self.clock.now()
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2]()

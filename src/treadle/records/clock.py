"""The clock as records need it, so that tests can hand in one of their own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for people, monotonic time for waiting."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that only ever grow, from an arbitrary start."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

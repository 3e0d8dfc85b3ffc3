"""How many elements may stand in the scheduler's queue at once, and what the scheduler says to that."""

from __future__ import annotations

_FIRST_PAUSE = 5.0  # seconds after which a limit is tried again, whatever has ended meanwhile; it doubles
_LONGEST_PAUSE = 60.0
_FORGOTTEN = 300.0  # seconds after which what the scheduler said about limits is tried anew


class Window:
    """Counts the elements in flight, of at most `most`.

    Once it was full, it is refilled when a quarter of it is free: one array instead of many single jobs.
    A limit that the scheduler names bounds it lower for a while.
    """

    def __init__(self, most: int) -> None:
        self.most = max(1, most)
        self.in_flight = 0
        self._full = False
        self._ceiling = self.most
        self._pause = 0.0
        self._until = 0.0
        self._seen = 0
        self._limited = 0.0

    def room(self, now: float) -> int:
        """How many elements may be submitted now."""
        if now < self._until and self.in_flight >= self._seen:
            return 0
        if now - self._limited > _FORGOTTEN:
            self._ceiling = self.most
        ceiling = self._ceiling
        free = max(0, ceiling - self.in_flight)
        if self._full and self.in_flight and free < -(-ceiling // 4):
            return 0
        self._full = False
        return free

    def wait_until(self, now: float) -> float | None:
        """When a limit is to be tried again (None: there is none)."""
        return self._until if now < self._until else None

    def lower(self, most: int) -> None:
        """The site allows no more than this."""
        self.most = self._ceiling = max(1, min(self.most, most))

    def sent(self, count: int) -> None:
        """So many were taken."""
        self.in_flight += count
        self._full = self.in_flight >= self._ceiling
        self._pause = 0.0

    def ended(self, count: int = 1) -> None:
        """So many have left the queue."""
        self.in_flight -= count

    def limited(self, now: float, size: int) -> None:
        """The scheduler takes no more: `size` were too many."""
        self._limited, self._seen = now, self.in_flight
        self._ceiling = max(1, self.in_flight + size // 2)
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
        # Half of too many may be few enough: that is tried at once.
        self._until = now + self._pause if size <= 1 else now

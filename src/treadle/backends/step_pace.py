"""How many threads serve the line of steps at a time: all that may, unless they only take turns.

Steps that do next to nothing are Python from end to end, and no two threads run Python at once: more of them
make such steps slower, by what passing the interpreter on costs. One thread serves them then, until a step
turns out to wait for something, or to take long.
"""

from __future__ import annotations

import threading

_ENOUGH = 8  # calls that tell that all are like that
_MOST_WANTED = 1 << 12
_TINY = 0.0003  # seconds of CPU of a call which is mostly our own work around it


class Pace:
    """`width` threads serve, the others are parked. `park` is called by these, all else by one thread."""

    def __init__(self) -> None:
        self.width: int | None = None  # None: all
        self._lock = threading.Lock()
        self._serving = 0
        self._wanted = 1  # findings that one thread would do, before it is left to one
        self._found = 0
        self._parked: list[threading.Lock] = []

    def added(self) -> None:
        """One more thread serves."""
        with self._lock:
            self._serving += 1

    @property
    def is_crowded(self) -> bool:
        """Whether who has just served is to `park`."""
        return self.width is not None and self._serving > self.width

    def park(self) -> None:
        """Wait until more are to serve."""
        with self._lock:
            if not self.is_crowded:
                return
            self._serving -= 1
            gate = threading.Lock()
            gate.acquire()
            self._parked.append(gate)
        gate.acquire()

    def widen(self) -> None:
        """Let all serve."""
        if self.width is None:
            return
        with self._lock:
            self.width = None
            self._serving += len(self._parked)
            for gate in self._parked:
                gate.release()
            self._parked.clear()

    def judge(self, calls: int, wall: float, cpu: float) -> None:
        """So many calls ended, and took so many seconds together."""
        tiny = cpu < calls * _TINY
        if self.width is not None:
            if not tiny or wall > 3 * cpu:  # it was a mistake, which is not to be made again and again
                self._wanted = min(4 * self._wanted, _MOST_WANTED)
                self._found = 0
                self.widen()
        elif calls >= _ENOUGH and tiny and wall <= 3 * self._serving * cpu:
            self._found += 1
            if self._found >= self._wanted:
                self.width = 1

"""One thread keeps all leases of the process alive, whatever the rest of the program is busy with."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

BEAT = 30.0  # seconds between two signs of life of one lease
_TICK = 10.0  # seconds between two looks at which leases are due
_IDLE = 3  # looks without any lease after which the thread ends


_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


# Seconds since the boot, those asleep too: others go on counting while this machine sleeps.
uptime: Callable[[], float] = time.monotonic if _BOOTTIME is None else partial(time.clock_gettime, _BOOTTIME)


class Beating(Protocol):
    """A lease as its heart sees it."""

    def beat(self, now: float) -> None:
        """Give a sign of life if it is time; a storage that is out is no error here."""
        ...


class Heartbeats:
    """Leases that are held by this process. Its thread starts with the first one that is held.

    `threaded=False`: nobody beats but who calls `beat` (a test with a clock of its own).
    """

    __slots__ = ("_held", "_lock", "_monotonic", "_thread", "_threaded")

    def __init__(self, monotonic: Callable[[], float] = uptime, *, threaded: bool = True) -> None:
        self._monotonic = monotonic
        self._threaded = threaded
        self._held: dict[int, Beating] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, lease: Beating) -> None:
        """Keep a lease alive from now on. Costs no system call but for the first."""
        with self._lock:
            self._held[id(lease)] = lease
            if self._thread is None and self._threaded:
                self._thread = threading.Thread(target=self._run, name="treadle-leases", daemon=True)
                self._thread.start()

    def drop(self, lease: Beating) -> None:
        """Let it go; one that is not known is fine."""
        self._held.pop(id(lease), None)

    def beat(self) -> None:
        """Beat all that are due by now."""
        with self._lock:
            due = list(self._held.values())
        for lease in due:
            lease.beat(self._monotonic())

    def begin_anew(self) -> None:
        """In a forked child: the thread stayed behind, and the leases are the parent's."""
        self._held = {}
        self._lock = threading.Lock()
        self._thread = None

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        idle = 0
        while True:
            time.sleep(_TICK)
            with self._lock:
                idle = 0 if self._held else idle + 1
                if idle >= _IDLE:
                    self._thread = None
                    return
            self.beat()


of_this_process = Heartbeats()
os.register_at_fork(after_in_child=of_this_process.begin_anew)

"""Keeps an owner's counter moving by a thread, whatever the rest of the program is busy with.

Digests of large inputs, a question at a terminal, a slow file system: all may take longer than the
patience of somebody on another host who watches the counter.
"""

from __future__ import annotations

import signal
import threading
import time

from treadle.records.owner import BEAT, Pulse

_HANG = 1.0  # seconds that a beat may take to come to its end when it is no longer wanted


class Heart:
    """Beats from now on until it is stopped, or the process ends."""

    __slots__ = ("_period", "_pulse", "_stop", "_thread")

    def __init__(self, pulse: Pulse, period: float = BEAT) -> None:
        self._pulse = pulse
        self._period = period
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="treadle-heart", daemon=True)
        self._thread.start()

    def stop(self) -> bool:
        """Stop; False when the thread hangs in a write, so that the file must not be closed under it."""
        self._stop.set()
        self._thread.join(_HANG)
        return not self._thread.is_alive()

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        while not self._stop.wait(self._period):
            self._pulse.beat(time.monotonic())

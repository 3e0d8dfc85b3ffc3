"""A worker whose lease somebody else has taken ends its function: what that makes would not be published."""

from __future__ import annotations

import os
import signal
import threading
import time

from treadle.steps.store import Lease

_EVERY = 5.0  # seconds; the lease itself finds out with its beats


def guard(lease: Lease, every: float = _EVERY) -> None:
    """Send this process SIGTERM once the lease is lost: the same as when the driver cancels it."""
    threading.Thread(target=_watch, args=(lease, every), name="treadle guard", daemon=True).start()


def _watch(lease: Lease, every: float) -> None:
    while lease.lost is None:
        time.sleep(every)
    os.kill(os.getpid(), signal.SIGTERM)

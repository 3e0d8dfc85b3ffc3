"""Finished work whose storage is out: it is kept, and published once that is back and the lease ours."""

from __future__ import annotations

import time
from collections.abc import Callable

from treadle.base.errors import DiskError
from treadle.base.files import is_there
from treadle.steps.local_output import see_folder
from treadle.steps.store import Lease

PATIENCE = 600.0  # seconds that work which is done waits for its storage
_FIRST, _LAST = 0.1, 10.0  # seconds between two looks


class Storage:
    """What one attempt made, and the storage under it. `cancelled`: nobody wants to wait any more."""

    __slots__ = ("_cancelled", "lease", "work")

    def __init__(self, lease: Lease, work: str, cancelled: Callable[[], bool]) -> None:
        self.lease = lease
        self.work = work
        self._cancelled = cancelled

    def has_work(self) -> bool:
        """Whether the function made anything at its path; as long as that cannot be seen, it is waited for.

        The folder was made for it: where that is gone, a mount is. Raises `DiskError`, `LeaseLost`.
        """
        if is_there(self.work):
            return True
        try:
            see_folder(self.work)
        except DiskError:
            self.wait()
            return is_there(self.work)
        return False

    def is_there(self) -> bool:
        """Whether the lease and the work can be seen. Raises `LeaseLost`."""
        return self._problem() is None

    def wait(self) -> None:
        """Wait until both can be seen. Raises `DiskError` when that takes too long, `LeaseLost`."""
        until, pause = time.monotonic() + PATIENCE, _FIRST
        while (problem := self._problem()) is not None:
            if self._cancelled() or time.monotonic() >= until:
                raise problem
            time.sleep(pause)
            pause = min(2 * pause, _LAST)

    def _problem(self) -> DiskError | None:
        try:
            self.lease.check()
        except DiskError as error:
            return error
        try:
            see_folder(self.work)
        except DiskError as error:
            return error
        return None

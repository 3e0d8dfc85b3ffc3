"""The thread that keeps the leases of this process on object stores alive."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Condition, Thread

from treadle.base.errors import DiskError
from treadle.steps.object_lease import ObjectLease
from treadle.steps.parallel import in_parallel

BEAT = 30.0  # seconds between signs of life
_AGAIN = 5.0  # seconds after which a store that was out is asked again
_THREADS = 8


class Heart:
    """Beats for all leases that are held. Its thread lives as long as there are any."""

    def __init__(self, beat: float = BEAT) -> None:
        self._beat = beat
        self._leases: dict[ObjectLease, None] = {}
        self._changed = Condition()
        self._runs = False

    def add(self, lease: ObjectLease) -> None:
        with self._changed:
            self._leases[lease] = None
            if not self._runs:
                self._runs = True
                Thread(target=self._run, name="treadle-leases", daemon=True).start()

    def drop(self, lease: ObjectLease) -> None:
        with self._changed:
            self._leases.pop(lease, None)
            self._changed.notify()

    def _run(self) -> None:
        pause = self._beat
        while self._waited(pause):
            pause = self._beat if self.beat_all() else min(_AGAIN, self._beat)

    def _waited(self, seconds: float) -> bool:
        """False when no lease is left, and the thread may end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._leases, timeout=seconds)
            self._runs = bool(self._leases)
            return self._runs

    def beat_all(self) -> bool:
        """One sign of life for each lease; False where the storage is out: the rest is not asked then."""
        with self._changed:
            leases = [lease for lease in self._leases if lease.lost is None]
        return all(self._answers(leases))

    def _answers(self, leases: list[ObjectLease]) -> Iterator[bool]:
        return in_parallel(_beat, leases, _THREADS)


def _beat(lease: ObjectLease) -> bool:
    try:
        lease.beat()
    except DiskError:
        return False  # it may pass; `check` tells before anything is published
    return True

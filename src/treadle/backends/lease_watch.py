"""Watches the leases that others hold, for steps that wait for them: one thread, from 50 ms to 1 s apart."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from treadle.base.errors import DiskError
from treadle.steps.record import ArtifactRecord, ArtifactState
from treadle.steps.store import ArtifactStore

_FIRST, _LAST = 0.05, 1.0  # seconds between two looks


class Watched:
    """One artifact that someone else is making."""

    __slots__ = ("identity", "job", "next_at", "path", "pause", "replaces", "store", "wanted")

    def __init__(
        self,
        job: str,
        store: ArtifactStore,
        path: str,
        identity: str,
        *,
        wanted: bool,
        replaces: ArtifactRecord | None,
    ) -> None:
        self.job = job
        self.store = store
        self.path = path
        self.identity = identity
        self.wanted = wanted
        self.replaces = replaces
        self.pause = _FIRST
        self.next_at = time.monotonic() + _FIRST

    def is_free(self) -> bool:
        """Whether it can be tried again: nobody makes it any more, or it is there."""
        try:
            if self.store.holder(self.path) is None:
                return True
            seen = self.store.look(self.path, self.identity)
        except DiskError:
            return False  # a storage that is out says nothing
        return seen.state is ArtifactState.COMPLETE and not (self.wanted and seen.record == self.replaces)


class LeaseWatch:
    """Tells which of the watched are free; `ring` is called when there is one. Idle, it has no thread."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._changed = threading.Condition()
        self._watched: dict[str, Watched] = {}
        self._free: deque[str] = deque()
        self._runs = False

    def add(self, one: Watched) -> None:
        """Watch one more."""
        with self._changed:
            self._watched[one.job] = one
            self._changed.notify()
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._work, name="treadle leases", daemon=True).start()

    def drop(self, job: str) -> bool:
        """Watch it no longer; False: it is not watched, or was found free already."""
        with self._changed:
            return self._watched.pop(job, None) is not None

    def take(self) -> list[str]:
        """Those that became free since the last call; they are watched no longer."""
        found = []
        while self._free:
            found.append(self._free.popleft())
        return found

    def close(self) -> None:
        """Watch nothing any more."""
        with self._changed:
            self._watched.clear()
            self._changed.notify()

    def _work(self) -> None:
        while (one := self._next()) is not None:
            if one.is_free():
                self._tell(one)
            else:
                one.pause = min(2 * one.pause, _LAST)
                one.next_at = time.monotonic() + one.pause

    def _next(self) -> Watched | None:
        """The next one to look at, once it is time; None: there is nothing left to watch."""
        with self._changed:
            while self._watched:
                one = min(self._watched.values(), key=lambda one: one.next_at)
                wait = one.next_at - time.monotonic()
                if wait <= 0:
                    return one
                self._changed.wait(wait)
            self._runs = False
            return None

    def _tell(self, one: Watched) -> None:
        with self._changed:
            if self._watched.get(one.job) is not one:
                return  # dropped meanwhile
            del self._watched[one.job]
            self._free.append(one.job)
        self._ring()

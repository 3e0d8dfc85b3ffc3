"""Seeing what steps published onto the disk: many at once, aside, as the journal is."""

from __future__ import annotations

import threading
from contextlib import suppress

from treadle.base.errors import DiskError
from treadle.steps.store import ArtifactStore

AFTER = 2.0  # seconds from a publication to its sync, as for the journal


class StoreSyncs:
    """Syncs stores in a thread that lives while there is something to sync.

    A sync that fails is tried with the next one. What a crash of the machine takes in spite of all is found
    torn by who looks at it, and made again.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._noted: dict[int, ArtifactStore] = {}
        self._runs = False
        self._closed = False

    def note(self, store: ArtifactStore) -> None:
        """Something was published there."""
        if id(store) in self._noted:
            return
        with self._changed:
            self._noted[id(store)] = store
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._work, name="treadle sync", daemon=True).start()

    def close(self) -> None:
        """Sync what is left, now."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._sync()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._closed:
                    self._changed.wait(AFTER)
                if self._closed or not self._noted:
                    self._runs = False
                    return
            self._sync()

    def _sync(self) -> None:
        with self._changed:
            noted, self._noted = self._noted, {}
        for store in noted.values():
            with suppress(DiskError):
                store.sync()

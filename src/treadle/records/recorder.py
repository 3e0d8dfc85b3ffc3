"""The records that a run writes, in the order that keeps them true: journal, checkpoint file, end."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.records.compact import Checkpoint
from treadle.records.event import Event, RunEnded
from treadle.records.journal import Journal
from treadle.records.lock import Lock


class Recorder:
    """The journal of a run and its copy in the checkpoint file (None: of a run that holds no lock)."""

    __slots__ = ("_checkpoint", "_journal", "_lock")

    def __init__(
        self, journal: Journal, checkpoint: Checkpoint | None = None, lock: Lock | None = None
    ) -> None:
        self._journal = journal
        self._checkpoint = checkpoint
        self._lock = lock

    def write(self, events: Sequence[Event]) -> None:
        """Write the events of one turn. Raises `DiskError` (none counts: hand them in again), `LockError`.

        When the run's end is among them, the copy is complete on the disk before the journal says so,
        for from then on nobody reads the journal for evidence.
        """
        if not events:
            return
        if self._lock is not None:
            self._lock.check()
        if not isinstance(events[-1], RunEnded):
            self._journal.write(events)
            self._note(events)
            return
        self._note(events)
        if self._checkpoint is not None:
            self._checkpoint.flush()
        self._journal.write(events)
        self._journal.sync()

    def sync(self) -> None:
        """See all events onto the disk: before a scheduler is called, else every 2 s. Raises `DiskError`."""
        self._journal.sync()

    def close(self) -> None:
        self._journal.close()
        if self._checkpoint is not None:
            self._checkpoint.close()

    def _note(self, events: Sequence[Event]) -> None:
        if self._checkpoint is not None:
            self._checkpoint.note(events)

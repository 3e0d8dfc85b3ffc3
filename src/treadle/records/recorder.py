"""The records that a run writes, in the order that keeps them true: journal, checkpoint file, end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from treadle.records.event import Event, RunEnded
from treadle.records.journal import Journal


class Held(Protocol):
    """The lock, as the recorder sees it (`records.lock.Lock`)."""

    def check(self) -> None:
        """Raise `LockError` when it is no longer ours."""
        ...


class Copy(Protocol):
    """The copy of the journal, as the recorder sees it (`records.compact.Checkpoint`)."""

    def note(self, events: Iterable[Event]) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class Recorder:
    """The journal of a run and its copy in the checkpoint file (None: of a run that holds no lock)."""

    __slots__ = ("_checkpoint", "_journal", "_lock")

    def __init__(self, journal: Journal, checkpoint: Copy | None = None, lock: Held | None = None) -> None:
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

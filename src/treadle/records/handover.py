"""Jobs of earlier runs change hands: this run's journal tells of them first, then those of the earlier ones.

Between the two, both journals claim a job; the later one counts. This run does not end before the earlier
ones know, or nobody could tell any more whose a job is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from treadle.base.errors import DiskError
from treadle.base.layout import StateFolder
from treadle.base.mask import Mask
from treadle.records.event import AttemptSubmitted, Event, RunEnded
from treadle.records.flight import Interrupted
from treadle.records.recover import hand_over


class Writing(Protocol):
    """Where events go (`Recorder`)."""

    def write(self, events: Sequence[Event]) -> None: ...

    def sync(self) -> None: ...


class Handover:
    """The records of run `by`, which takes over these jobs."""

    def __init__(
        self,
        records: Writing,
        state: StateFolder,
        flights: Sequence[Interrupted],
        by: str,
        mask: Mask | None = None,
    ) -> None:
        self._records = records
        self._state = state
        self._flights = flights
        self._by = by
        self._mask = mask
        self._told: set[str] = set()  # names of those that our own journal has
        self._written = 0  # events that are written already of those that will be handed in again

    def write(self, events: Sequence[Event]) -> None:
        """Write the events of one turn. Raises `DiskError` (none counts: hand them in again), `LockError`."""
        events, self._written = events[self._written :], 0
        if not self._flights:
            self._records.write(events)
        elif events and isinstance(events[-1], RunEnded):
            self._write(events[:-1])
            try:
                self._hand_over()
                self._records.write(events[-1:])
            except DiskError:
                self._written = len(events) - 1
                raise
        else:
            self._write(events)
            self._try()

    def _write(self, events: Sequence[Event]) -> None:
        self._records.write(events)
        self._told.update(one.name for one in events if isinstance(one, AttemptSubmitted) and one.run)

    def sync(self) -> None:
        """See all events onto the disk. Raises `DiskError`."""
        self._records.sync()
        self._try()

    def _try(self) -> None:
        if self._flights:
            try:
                self._hand_over()
            except DiskError:
                pass  # again at the next write, and the run does not end before

    def _hand_over(self) -> None:
        told = [one for one in self._flights if one.name in self._told]
        if told:
            self._records.sync()
            hand_over(self._state, told, self._by, mask=self._mask)
            self._flights = [one for one in self._flights if one.name not in self._told]

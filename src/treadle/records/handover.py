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
        self._told = False  # our own journal has them

    def write(self, events: Sequence[Event]) -> None:
        """Write the events of one turn. Raises `DiskError` (none counts: hand them in again), `LockError`."""
        if self._told and self._flights and events and isinstance(events[-1], RunEnded):
            self._hand_over()
        self._records.write(events)
        if self._flights:
            self._told = self._told or any(isinstance(one, AttemptSubmitted) and one.run for one in events)
            self._try()

    def sync(self) -> None:
        """See all events onto the disk. Raises `DiskError`."""
        self._records.sync()
        self._try()

    def _try(self) -> None:
        if self._told and self._flights:
            try:
                self._hand_over()
            except DiskError:
                pass  # again at the next write, and the run does not end before

    def _hand_over(self) -> None:
        self._records.sync()
        hand_over(self._state, self._flights, self._by, mask=self._mask)
        self._flights = ()

"""The source of a run's batches as the loop sees it: what arrives becomes news, what ends is told back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.engine.inbox import Inbox
from treadle.engine.news import Added, Sealed
from treadle.engine.source import Source
from treadle.engine.state import Machine
from treadle.records.event import Event, TaskSettled


class Feed:
    """One source, asked in each turn until it is done, or nothing more is wanted."""

    def __init__(self, source: Source, machine: Machine, inbox: Inbox) -> None:
        self._source = source
        self._machine = machine
        self._inbox = inbox
        self._open = True
        self._stopped = False

    def start(self, ring: Callable[[], None]) -> None:
        """The run has begun; `ring` wakes the loop."""
        self._source.start(ring)

    def take(self) -> None:
        """Tell of the batches that have arrived, and once that they were the last."""
        if not self._open:
            return
        if self._machine.stopping:
            self.stop()
            return
        for batch in self._source.take():
            self._inbox.tell(Added(batch.plan, batch.decision, batch.digest))
        if self._source.done:
            self._open = False
            self._inbox.tell(Sealed())

    def heard(self, events: Sequence[Event]) -> None:
        """Tell the source which tasks came to their end."""
        for event in events:
            if type(event) is TaskSettled:
                self._source.ended(event.task, event.state)
        if self._machine.stopping:
            self.stop()

    def stop(self) -> None:
        """Nothing more is wanted."""
        self._open = False
        if not self._stopped:
            self._stopped = True
            self._source.stop()

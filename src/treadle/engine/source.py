"""Work that arrives while a run goes on: batches of steps, each a plan of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from treadle.decide.reason import Decision
from treadle.plan.task import ScheduledPlan
from treadle.records.event import End


class Batch(Struct, frozen=True):
    """Steps that arrived together, decided. Their tasks may need tasks of earlier batches by id."""

    plan: ScheduledPlan
    decision: Decision
    digest: str = ""


class Source(Protocol):
    """Where batches come from. Everything but the work behind it happens on the loop's own thread."""

    def start(self, ring: Callable[[], None]) -> None:
        """The run has begun; `ring` may be called from any thread: there is news here."""
        ...

    def take(self) -> list[Batch]:
        """The batches that have arrived, which are gone from here then. Never waits."""
        ...

    def ended(self, task: str, end: End) -> None:
        """A task of the run came to its end: there may be room for more."""
        ...

    @property
    def done(self) -> bool:
        """Nothing more will arrive, and everything was taken."""
        ...

    def stop(self) -> None:
        """Nothing more is wanted."""
        ...

"""Writes the events of each turn; when the disk refuses, keeps them and watches for space.

While anything waits nothing new may start, for its intent could not be written. Space is looked at
every 10 s, and given up after 10 min.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from treadle.base.errors import DiskError
from treadle.base.files import free_bytes
from treadle.engine.clock import Clock, Timers
from treadle.engine.inbox import Inbox
from treadle.engine.news import DiskFine, DiskFull
from treadle.engine.options import Records
from treadle.records.event import Event

SYNC_AFTER = 2.0
LOOK_AGAIN = 10.0
PATIENCE = 600.0
LEAST_SPACE = 16 * 1024 * 1024  # bytes; with less a failure is the disk's


class Scribe:
    """The records of a run, as the loop writes them. `folders` are those that must have space before work
    goes on; `patient`: a full disk is waited for without end."""

    def __init__(
        self,
        records: Records,
        *,
        clock: Clock,
        timers: Timers,
        inbox: Inbox,
        folders: Callable[[], Iterable[str]],
        patient: bool,
    ) -> None:
        self._records = records
        self._clock = clock
        self._timers = timers
        self._inbox = inbox
        self._folders = folders
        self._patient = patient
        self._waiting: list[Event] = []
        self._sync_due = False
        self._until: float | None = None  # when a full disk is given up; None: it is not watched
        self.gave_up = False

    @property
    def waiting(self) -> bool:
        """Whether events wait for space."""
        return bool(self._waiting)

    def write(self, events: Sequence[Event]) -> bool:
        """Write; False: the disk refuses, or has refused, and they wait. Raises `LockError`."""
        if self._waiting:
            self._waiting += events
            return False
        return not events or self._try(list(events))

    def _try(self, events: list[Event]) -> bool:
        try:
            self._records.write(events)
        except DiskError:
            if not self._waiting:
                self._inbox.tell(DiskFull())
                self.watch()
            self._waiting = events
            return False
        self._waiting = []
        self._sync_later()
        return True

    def _sync_later(self) -> None:
        if not self._sync_due:
            self._sync_due = True
            self._timers.add(self._clock.monotonic() + SYNC_AFTER, self.sync)

    def sync(self) -> None:
        """See what was written onto the disk; where it refuses, later."""
        self._sync_due = False
        try:
            self._records.sync()
        except DiskError:
            self._sync_later()

    def watch(self) -> None:
        """Look for space from time to time; the machine hears of it by `DiskFine`, or by `DiskFull`."""
        if self._until is None:
            now = self._clock.monotonic()
            self._until = now + PATIENCE
            self._timers.add(now + LOOK_AGAIN, self._look)

    def _look(self) -> None:
        assert self._until is not None
        now = self._clock.monotonic()
        if (not self._waiting or self._try(self._waiting)) and not any(map(is_full, self._folders())):
            self._until = None
            self._inbox.tell(DiskFine())
        elif now < self._until or self._patient:
            self._timers.add(now + LOOK_AGAIN, self._look)
        else:
            self._until = None
            self.gave_up = True
            self._inbox.tell(DiskFull(gave_up=True))


def is_full(folder: str) -> bool:
    """Whether under 16 MiB are free there; a file system that does not tell is not full."""
    try:
        return free_bytes(folder) < LEAST_SPACE
    except DiskError:
        return False

"""The lock of a work folder that a run takes in its middle, when the first step comes that reads files.

Until then the run keeps no evidence. It is handed to the run's recorder as its lock and as its copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from threading import Lock as Mutex

from treadle.api.session import Session, hold
from treadle.base.mask import Mask
from treadle.records.compact import Checkpoint
from treadle.records.event import Event
from treadle.records.past import Past


class LateHold:
    """The folder, held from `take` on. `past` is empty until then."""

    def __init__(self, workdir: str, mask: Mask, *, wait: bool = False) -> None:
        self.past = Past()
        self._workdir = workdir
        self._mask = mask
        self._wait = wait
        self._run = ""
        self._mutex = Mutex()
        self._ends = ExitStack()
        self._session: Session | None = None
        self._copy: Checkpoint | None = None

    def begin(self, run: str) -> None:
        """The run has this id."""
        self._run = run

    def take(self) -> Past:
        """Hold the folder, if that is not so yet; from any thread. Raises what `hold` raises."""
        with self._mutex:
            if self._session is None:
                found = self._ends.enter_context(
                    hold(self._workdir, mask=self._mask, wait=self._wait, say=_silent)
                )
                copy = Checkpoint.open(found.state, self._run, self._mask)
                self.past.add(found.past.lines())
                self._session, self._copy = found, copy
        return self.past

    def release(self) -> None:
        """Give the folder back."""
        self._ends.close()

    # As the lock of a recorder

    def check(self) -> None:
        if self._session is not None:
            self._session.check()

    # As the copy of a recorder

    def note(self, events: Iterable[Event]) -> None:
        if self._copy is not None:
            self._copy.note(events)

    def flush(self) -> None:
        if self._copy is not None:
            self._copy.flush()

    def close(self) -> None:
        if self._copy is not None:
            self._copy.close()


def _silent(news: object) -> None:
    """In the middle of a run nobody is told of what happened before it."""

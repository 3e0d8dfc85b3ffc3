"""That an attempt on a Ray node is to end, and why: known to whoever waits at a descriptor."""

from __future__ import annotations

import os
import threading

from treadle.records.event import EndReason


class Ends:
    """`reader` is readable when something was asked that has not been drained; the first reason counts."""

    def __init__(self) -> None:
        self.reason: EndReason | None = None
        self.force = False
        self._asked = threading.Event()
        self.reader, self._writer = os.pipe()

    def ask(self, reason: EndReason, *, force: bool = False) -> None:
        """Any thread may ask, and ask again."""
        self.reason = self.reason or reason
        self.force = self.force or force
        self._asked.set()
        os.write(self._writer, b"\0")

    def is_asked(self) -> bool:
        return self._asked.is_set()

    def drain(self) -> None:
        """Take in what was asked."""
        os.read(self.reader, 4096)

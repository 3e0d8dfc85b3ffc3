"""Signals and other threads wake the loop through one pipe; what they mean is told apart here."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

from treadle.base.forked import CAUGHT, leave_children, restore_in_children


class Wake:
    """A pipe that makes the loop's selector return. Any thread may ring it."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        for fd in (self.reader, self.writer):
            os.set_blocking(fd, False)

    def ring(self) -> None:
        """Wake the loop; that the pipe is full only means that it is awake."""
        try:
            os.write(self.writer, b"\0")
        except (BlockingIOError, OSError):
            pass

    def drain(self) -> None:
        """Forget what was rung."""
        try:
            while os.read(self.reader, 4096):
                pass
        except BlockingIOError:
            pass

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


class Signals:
    """SIGINT, SIGTERM and SIGHUP while the loop runs; as a context manager it puts back what was.

    A signal that is ignored when we begin stays ignored (`nohup`). Outside of the main thread Python
    gives no signals, and nothing is changed.
    """

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._caught: list[int] = []
        self._before: dict[int, Any] = {}
        self._wakeup_fd = -1

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in CAUGHT:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._catch)
            # Without this a signal between two looks at the list would wait for the next news.
            self._wakeup_fd = signal.set_wakeup_fd(self._wake.writer, warn_on_full_buffer=False)
            restore_in_children(self._put_back)
        return self

    def __exit__(self, *exception: object) -> None:
        leave_children(self._put_back)
        self._put_back()

    def _put_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._before:
            signal.set_wakeup_fd(self._wakeup_fd)
        self._before.clear()

    def _catch(self, number: int, frame: FrameType | None) -> None:
        self._caught.append(number)

    def take(self) -> list[int]:
        """Numbers of the signals that came since the last look."""
        if not self._caught:
            return []
        caught, self._caught = self._caught, []
        return caught


def exit_code_of(number: int) -> int:
    """130 for Ctrl-C, 143 for SIGTERM and for a terminal that went away."""
    return 130 if number == signal.SIGINT else 143

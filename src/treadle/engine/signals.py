"""Signals and other threads wake the loop through one pipe; what they mean is told apart here."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

_WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_watching: list[Signals] = []  # of this process, the innermost last


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
            for number in _WATCHED:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._catch)
            # Without this a signal between two looks at the list would wait for the next news.
            self._wakeup_fd = signal.set_wakeup_fd(self._wake.writer, warn_on_full_buffer=False)
            _watching.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        if self in _watching:
            _watching.remove(self)
            self.put_back()

    def put_back(self) -> None:
        """Let signals mean what they meant before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._before:
            signal.set_wakeup_fd(self._wakeup_fd)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        self._caught.append(number)

    def take(self) -> list[int]:
        """Numbers of the signals that came since the last look."""
        if not self._caught:
            return []
        caught, self._caught = self._caught, []
        return caught


def _forked() -> None:
    """In a child that a step forked: there no loop looks at the list, and it would be deaf."""
    while _watching:
        _watching.pop().put_back()


os.register_at_fork(after_in_child=_forked)


def exit_code_of(number: int) -> int:
    """130 for Ctrl-C, 143 for SIGTERM and for a terminal that went away."""
    return 130 if number == signal.SIGINT else 143

"""Hearing of the ends of processes through one descriptor: epoll on Linux, kqueue on macOS.

Where neither can be had (a sandbox without pidfds), living processes are asked one by one.
"""

from __future__ import annotations

import os
import select
import sys
from typing import Protocol

from treadle.base.proc import Child, pidfds_work


class Exits(Protocol):
    """Which of the watched processes have ended. None of them is reaped here."""

    def watch(self, child: Child) -> None: ...

    def forget(self, child: Child) -> None:
        """Watch it no longer, and give back what it held."""
        ...

    def take(self) -> list[int]:
        """Process ids of those that have ended, without waiting; told again until forgotten."""
        ...

    def listen(self, reader: int) -> None:
        """Let `fileno` be readable when this descriptor is, too."""
        ...

    def fileno(self) -> int | None: ...

    def interval(self) -> float | None:
        """Seconds after which to ask again; None where `fileno` tells."""
        ...

    def close(self) -> None: ...


def exits_here() -> Exits:
    """The best way of this system."""
    if sys.platform != "linux":
        return KqueueExits() if hasattr(select, "kqueue") else AskingExits()
    return EpollExits() if pidfds_work() else AskingExits()


class EpollExits:
    """Descriptors of processes in an epoll, which is itself readable when one of them ended."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._pids: dict[int, int] = {}

    def watch(self, child: Child) -> None:
        self._pids[child.pidfd] = child.pid
        self._epoll.register(child.pidfd, select.EPOLLIN)

    def forget(self, child: Child) -> None:
        if self._pids.pop(child.pidfd, None) is not None:
            self._epoll.unregister(child.pidfd)
            os.close(child.pidfd)

    def take(self) -> list[int]:
        if not self._pids:
            return []
        return [self._pids[fd] for fd, _ in self._epoll.poll(0) if fd in self._pids]

    def listen(self, reader: int) -> None:
        self._epoll.register(reader, select.EPOLLIN)

    def fileno(self) -> int | None:
        return self._epoll.fileno()

    def interval(self) -> float | None:
        return None

    def close(self) -> None:
        for pidfd in self._pids:
            os.close(pidfd)
        self._pids.clear()
        self._epoll.close()


class AskingExits:
    """Asks each process whether it has ended; there is no descriptor to wait at."""

    def __init__(self) -> None:
        self._children: dict[int, Child] = {}
        self._reader: int | None = None

    def watch(self, child: Child) -> None:
        self._children[child.pid] = child

    def forget(self, child: Child) -> None:
        if self._children.pop(child.pid, None) is not None and child.pidfd >= 0:
            os.close(child.pidfd)

    def take(self) -> list[int]:
        return [pid for pid in self._children if has_ended(pid)]

    def listen(self, reader: int) -> None:
        self._reader = reader

    def fileno(self) -> int | None:
        return self._reader

    def interval(self) -> float | None:
        return 0.02 if self._children else None

    def close(self) -> None:
        for child in list(self._children.values()):
            self.forget(child)


if sys.platform != "linux":

    class KqueueExits:
        """Process events in a kqueue, which is itself readable when one of them ended."""

        def __init__(self) -> None:
            self._queue = select.kqueue()
            self._pids: dict[int, None] = {}
            self._ended: dict[int, None] = {}

        def watch(self, child: Child) -> None:
            self._pids[child.pid] = None
            try:
                self._queue.control([self._event(child.pid, select.KQ_EV_ADD | select.KQ_EV_ONESHOT)], 0)
            except ProcessLookupError:  # ended already
                self._ended[child.pid] = None

        def forget(self, child: Child) -> None:
            self._pids.pop(child.pid, None)
            self._ended.pop(child.pid, None)

        def take(self) -> list[int]:
            for event in self._queue.control(None, max(1, len(self._pids)) + 1, 0):
                if event.filter == select.KQ_FILTER_PROC:
                    self._ended[event.ident] = None
            return [pid for pid in self._ended if pid in self._pids]

        def listen(self, reader: int) -> None:
            self._queue.control([select.kevent(reader, select.KQ_FILTER_READ, select.KQ_EV_ADD)], 0)

        def fileno(self) -> int | None:
            return self._queue.fileno()

        def interval(self) -> float | None:
            return 0.0 if self._ended else None

        def close(self) -> None:
            self._queue.close()

        @staticmethod
        def _event(pid: int, flags: int) -> select.kevent:
            return select.kevent(pid, select.KQ_FILTER_PROC, flags, select.KQ_NOTE_EXIT)


def has_ended(pid: int) -> bool:
    """Whether a child of ours has ended; it is left as it is."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True

"""A worker ends with its driver, however that ends: kill -9 leaves no process of a step behind.

The worker's stdin is one end of a pipe whose other end only the driver holds. Once the driver is gone the
kernel itself sends SIGKILL to the worker's group (fcntl(2), F_SETSIG and F_SETOWN with a group; the function
may be deep in C code meanwhile). Where that cannot be had a thread waits at the pipe.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import threading
from contextlib import suppress


class Lifeline:
    """The driver's end: `stdin` is what its workers are given as stdin."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    @property
    def stdin(self) -> str:
        return f"/dev/fd/{self._reader}"

    def close(self) -> None:
        """Nothing is started any more, and what runs has ended: what still lives would be killed."""
        os.close(self._reader)
        os.close(self._writer)


def end_with_driver() -> None:
    """In the worker, once: its whole group ends with the driver from now on; its stdin is empty."""
    if not _is_pipe(0):
        return  # started by hand, or by something that sees to its end itself
    line = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if not kernel_watches(line):
        threading.Thread(target=_watch, args=(line,), name="treadle driver", daemon=True).start()
    elif _is_over(line):
        _end()


def _is_pipe(fd: int) -> bool:
    with suppress(OSError):
        return os.fstat(fd).st_mode & 0o170000 == 0o010000
    return False


def kernel_watches(line: int) -> bool:
    """Let the kernel end our process group once nobody holds the other end of the pipe `line`, if it can.

    It holds for the open file, and so over an exec.
    """
    if not hasattr(fcntl, "F_SETSIG"):
        return False
    try:
        fcntl.fcntl(line, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(line, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
    except OSError:
        return False
    return True


def _is_over(line: int) -> bool:
    """Whether the driver was gone before the kernel watched."""
    asked = select.poll()
    asked.register(line, select.POLLIN)
    return bool(asked.poll(0))


def _watch(line: int) -> None:
    with suppress(OSError):
        while os.read(line, 1):
            pass
    _end()


def _end() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)

"""Standard streams as the world hands them over: closed, on a full disk, or with nobody at the other end."""

from __future__ import annotations

import os
import sys


def open_closed() -> None:
    """Put /dev/null where a standard stream was closed (`<&-`): else the next file that we open gets its
    number, and what is meant for the stream would be written into it."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(fd)
        sys.stdin = sys.stdin or os.fdopen(0)
        sys.stdout = sys.stdout or os.fdopen(1, "w")
        sys.stderr = sys.stderr or os.fdopen(2, "w")


def drop(stream: int) -> None:
    """Let all that is still written to stream 1 or 2 go nowhere, also what Python writes when it exits."""
    fd = os.open(os.devnull, os.O_WRONLY)
    os.dup2(fd, stream)
    os.close(fd)


def stdout_refuses() -> str:
    """Why nothing more can be printed, in the system's words; empty when it can (an empty line)."""
    try:
        print(flush=True)
    except OSError as error:
        return error.strerror or str(error)
    return ""

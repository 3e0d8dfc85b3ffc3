"""Standard streams as the world hands them over: closed, on a full disk, or with nobody at the other end."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Any, TextIO


def prepare() -> None:
    """Make the standard streams fit to be used, whatever they are.

    /dev/null stands in for one that was closed (`<&-`): else the next file that we open gets its number, and
    what is meant for the stream would be written into it. What a terminal cannot show (`ü` where it knows
    ASCII only) is shown as `\\xfc`.
    """
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(fd)
        sys.stdin = sys.stdin or os.fdopen(0)
        sys.stdout = sys.stdout or os.fdopen(1, "w")
        sys.stderr = sys.stderr or os.fdopen(2, "w")
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def drop(stream: int) -> None:
    """Let what is still written to a stream (1 or 2) go nowhere, also what Python writes when it exits."""
    fd = os.open(os.devnull, os.O_WRONLY)
    os.dup2(fd, stream)
    os.close(fd)


class Lasting:
    """A text stream whose reader may go away; what is written from then on goes nowhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            drop(self._stream.fileno())
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            drop(self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def stdout_refuses() -> str:
    """Why nothing more can be printed, in the system's words; empty when it can (an empty line)."""
    try:
        print(flush=True)
    except OSError as error:
        return error.strerror or str(error)
    return ""

"""Reading files of JSON lines: at once or block by block, a torn tail left out, damage told with its line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from treadle.base.errors import RecordError
from treadle.base.files import disk_error
from treadle.base.garbage import Rest
from treadle.base.place import Place

T = TypeVar("T")
_TAIL = 1 << 16
_BLOCK = 1 << 18


def read_bytes(path: str) -> bytes:
    """All of a file. Raises `DiskError`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with open(fd, "rb", buffering=0) as file:
            return file.read()
    except OSError as error:
        raise disk_error("read", path, error) from error


def blocks(path: str) -> Iterator[bytes]:
    """All whole lines of a file, some hundred kilobytes of them at a time; a torn tail is left out.

    Raises `DiskError`.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with open(fd, "rb", buffering=0) as file:
            rest = b""
            while piece := file.read(_BLOCK):
                rest += piece
                # The last whole line waits: if nothing follows, it may be part of a torn tail.
                start = rest.rfind(b"\n", 0, max(0, rest.rfind(b"\n"))) + 1
                if start:
                    yield rest[:start]
                    rest = rest[start:]
    except OSError as error:
        raise disk_error("read", path, error) from error
    if rest := cut_torn(rest):
        yield rest


def cut_torn(data: bytes) -> bytes:
    """The data without a torn tail: what stands behind the last newline, and a last line with NULs in it.

    A machine that crashes may leave blocks of NULs where data was not yet written; JSON has none.
    """
    end = data.rfind(b"\n") + 1
    start = data.rfind(b"\n", 0, end - 1) + 1 if end else 0
    if b"\0" in data[start:end]:
        end = start
    return data if end == len(data) else data[:end]


def whole_length(fd: int) -> int:
    """How many bytes of an open file are whole lines, from a look at its tail; OSErrors go through."""
    size = os.fstat(fd).st_size
    window = _TAIL
    while True:
        start = max(0, size - window)
        tail = os.pread(fd, size - start, start)
        if start == 0 or tail.count(b"\n") > 1:  # the last line begins within it
            return start + len(cut_torn(tail))
        window *= 8


def decode_lines(decoder: msgspec.json.Decoder[T], data: bytes, path: str, *, first: int = 1) -> list[T]:
    """Decode all lines; `first` is the number of the first one. Raises `RecordError` with file and line."""
    try:
        with Rest():
            return decoder.decode_lines(data)
    except msgspec.MsgspecError as error:
        raise _damage(decoder, data, path, first) or error from None


def _damage(decoder: msgspec.json.Decoder[T], data: bytes, path: str, first: int) -> RecordError | None:
    for number, line in enumerate(data.split(b"\n"), first):
        try:
            if line.strip():
                decoder.decode(line)
        except msgspec.MsgspecError as error:
            return damaged(path, number, str(error))
    return None


def damaged(path: str, line: int, why: str) -> RecordError:
    """The error for a line that cannot be read."""
    return RecordError(
        f"this line cannot be read ({why})",
        place=Place(path, line),
        hint="the file was changed or its disk lost data: bring back a copy of it, or move it away; "
        "what it alone recorded will run again",
        code="damaged-record",
    )

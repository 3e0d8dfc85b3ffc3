"""The journal of one run: append events, read them back, mend a tail that a crash tore."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Self

import msgspec
from msgspec import Struct

from treadle.base.errors import RecordError
from treadle.base.files import disk_error, sync_folder
from treadle.base.mask import Mask
from treadle.base.place import Place
from treadle.records.append import Appender
from treadle.records.encode import encode_events
from treadle.records.event import FORMAT, AnyEvent, Event, RunEnded, RunStarted
from treadle.records.read import cut_torn, decode_lines, read_bytes, whole_length

_TAIL = 1 << 16
_OFTEN = 16 << 20  # more than this is never left unsynced: it is held in memory until then


@cache
def _decoder() -> msgspec.json.Decoder[AnyEvent]:
    return msgspec.json.Decoder(AnyEvent)  # 1 ms, which a first run need not spend


class Journal:
    """The open journal of the run that writes it."""

    __slots__ = ("_file", "_mask")

    def __init__(self, file: Appender, mask: Mask | None) -> None:
        self._file = file
        self._mask = mask

    @classmethod
    def create(cls, path: str, first: RunStarted, mask: Mask | None = None) -> Self:
        """Make the journal, its first line on the disk. Raises `DiskError`, also when it exists."""
        journal = cls(Appender.open(path, new=True), mask)
        journal.write([first])
        journal.sync()
        try:
            sync_folder(os.path.dirname(path))
        except OSError as error:
            raise disk_error("write", path, error) from error
        return journal

    @classmethod
    def reopen(cls, path: str, mask: Mask | None = None) -> Self:
        """Open a journal that was mended, to write its end. Raises `DiskError`."""
        return cls(Appender.open(path), mask)

    @property
    def path(self) -> str:
        return self._file.path

    def write(self, events: Sequence[Event]) -> None:
        """Append the events in one write. Raises `DiskError`: none of them counts then, hand them in again.

        From here on `kill -9` loses nothing; a crash of the machine may, until `sync`.
        """
        if events:
            self._file.write(encode_events(events, self._mask))
            if self._file.waiting > _OFTEN:
                self._file.sync()

    def sync(self) -> None:
        """Wait until all events are on the disk. Raises `DiskError`: nothing is lost, call it again."""
        self._file.sync()

    def close(self) -> None:
        self._file.close()


class Journaled(Struct, frozen=True):
    """What a journal holds, and how many bytes of a torn tail were left out."""

    events: list[AnyEvent]
    torn: int = 0


class _Head(Struct):
    event: str = ""
    format: int = 0


def read_journal(path: str) -> Journaled:
    """All events of a journal; a torn last line is normal and left out.

    Raises `RecordError` for damage anywhere else and for a journal of a newer Treadle, `DiskError` when
    the file cannot be read.
    """
    data = read_bytes(path)
    whole = cut_torn(data)
    torn = len(data) - len(whole)
    if whole:
        _check_head(path, whole)
    return Journaled(decode_lines(_decoder(), whole, path), torn)


def _check_head(path: str, data: bytes) -> None:
    """The first line says the format, before anything else is understood."""
    try:
        head = msgspec.json.decode(data[: data.index(b"\n")], type=_Head)
    except msgspec.MsgspecError:
        head = _Head()
    if head.event != "run_started":
        raise RecordError(
            "this is no journal: its first line does not say which run it is",
            place=Place(path, 1),
            hint="move the folder of that run out of .treadle/runs; what it alone recorded will run again",
        )
    if head.format > FORMAT:
        raise RecordError(
            f"written in format {head.format} by a newer Treadle; this one reads up to format {FORMAT}",
            place=Place(path, 1),
            hint="use the newer Treadle in this folder",
            code="newer-format",
        )


def mend(path: str) -> int:
    """Cut a torn tail off; how many bytes it had. Raises `DiskError`."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            torn = os.fstat(fd).st_size - (whole := whole_length(fd))
            if torn:
                os.ftruncate(fd, whole)
                os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise disk_error("mend", path, error) from error
    return torn


def is_ended(path: str) -> bool:
    """Whether the last line of a journal says that its run ended: one look at the tail of the file."""
    return end_of(path) is not None


def end_of(path: str) -> RunEnded | None:
    """The end of the run, if the last line of its journal tells it; one look at the tail of the file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise disk_error("read", path, error) from error
    try:
        size = os.fstat(fd).st_size
        tail = os.pread(fd, _TAIL, max(0, size - _TAIL))
    except OSError as error:
        raise disk_error("read", path, error) from error
    finally:
        os.close(fd)
    last = tail.rstrip(b"\n").rpartition(b"\n")[2]
    if not tail.endswith(b"\n"):
        return None
    try:
        event = _decoder().decode(last)
    except msgspec.MsgspecError:
        return None
    return event if isinstance(event, RunEnded) else None


def start_of(path: str) -> RunStarted | None:
    """The first line of a journal; None when there is none. Raises `RecordError` and `DiskError`."""
    try:
        with open(path, "rb") as file:
            head = file.readline()
    except OSError as error:
        raise disk_error("read", path, error) from error
    if not head.endswith(b"\n"):
        return None
    _check_head(path, head)
    first = decode_lines(_decoder(), head, path)[0]
    assert isinstance(first, RunStarted)
    return first

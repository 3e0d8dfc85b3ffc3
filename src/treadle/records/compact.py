"""The checkpoint file: the copy of what settled tasks left, appended by runs and compacted at times."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Self

from treadle.base.errors import DiskError
from treadle.base.files import disk_error, write_whole
from treadle.base.layout import StateFolder
from treadle.base.mask import Mask
from treadle.records.append import Appender
from treadle.records.event import Event
from treadle.records.journal import is_ended, mend, read_journal
from treadle.records.line import HEAD, Line, encode_checkpoint, line_of, lines_of
from treadle.records.past import Past, journaled_runs

SMALL = 1 << 20  # bytes up to which nobody minds lines that are superseded
_MANY = 256
_AT_ONCE = 1000  # lines that are encoded before they are written
_CHUNK = 4 << 20  # bytes that wait in memory at most, unless the disk refuses


class Checkpoint:
    """The file, open for appending. Only the holder of the lock may.

    It is a copy, so it is written late: what is noted reaches the disk by `flush`, which must come before
    the journal says that its run ended. Until then the journal is read in its stead.
    """

    __slots__ = ("_buffer", "_file", "_mask", "_noted", "_run", "_size")

    def __init__(self, file: Appender, run: str, mask: Mask | None) -> None:
        self._file = file
        self._run = run
        self._mask = mask
        self._noted: list[Event] = []  # many at once are encoded in half the time
        self._buffer: list[bytes] = []
        self._size = 0

    @classmethod
    def open(cls, state: StateFolder, run: str = "", mask: Mask | None = None) -> Self:
        """Open for what `run` leaves; mended where it is torn, made where it is missing.

        Raises `DiskError`.
        """
        if _size(state.checkpoint):
            mend(state.checkpoint)
        if not _size(state.checkpoint):
            rebuild(state)
        return cls(Appender.open(state.checkpoint), run, mask)

    def note(self, events: Iterable[Event]) -> None:
        """Take down what the events leave behind. Never fails: what cannot be written yet is kept."""
        self._noted += events
        if len(self._noted) >= _MANY:
            self._encode()
            self._relieve()

    def append(self, lines: Iterable[Line]) -> None:
        """As `note`, for lines."""
        self._encode(lines)
        self._relieve()

    def _encode(self, lines: Iterable[Line] = ()) -> None:
        """Into the buffer: what was noted, and then these lines."""
        noted, self._noted = self._noted, []
        left = [line for event in noted if (line := line_of(event, self._run, self._mask)) is not None]
        data = encode_checkpoint([*left, *lines])
        if data:
            self._buffer.append(data)
            self._size += len(data)

    def _relieve(self) -> None:
        if self._size > _CHUNK:
            try:
                self.flush()
            except DiskError:
                pass  # the last flush tells of it

    def flush(self) -> None:
        """See all that was noted onto the disk. Raises `DiskError`: call it again then."""
        self._encode()
        if self._buffer:
            self._file.write(b"".join(self._buffer))
            self._buffer.clear()
            self._size = 0
        self._file.sync()

    def close(self) -> None:
        """Give the descriptor back. What was not flushed is dropped: the journal has it."""
        self._file.close()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise disk_error("look at", path, error) from error


def rebuild(state: StateFolder) -> None:
    """Make a checkpoint file that is missing, from all journals that are kept and ended.

    Raises `DiskError` and, for a damaged journal, `RecordError`.
    """
    past = Past()
    for run in journaled_runs(state):
        if is_ended(run.events):  # else it is completed by `recover`, or goes on
            past.add(lines_of(read_journal(run.events).events))
    _write(state.checkpoint, past.lines())


def compact(path: str, past: Past, lines: int, *, small: int | None = None) -> bool:
    """Write the file anew when it has grown and most of its `lines` are dead; whether it was done.

    `past` is what the lines fold to. The file is replaced as a whole, so a reader sees the old one or the
    new one; nobody may have it open for appending. A disk that refuses leaves the old one, unsaid.
    `small`: bytes up to which it is left alone.
    """
    if lines <= 2 * past.size or _size(path) <= (SMALL if small is None else small):
        return False
    try:
        _write(path, past.lines())
    except DiskError:
        return False
    return True


def _write(path: str, lines: Iterable[Line]) -> None:
    write_whole(path, _pieces(lines), durable=True)


def _pieces(lines: Iterable[Line]) -> Iterator[bytes]:
    yield HEAD
    rest = iter(lines)
    while some := list(islice(rest, _AT_ONCE)):
        yield encode_checkpoint(some)


def append_missing(checkpoint: Checkpoint, lines: Sequence[Line], known: Sequence[Line]) -> Sequence[Line]:
    """Complete the copy of one run, of which the file holds the lines `known`; those that were appended.

    Usually `known` is how `lines` begin. Where it is not (the file was compacted meanwhile), all of them
    are appended again: the last line about a thing counts, so that does no harm.
    """
    there, whole = _each(known), _each(lines)
    begun = min(len(there), len(whole))
    while there[len(there) - begun :] != whole[:begun]:
        begun -= 1
    checkpoint.append(lines[begun:])
    return lines[begun:]


def _each(lines: Iterable[Line]) -> list[bytes]:
    return [encode_checkpoint([line]) for line in lines]

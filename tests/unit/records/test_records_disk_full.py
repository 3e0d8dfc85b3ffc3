"""A disk that refuses: what was written stays readable, and the same events can be handed in again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from records_story import evidence, settled, started

from treadle.base.errors import DiskError
from treadle.records.append import Appender
from treadle.records.event import Event
from treadle.records.journal import Journal, read_journal


def events(n: int) -> list[Event]:
    return [settled(n, f"out/{n}.txt", evidence=evidence(f"out/{n}.txt", text="x" * 1000))] * 2


def test_a_full_disk_leaves_the_journal_readable_and_the_events_are_taken_later(tiny: Path) -> None:
    journal = Journal.create(str(tiny / "events.jsonl"), started())
    written: list[Event] = [started()]
    told = None
    for n in range(1000):
        try:
            journal.write(events(n))
        except DiskError as error:
            told = error
            break
        written += events(n)
    assert told is not None
    assert told.diagnostics[0].code == "disk-full"
    assert len(written) > 20
    assert read_journal(journal.path).events == written
    assert read_journal(journal.path).torn == 0
    with pytest.raises(DiskError):
        journal.write(events(1000))
    journal.sync()
    journal.close()


def test_after_room_was_made_the_journal_goes_on(tiny: Path) -> None:
    ballast = tiny / "ballast"
    ballast.write_bytes(b"x" * 40_000)
    journal = Journal.create(str(tiny / "events.jsonl"), started())
    written: list[Event] = [started()]
    n = 0
    while n < 16:
        try:
            journal.write(events(n))
        except DiskError:
            assert read_journal(journal.path).events == written
            ballast.unlink()
            continue
        written += events(n)
        n += 1
    assert not ballast.exists()
    journal.sync()
    journal.close()
    assert read_journal(journal.path).events == written


class Faults:
    """Makes calls of `os` fail as asked: the calls whose number is in the set."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, name: str, error: int, *, partial: bool = False
    ) -> None:
        self.on = False
        real = getattr(os, name)

        def call(fd: int, *rest: object) -> object:
            if not self.on:
                return real(fd, *rest)
            if partial:
                real(fd, bytes(rest[0])[: len(rest[0]) // 2])
            raise OSError(error, os.strerror(error))

        monkeypatch.setattr(os, name, call)


def test_a_partial_line_that_cannot_be_cut_at_once_is_cut_by_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Appender.open(str(tmp_path / "lines"), new=True)
    file.write(b"one\n")
    write = Faults(monkeypatch, "write", errno.ENOSPC, partial=True)
    cut = Faults(monkeypatch, "ftruncate", errno.EIO)
    write.on = cut.on = True
    with pytest.raises(DiskError):
        file.write(b"second\n")
    assert (tmp_path / "lines").read_bytes() == b"one\nsec"
    write.on = False
    with pytest.raises(DiskError):
        file.write(b"second\n")
    cut.on = False
    file.write(b"second\n")
    assert (tmp_path / "lines").read_bytes() == b"one\nsecond\n"


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    file = Appender.open(str(tmp_path / "lines"), new=True)
    file.write(b"a long line\n")
    assert (tmp_path / "lines").read_bytes() == b"a long line\n"


def test_what_a_failed_sync_may_have_lost_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines"
    file = Appender.open(str(path), new=True)
    file.write(b"kept\n")
    file.sync()
    file.write(b"one\n")
    file.write(b"two\n")
    monkeypatch.setattr("treadle.records.append._sync", _fails)
    with pytest.raises(DiskError):
        file.sync()
    file.write(b"three\n")
    with open(path, "r+b") as other:  # as after dropped pages: the length is right, the bytes are not
        other.seek(5)
        other.write(b"\0" * 14)
    monkeypatch.setattr("treadle.records.append._sync", os.fsync)
    file.sync()
    assert path.read_bytes() == b"kept\none\ntwo\nthree\n"
    assert file.waiting == 0


def _fails(fd: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_folder_that_is_read_only_is_told_with_its_way_out(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="missing/lines") as caught:
        Appender.open(str(tmp_path / "missing" / "lines"), new=True)
    assert caught.value.diagnostics[0].hint

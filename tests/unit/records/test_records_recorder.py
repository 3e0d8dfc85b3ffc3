"""What a run writes, in the order that keeps it true."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from records_story import DEAD, evidence, fresh, settled, started, story, submitted

from treadle.base.errors import DiskError, LockError
from treadle.base.layout import RunFolder, StateFolder
from treadle.records.compact import Checkpoint
from treadle.records.event import End, RunEnded
from treadle.records.journal import Journal, is_ended, read_journal
from treadle.records.line import read_checkpoint
from treadle.records.lock import acquire
from treadle.records.past import load_past
from treadle.records.recorder import Recorder
from treadle.records.runs import new_run

END = RunEnded(time=9.0, exit_code=0)


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return fresh(tmp_path)


@pytest.fixture
def folder(state: StateFolder) -> RunFolder:
    return new_run(state, DEAD, now=1e9)


def recorder(state: StateFolder, folder: RunFolder) -> Recorder:
    journal = Journal.create(folder.events, started(folder.run))
    return Recorder(journal, Checkpoint.open(state, folder.run))


def test_at_the_end_of_a_run_the_copy_is_complete(state: StateFolder, folder: RunFolder) -> None:
    writer = recorder(state, folder)
    writer.write([submitted(1, "a"), submitted(2, "b")])
    writer.write([settled(1, "a")])
    writer.sync()
    assert read_checkpoint(state.checkpoint) == []  # until then the journal is read
    assert load_past(state).evidence("a") == evidence("a")
    writer.write([settled(2, "b"), END])
    writer.close()
    assert is_ended(folder.events)
    assert [line.key for line in read_checkpoint(state.checkpoint)] == ["a", "b"]
    assert load_past(state).evidence("b") == evidence("b")


def test_while_the_copy_cannot_be_completed_the_run_does_not_end(
    state: StateFolder, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = recorder(state, folder)
    writer.write(story(folder.run, ended=False)[1:])

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    last = [settled(6, "f"), settled(7, "g"), END]
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for _ in range(2):
            with pytest.raises(DiskError):
                writer.write(last)
    assert not is_ended(folder.events)
    writer.write(last)
    assert read_journal(folder.events).events == [*story(folder.run, ended=False), *last]
    assert load_past(state).evidence("g") == evidence("g")


def test_nothing_is_written_with_a_lost_lock(state: StateFolder, folder: RunFolder) -> None:
    lock = acquire(state)
    journal = Journal.create(folder.events, started(folder.run))
    writer = Recorder(journal, Checkpoint.open(state, folder.run), lock)
    writer.write([submitted(1, "a")])
    os.unlink(state.lock)
    with pytest.raises(LockError):
        writer.write([settled(1, "a")])
    assert len(read_journal(folder.events).events) == 2


def test_a_run_without_lock_leaves_the_checkpoint_file_alone(state: StateFolder, folder: RunFolder) -> None:
    writer = Recorder(Journal.create(folder.events, started(folder.run)))
    writer.write([settled(1, "a"), END])
    writer.close()
    assert not os.path.exists(state.checkpoint)


def test_a_run_that_ends_while_its_records_are_read_is_seen_as_ended(
    state: StateFolder, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = recorder(state, folder)
    writer.write([submitted(1, "a")])
    real, ends = os.open, [[settled(1, "a"), END]]

    def opens(path: str, *rest: int) -> int:
        if path == state.checkpoint and ends:
            writer.write(ends.pop())
        return real(path, *rest)

    monkeypatch.setattr(os, "open", opens)
    assert load_past(state).last("a").state is End.SUCCEEDED

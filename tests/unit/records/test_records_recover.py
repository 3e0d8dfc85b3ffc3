"""Recovery: what a killed run did is kept, its end is written, and dying in the middle of it is nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest
from records_story import (
    DEAD,
    evidence,
    fresh,
    journaled,
    ourselves,
    record,
    settled,
    started,
    story,
    submitted,
    write_journal,
)

from treadle.base.errors import LockError, RecordError
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.mask import Mask
from treadle.records import append
from treadle.records.compact import Checkpoint
from treadle.records.event import End, RunEnded, RunStarted, TaskSettled
from treadle.records.flight import Interrupted
from treadle.records.journal import is_ended, read_journal
from treadle.records.line import read_checkpoint
from treadle.records.lock import acquire
from treadle.records.past import load_past
from treadle.records.recover import UNKNOWN_EXIT, recover
from treadle.records.runs import new_run

TORN = b'{"event":"task_settled","time":3.0,"ta'


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    state = fresh(tmp_path)
    checkpoint = Checkpoint.open(state, "an-earlier-run")
    checkpoint.note([settled(1, "f"), settled(2, "z")])
    checkpoint.flush()
    return state


def test_a_killed_run_is_ended_and_its_work_is_in_the_checkpoint_file(state: StateFolder) -> None:
    folder = journaled(state, tail=TORN)
    recovery = recover(state)
    assert recovery.runs == (folder.run,)
    assert recovery.torn == len(TORN)
    events = read_journal(folder.events).events
    assert events[:-1] == story(folder.run, ended=False)
    end = events[-1]
    assert isinstance(end, RunEnded)
    assert (end.mended, end.exit_code) == (True, UNKNOWN_EXIT)
    assert end.counts == {"succeeded": 3, "failed": 1, "blocked": 1}
    past = load_past(state)
    assert past.evidence("out/a.txt") == evidence("out/a.txt")
    assert past.evidence("z") == evidence("z")
    assert past.last("c").state is End.FAILED
    assert past.tombstone("e") == record("e")


def test_what_was_in_flight_is_interrupted_and_keeps_its_earlier_evidence(state: StateFolder) -> None:
    folder = journaled(state)
    known = {"run": folder.run, "attempt": 1, "backend": "local", "host": "node1"}
    known |= {"holder": folder.run, "since": 2.0, "workflow": "flow"}
    flying = Interrupted(
        task="f",
        key="f",
        n=6,
        name="run.6",
        job="106",
        started=5006,
        outputs=("f",),
        before=(record("f"),),
        **known,
    )
    waiting = Interrupted(task="g", key="g", n=7, name="run.7", outputs=("g",), ended=True, **known)
    assert recover(state).interrupted == (flying, waiting)
    past = load_past(state)
    assert past.last("f").interrupted
    assert past.last("g").interrupted
    assert past.evidence("f") == evidence("f")


def test_the_past_that_is_returned_is_the_one_that_is_read_later(state: StateFolder) -> None:
    journaled(state)
    journaled(state, owner=ourselves())
    assert list(recover(state).past.lines()) == list(load_past(state).lines())


def test_a_second_recovery_finds_nothing_to_do(state: StateFolder) -> None:
    journaled(state, tail=TORN)
    recover(state)
    before = Path(state.checkpoint).read_bytes()
    again = recover(state)
    assert (again.runs, again.interrupted, again.torn) == ((), (), 0)
    assert Path(state.checkpoint).read_bytes() == before


def test_a_copy_that_was_begun_is_completed_not_repeated(state: StateFolder) -> None:
    folder = journaled(state)
    checkpoint = Checkpoint.open(state, folder.run)
    checkpoint.note(story(folder.run)[:9])
    checkpoint.flush()
    recover(state)
    ours = [line for line in read_checkpoint(state.checkpoint) if line.run == folder.run]
    keys = [line.record.path if hasattr(line, "record") else line.key for line in ours]
    assert keys == ["out/a.txt", "out/b.txt", "c", "e", "e", "f", "g"]


def test_the_journal_of_a_live_run_is_only_read(state: StateFolder) -> None:
    folder = journaled(state, owner=ourselves(), tail=TORN)
    before = Path(folder.events).read_bytes()
    recovery = recover(state)
    assert recovery.runs == ()
    assert recovery.interrupted == ()
    assert recovery.past.evidence("out/a.txt") == evidence("out/a.txt")
    assert Path(folder.events).read_bytes() == before
    assert [line.key for line in read_checkpoint(state.checkpoint)] == ["f", "z"]


def test_runs_are_recovered_oldest_first(state: StateFolder) -> None:
    for outcome in (End.FAILED, End.SUCCEEDED):
        folder = new_run(state, DEAD, now=1e9)
        write_journal(folder, [started(folder.run), submitted(1, "a"), settled(1, "a", state=outcome)])
    assert recover(state).past.last("a").state is End.SUCCEEDED
    assert load_past(state).last("a").state is End.SUCCEEDED


@pytest.mark.parametrize("content", [b"", b'{"event":"run_sta', b"\0" * 4096])
def test_a_run_that_died_before_its_first_line_is_ended_too(state: StateFolder, content: bytes) -> None:
    folder = new_run(state, DEAD, now=1e9)
    Path(folder.events).write_bytes(content)
    assert recover(state).runs == (folder.run,)
    first, last = read_journal(folder.events).events
    assert isinstance(first, RunStarted)
    assert (first.run, first.host, first.user) == (folder.run, DEAD.host, DEAD.user)
    assert isinstance(last, RunEnded)


def test_a_folder_without_journal_is_no_run(state: StateFolder) -> None:
    new_run(state, DEAD, now=1e9)
    assert recover(state).runs == ()


def test_damage_in_a_killed_runs_journal_stops_before_anything_is_written(state: StateFolder) -> None:
    folder = journaled(state, tail=TORN)
    data = Path(folder.events).read_bytes().replace(b'"attempt_started"', b'"attempt_\xfftarted"', 1)
    Path(folder.events).write_bytes(data)
    before = Path(state.checkpoint).read_bytes()
    with pytest.raises(RecordError, match=r"events\.jsonl:4: "):
        recover(state)
    assert Path(folder.events).read_bytes() == data
    assert Path(state.checkpoint).read_bytes() == before


def test_what_cleans_up_is_told_before_the_end_is_written_and_may_refuse(state: StateFolder) -> None:
    folder = journaled(state)
    told: list[Sequence[Interrupted]] = []

    def refuses(attempts: Sequence[Interrupted]) -> None:
        told.append(attempts)
        raise LockError("orphans on node1")

    for _ in range(2):
        with pytest.raises(LockError, match="node1"):
            recover(state, clean=refuses)
        assert not is_ended(folder.events)
    assert [one.task for one in told[0]] == ["f", "g"]
    assert told[0] == told[1]
    assert recover(state, clean=told.append).interrupted == told[2] == told[0]
    assert is_ended(folder.events)


def test_nothing_is_written_once_the_lock_is_lost(state: StateFolder) -> None:
    folder = journaled(state)
    lock = acquire(state)
    os.unlink(state.lock)
    before = Path(state.checkpoint).read_bytes()
    with pytest.raises(LockError):
        recover(state, lock=lock)
    assert not is_ended(folder.events)
    assert Path(state.checkpoint).read_bytes() == before


def test_secrets_stay_out_of_what_recovery_writes(state: StateFolder) -> None:
    folder = new_run(state, DEAD, now=1e9)
    told = settled(1, "a", evidence=evidence("a", text="login hunter2"))
    write_journal(folder, [started(folder.run), told])
    mask = Mask()
    mask.add("hunter2")
    recover(state, mask=mask)
    assert "hunter2" not in Path(state.checkpoint).read_text()


# Dying in the middle


class Killed(BaseException):
    """Stands for kill -9: nothing in the program catches it."""


WRITES = ("write", "ftruncate", "fsync", "replace", "mkdir", "unlink")


class Killer:
    """Kills at the n-th call that changes the disk; a write gets half of its bytes out before."""

    def __init__(self, patch: pytest.MonkeyPatch, after: int) -> None:
        self.left = after
        for name in WRITES:
            patch.setattr(os, name, self._deadly(name, getattr(os, name)))
        patch.setattr("treadle.records.append._sync", self._deadly("fdatasync", append._sync))

    def _deadly(self, name: str, real: object) -> object:
        def call(*args: object, **more: object) -> object:
            self.left -= 1
            if self.left < 0:
                raise Killed
            if self.left == 0:
                if name == "write":
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                raise Killed
            return real(*args, **more)

        return call


def snapshot(state: StateFolder) -> tuple[list[object], list[object]]:
    """The past, and all events of all runs but for the time of their ends."""
    journals = [read_journal(state.run(run).events).events for run in state.run_ids()]
    events = [
        (event.counts, event.mended) if isinstance(event, RunEnded) else event
        for event in chain.from_iterable(journals)
    ]
    return list(load_past(state).lines()), events


def two_killed_runs(root: Path) -> StateFolder:
    root.mkdir()
    state = fresh(root)
    checkpoint = Checkpoint.open(state, "20200101T000000Z-0000")
    for n in range(30):  # enough dead lines for a compaction
        checkpoint.note([settled(n, "z")])
    checkpoint.flush()
    for run, tail in (("20260101T000000Z-0001", TORN), ("20260101T000000Z-0002", b"")):
        folder = RunFolder(os.path.join(state.runs, run))
        os.makedirs(folder.root)
        write_journal(folder, story(run, ended=False), tail)
    return state


def test_killed_at_any_write_the_next_recovery_does_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treadle.records.compact.SMALL", 0)
    whole = two_killed_runs(tmp_path / "whole")
    attempts = recover(whole).interrupted
    wanted = snapshot(whole)
    assert len(read_checkpoint(whole.checkpoint)) < 10  # the last thing that it did was to compact it
    deaths = 0
    for after in range(1, 100):
        state = two_killed_runs(tmp_path / str(after))
        told: list[Interrupted] = []
        try:
            with pytest.MonkeyPatch.context() as patch:
                Killer(patch, after)
                recover(state, clean=told.extend)
        except Killed:
            deaths += 1
        else:
            break
        assert set(load_keys(state)) == set(load_keys(whole)), after  # before it is recovered, too
        told.extend(recover(state).interrupted)
        assert snapshot(state) == wanted, after
        assert {one.name for one in told} == {one.name for one in attempts}, after
    assert deaths > 8
    assert after < 99


def load_keys(state: StateFolder) -> list[str]:
    return [line.key for line in load_past(state).lines()]


def test_killed_again_and_again_recovery_comes_to_its_end(tmp_path: Path) -> None:
    whole = two_killed_runs(tmp_path / "whole")
    recover(whole)
    state = two_killed_runs(tmp_path / "again")
    for after in (1, 2, 2, 3, 3, 4, 4, 5, 5):
        with pytest.MonkeyPatch.context() as patch:
            Killer(patch, after)
            try:
                recover(state)
            except Killed:
                continue
    recover(state)
    assert snapshot(state) == snapshot(whole)


def test_settled_lines_of_a_journal_count_even_if_the_copy_never_had_them(state: StateFolder) -> None:
    folder = journaled(state)
    done = [
        one for one in read_journal(folder.events).events if isinstance(one, TaskSettled) and one.evidence
    ]
    past = recover(state).past
    assert [past.evidence(one.key) for one in done] == [one.evidence for one in done]

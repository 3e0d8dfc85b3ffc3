"""Records under any history: cuts, damage, compaction and copies change nothing that was settled."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.base.errors import RecordError
from treadle.base.layout import RunFolder, StateFolder
from treadle.records.compact import Checkpoint, compact
from treadle.records.encode import encode_events
from treadle.records.event import (
    FORMAT,
    AttemptEnded,
    AttemptSubmitted,
    End,
    EndReason,
    Event,
    Evidence,
    FileRecord,
    Outcome,
    OutputEvicted,
    RunEnded,
    RunStarted,
    TaskSettled,
    Usage,
)
from treadle.records.journal import read_journal
from treadle.records.line import HEAD, encode_checkpoint, lines_of, read_checkpoint
from treadle.records.past import Past, fold, load_past
from treadle.records.recover import recover
from treadle.records.version import prepare

PATHS = ("a", "b", "c", "ü x")
KEYS = (*PATHS, "\0flow\0tidy")

records = st.builds(
    FileRecord,
    st.sampled_from(PATHS),
    st.integers(-1, 9),
    st.integers(0, 3),
    st.just(7),
    st.sampled_from(["", "d" * 64]),
)


@st.composite
def evidences(draw: st.DrawFn, key: str) -> Evidence:
    own = () if key.startswith("\0") else (key,)
    others = draw(st.lists(st.sampled_from(PATHS), max_size=2, unique=True))
    paths = dict.fromkeys((*own, *others))
    outputs = tuple(FileRecord(path, draw(st.integers(-1, 3)), 1, 7) for path in paths)
    text = draw(st.text(max_size=5))
    return Evidence(identity="i", text=text, outputs=outputs, note=draw(st.sampled_from(["", "touched"])))


@st.composite
def settlings(draw: st.DrawFn) -> TaskSettled:
    key = draw(st.sampled_from(KEYS))
    reason = draw(st.sampled_from(EndReason))
    wall = draw(st.none() | st.integers(0, 3).map(float))
    outcome = Outcome(reason=reason, exit_code=draw(st.none() | st.integers(0, 2)), usage=Usage(wall=wall))
    return TaskSettled(
        time=1.0,
        task=key.rpartition("\0")[2],
        key=key,
        state=draw(st.sampled_from(End)),
        n=draw(st.integers(0, 3)),
        outcome=draw(st.none() | st.just(outcome)),
        evidence=draw(st.none() | evidences(key)),
    )


def submissions(path: str) -> AttemptSubmitted:
    return AttemptSubmitted(time=1.0, task=path, attempt=1, n=4, name="x.4", backend="local", outputs=(path,))


happenings = st.lists(
    settlings()
    | st.sampled_from(PATHS).map(submissions)
    | st.sampled_from(PATHS).map(
        lambda path: AttemptEnded(time=1.0, task=path, attempt=1, n=4, outcome=Outcome(reason=EndReason.OOM))
    )
    | st.builds(OutputEvicted, time=st.just(1.0), task=st.just("t"), key=st.just("a"), record=records),
    max_size=12,
)


def journal(run: str, events: list[Event], *, ended: bool = False) -> list[Event]:
    first = RunStarted(time=0.0, format=FORMAT, run=run, treadle="0", workflow="flow")
    return [first, *events, *([RunEnded(time=9.0, exit_code=0)] if ended else [])]


def view(past: Past) -> object:
    """All that anybody can ask."""
    by_key = {}
    for key in KEYS:
        last = past.attempt(key)
        where = last and (last.task, last.run, last.attempt, last.n)
        by_key[key] = (past.evidence(key), past.last(key), past.seconds(key), where)
    return by_key, {path: (past.maker(path), past.tombstone(path)) for path in PATHS}


@settings(max_examples=60, deadline=None)
@given(st.lists(happenings, max_size=3), happenings)
def test_compaction_changes_no_answer_neither_now_nor_after_what_comes_later(
    earlier: list[list[Event]], later: list[Event]
) -> None:
    lines = [line for at, events in enumerate(earlier) for line in lines_of(journal(f"r{at}", events))]
    past = fold([], lines)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.jsonl")
        Path(path).write_bytes(HEAD + encode_checkpoint(lines))
        done = compact(path, past, len(lines), small=0)
        compacted = read_checkpoint(path)
    assert done is (len(lines) > 2 * past.size)
    fewest = list(past.lines())
    assert compacted == (fewest if done else lines)
    assert view(fold([], fewest)) == view(past)
    assert list(fold([], fewest).lines()) == fewest
    after = journal("later", later)
    assert view(fold([after], fewest)) == view(fold([after], lines))


@settings(max_examples=60, deadline=None)
@given(happenings, st.floats(0, 1))
def test_a_journal_cut_anywhere_is_the_journal_of_the_events_before(
    events: list[Event], where: float
) -> None:
    whole = journal("r", events)
    data = encode_events(whole)
    cut = int(len(data) * where)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.jsonl")
        Path(path).write_bytes(data[:cut])
        found = read_journal(path).events
    assert found == whole[: data.count(b"\n", 0, cut)]
    fold([found])


@settings(max_examples=60, deadline=None)
@given(happenings, st.floats(0, 1), st.binary(min_size=1, max_size=3))
def test_damage_anywhere_is_read_or_told_and_never_another_error(
    events: list[Event], where: float, junk: bytes
) -> None:
    data = encode_events(journal("r", events, ended=True))
    at = int(len(data) * where)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.jsonl")
        Path(path).write_bytes(data[:at] + junk + data[at + len(junk) :])
        try:
            view(fold([read_journal(path).events]))
        except RecordError as error:
            assert error.diagnostics[0].place.line > 0  # noqa: PT017


@settings(max_examples=60, deadline=None)
@given(happenings, happenings, st.integers(0, 12), st.integers(0, 40))
def test_recovery_comes_to_the_same_past_however_much_of_the_copy_was_there(
    earlier: list[Event], events: list[Event], copied: int, torn: int
) -> None:
    with tempfile.TemporaryDirectory() as root:
        state = StateFolder(root)
        prepare(state)
        run = RunFolder(os.path.join(state.runs, "20260101T000000Z-0001"))
        os.makedirs(run.root)
        killed = journal(run.run, events)
        Path(run.events).write_bytes(encode_events(killed))
        for name, some in (("earlier", earlier), (run.run, events[:copied])):
            checkpoint = Checkpoint.open(state, name)
            checkpoint.note(some)
            checkpoint.flush()
            checkpoint.close()
        if copied:
            size = os.stat(state.checkpoint).st_size
            os.truncate(state.checkpoint, max(size - torn, len(HEAD)))
        wanted = view(load_past(state))
        recovery = recover(state)
        assert view(recovery.past) == wanted
        assert view(load_past(state)) == wanted
        tried = [one for one in events if isinstance(one, AttemptSubmitted | TaskSettled)]
        last = {one.task: isinstance(one, AttemptSubmitted) for one in tried}
        assert {one.task for one in recovery.interrupted} == {task for task, open_ in last.items() if open_}

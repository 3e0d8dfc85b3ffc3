"""The past: what events add up to, and what each look-up answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from records_story import (
    FLOW,
    evidence,
    fresh,
    journaled,
    ourselves,
    record,
    settled,
    started,
    story,
    submitted,
)

from treadle.base.errors import RecordError
from treadle.base.layout import StateFolder
from treadle.records import read
from treadle.records.compact import Checkpoint
from treadle.records.event import (
    AttemptEnded,
    End,
    EndReason,
    Event,
    Outcome,
    OutputEvicted,
    TaskSettled,
    Usage,
    evidence_key,
)
from treadle.records.line import CHECKPOINT_FORMAT, lines_of, read_checkpoint
from treadle.records.past import Last, Past, fold, load_past


def past_of(*events: Event) -> Past:
    return fold([[started(), *events]])


def test_a_success_leaves_evidence_its_time_and_its_maker() -> None:
    past = past_of(submitted(1, "a", "b"), settled(1, "a", "b"))
    assert past.evidence("a") == evidence("a", "b")
    assert past.last("a") == Last(End.SUCCEEDED, EndReason.OK, 0)
    assert past.seconds("a") == 1.5
    assert past.maker("a") == past.maker("b") == "a"


def test_nothing_is_known_of_what_never_happened() -> None:
    past = past_of()
    assert past.evidence("a") is None
    assert past.last("a") is None
    assert past.maker("a") is None
    assert past.tombstone("a") is None
    assert past.seconds("a") is None


def test_a_failure_after_a_success_keeps_the_evidence_and_the_time() -> None:
    past = past_of(settled(1, "a"), settled(2, "a", state=End.FAILED))
    assert past.evidence("a") == evidence("a")
    assert past.last("a") == Last(End.FAILED, EndReason.APP, 2)
    assert past.seconds("a") == 1.5
    assert past.maker("a") == "a"


def test_a_success_after_a_failure_is_a_success() -> None:
    past = past_of(settled(1, "a", state=End.FAILED), settled(2, "a"))
    assert past.last("a") == Last(End.SUCCEEDED, EndReason.OK, 0)


def test_an_attempt_that_never_settled_was_interrupted_and_the_evidence_stays() -> None:
    past = past_of(settled(1, "a"), submitted(2, "a"))
    assert past.last("a") == Last(End.CANCELLED, EndReason.INTERRUPTED, None, interrupted=True)
    assert past.evidence("a") == evidence("a")


def test_killed_while_a_retry_was_waited_for_is_interrupted_too() -> None:
    ended = AttemptEnded(time=2.0, task="a", attempt=1, n=1, outcome=Outcome(reason=EndReason.APP))
    assert past_of(submitted(1, "a"), ended).last("a").interrupted


def test_a_task_without_outputs_is_known_by_workflow_and_id() -> None:
    past = past_of(submitted(1, task="tidy"))
    assert past.last(evidence_key(FLOW, "tidy", ())).interrupted


@pytest.mark.parametrize("state", [End.SKIPPED, End.BLOCKED, End.UP_TO_DATE, End.UNCHANGED, End.CANCELLED])
def test_what_was_not_tried_leaves_the_past_as_it_was(state: End) -> None:
    untried = TaskSettled(time=4.0, task="a", key="a", state=state)
    assert past_of(untried).last("a") is None
    assert past_of(settled(1, "a", state=End.FAILED), untried).last("a").state is End.FAILED
    assert past_of(settled(1, "a"), untried).evidence("a") == evidence("a")


def test_a_cancelled_attempt_counts() -> None:
    cancelled = settled(2, "a", state=End.CANCELLED, outcome=Outcome(reason=EndReason.CANCELLED))
    assert past_of(settled(1, "a"), cancelled).last("a") == Last(End.CANCELLED, EndReason.CANCELLED)


def test_touched_after_a_failure_is_up_to_date_with_the_old_time() -> None:
    touched = settled(0, "a", state=End.UP_TO_DATE, evidence=evidence("a", note="touched"), outcome=None)
    past = past_of(settled(1, "a"), settled(2, "a", state=End.FAILED), touched)
    assert past.last("a") == Last(End.UP_TO_DATE)
    assert past.evidence("a").note == "touched"
    assert past.seconds("a") == 1.5


def test_the_time_of_a_success_without_usage_is_from_start_to_end() -> None:
    timed = settled(1, "a", outcome=Outcome(start=10.0, end=12.5))
    assert past_of(timed).seconds("a") == 2.5
    assert past_of(settled(1, "a", outcome=Outcome(usage=Usage()))).seconds("a") is None


def test_the_last_one_that_recorded_a_path_is_its_maker() -> None:
    assert past_of(settled(1, "a", "x"), settled(2, "b", "x")).maker("x") == "b"
    assert past_of(settled(2, "b", "x"), settled(1, "a", "x")).maker("x") == "a"
    again = past_of(settled(1, "a", "x"), settled(2, "b", "x"), settled(3, "a", "x"))
    assert again.maker("x") == "a"
    failed = past_of(settled(1, "a", "x"), settled(2, "b", "x"), settled(3, "a", state=End.FAILED))
    assert failed.maker("x") == "b"


def test_a_path_that_the_task_no_longer_makes_has_no_maker() -> None:
    assert past_of(settled(1, "a", "x"), settled(2, "a")).maker("x") is None


def evicted(path: str) -> OutputEvicted:
    return OutputEvicted(time=4.0, task=path, key=path, record=record(path))


def test_a_tombstone_stands_until_a_success_makes_the_path_again() -> None:
    assert past_of(settled(1, "a"), evicted("a")).tombstone("a") == record("a")
    assert past_of(settled(1, "a"), evicted("a"), settled(2, "a", state=End.FAILED)).tombstone("a")
    assert past_of(settled(1, "a"), evicted("a"), settled(2, "b")).tombstone("a")
    assert past_of(settled(1, "a"), evicted("a"), settled(2, "a")).tombstone("a") is None
    assert past_of(settled(1, "a", "b"), evicted("b"), settled(2, "a", "b")).tombstone("b") is None


def test_evidence_that_is_only_refreshed_does_not_lift_a_tombstone() -> None:
    refreshed = settled(0, "a", state=End.UNCHANGED, evidence=evidence("a"), outcome=None)
    assert past_of(settled(1, "a"), evicted("a"), refreshed).tombstone("a") == record("a")


def test_outputs_taken_over_lift_their_tombstones_if_they_are_there() -> None:
    taken = settled(0, "a", state=End.UP_TO_DATE, evidence=evidence("a", note="touched"), outcome=None)
    assert past_of(settled(1, "a"), evicted("a"), taken).tombstone("a") is None


def test_the_run_and_the_number_of_the_last_attempt_lead_to_its_log() -> None:
    last = past_of(settled(1, "a"), settled(4, "a", state=End.FAILED, attempt=2)).attempt("a")
    assert (last.run, last.n, last.attempt, last.task) == (started().run, 4, 2, "a")


def test_evidence_that_nothing_was_run_for_leaves_the_way_to_the_log() -> None:
    touched = settled(0, "a", state=End.UP_TO_DATE, evidence=evidence("a", note="touched"), attempt=0)
    last = past_of(settled(4, "a", attempt=2), touched).attempt("a")
    assert (last.run, last.n, last.attempt, last.state) == (started().run, 4, 2, End.UP_TO_DATE)


def test_folding_is_pure() -> None:
    events = story()
    first, second = fold([events]), fold([events])
    assert list(first.lines()) == list(second.lines())
    assert events == story()


# Reading a work folder


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return fresh(tmp_path)


def test_a_work_folder_without_records_has_an_empty_past(tmp_path: Path) -> None:
    assert load_past(StateFolder(str(tmp_path))).size == 0
    assert list(tmp_path.iterdir()) == []


def test_the_checkpoint_and_the_journal_of_a_killed_run_are_read_together(state: StateFolder) -> None:
    checkpoint = Checkpoint.open(state, "r0")
    checkpoint.note([settled(1, "old"), settled(2, "f")])
    checkpoint.flush()
    journaled(state, tail=b'{"event":"task_sett')
    past = load_past(state)
    assert past.evidence("old") == evidence("old")
    assert past.evidence("out/a.txt") == evidence("out/a.txt")
    assert past.last("f").interrupted
    assert past.evidence("f") == evidence("f")
    assert past.last("c").state is End.FAILED
    assert past.tombstone("e") == record("e")


def test_the_journal_of_a_live_run_is_read_and_nothing_is_written(state: StateFolder) -> None:
    Checkpoint.open(state).close()
    folder = journaled(state, owner=ourselves(), tail=b'{"event":')
    before = Path(folder.events).read_bytes(), Path(state.checkpoint).read_bytes()
    assert load_past(state).evidence("out/a.txt") == evidence("out/a.txt")
    assert (Path(folder.events).read_bytes(), Path(state.checkpoint).read_bytes()) == before


def test_a_run_that_ended_is_read_from_the_checkpoint_alone(state: StateFolder) -> None:
    Checkpoint.open(state).close()
    folder = journaled(state, ended=True)
    assert load_past(state).evidence("out/a.txt") is None
    lines = Path(folder.events).read_bytes().splitlines(keepends=True)
    Path(folder.events).write_bytes(lines[0] + b"damage\n" + lines[-1])  # nobody looks there
    load_past(state)


def test_a_checkpoint_file_that_is_gone_is_made_up_from_the_journals(state: StateFolder) -> None:
    journaled(state, ended=True)
    assert load_past(state).evidence("out/a.txt") == evidence("out/a.txt")


def test_a_torn_checkpoint_is_read_without_its_last_line(state: StateFolder) -> None:
    checkpoint = Checkpoint.open(state, "r")
    checkpoint.note([settled(1, "a"), settled(2, "b")])
    checkpoint.flush()
    data = Path(state.checkpoint).read_bytes()
    for cut in range(len(data), data.index(b"\n"), -1):
        os.truncate(state.checkpoint, cut)
        past = load_past(state)
        whole = data[:cut].count(b"\n") - 1
        assert [past.evidence(key) is not None for key in "ab"] == [whole > 0, whole > 1]


@pytest.mark.parametrize("byte", [b"\0", b"\xff", b"\x01"])
@pytest.mark.parametrize("at", [3, 120])
def test_a_damaged_line_of_the_checkpoint_is_told_by_its_number(
    state: StateFolder, byte: bytes, at: int
) -> None:
    checkpoint = Checkpoint.open(state, "r")
    checkpoint.note([settled(n, f"out{n}") for n in range(9)])
    checkpoint.flush()
    lines = Path(state.checkpoint).read_bytes().splitlines(keepends=True)
    lines[4] = lines[4][:at] + byte + lines[4][at + 1 :]
    Path(state.checkpoint).write_bytes(b"".join(lines))
    with pytest.raises(RecordError, match=r"checkpoint\.jsonl:5: "):
        load_past(state)


@pytest.mark.parametrize("block", [1, 7, 300, 4096])
def test_a_checkpoint_that_is_read_in_pieces_has_the_same_lines(
    state: StateFolder, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint.open(state, "r")
    checkpoint.note([settled(n, f"out{n}") for n in range(9)])
    checkpoint.flush()
    monkeypatch.setattr(read, "_BLOCK", block)
    data = Path(state.checkpoint).read_bytes()
    for tail in (b"", b'["settled"', b'["settled"\0\n', bytes(500)):
        Path(state.checkpoint).write_bytes(data + tail)
        assert [line.key for line in read_checkpoint(state.checkpoint) or ()] == [f"out{n}" for n in range(9)]
    lines = data.splitlines(keepends=True)
    for wrong in (b"\0\n", b"\xff\n", b"[]\n"):
        Path(state.checkpoint).write_bytes(b"".join([*lines[:7], wrong, *lines[7:]]))
        with pytest.raises(RecordError, match=r"checkpoint\.jsonl:8: "):
            load_past(state)


def test_a_checkpoint_of_a_newer_format_is_refused_and_both_are_named(state: StateFolder) -> None:
    Path(state.checkpoint).write_bytes(b'{"checkpoint":9}\n["moon"]\n')
    with pytest.raises(RecordError, match=rf"format 9 .*newer Treadle.* format {CHECKPOINT_FORMAT}"):
        load_past(state)


def test_evidence_of_another_shape_is_told_with_its_task(state: StateFolder) -> None:
    checkpoint = Checkpoint.open(state, "r")
    checkpoint.note([settled(1, "a")])
    checkpoint.flush()
    data = Path(state.checkpoint).read_bytes()
    Path(state.checkpoint).write_bytes(data.replace(b'"text":"sort {input}"', b'"text":1234567890.123'))
    past = load_past(state)
    with pytest.raises(RecordError, match="task a "):
        past.evidence("a")


def test_the_checkpoint_holds_what_the_journal_says(state: StateFolder) -> None:
    checkpoint = Checkpoint.open(state, story()[0].run)
    checkpoint.note(story())
    checkpoint.flush()
    assert read_checkpoint(state.checkpoint) == lines_of(story())[:-2]  # but for the two interrupted ones

"""The lines of the checkpoint file: what a run leaves behind for the decisions of later ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import force_setattr

from treadle.base.errors import RecordError
from treadle.base.mask import Mask
from treadle.base.place import Place
from treadle.records.encode import encode_evidence
from treadle.records.event import (
    AttemptEnded,
    AttemptHandedOver,
    AttemptSubmitted,
    End,
    EndReason,
    Event,
    Evidence,
    EvidenceWithdrawn,
    FileRecord,
    Outcome,
    OutputEvicted,
    RunStarted,
    TaskSettled,
    evidence_key,
)
from treadle.records.read import blocks, damaged, decode_lines

CHECKPOINT_FORMAT = 1


class Tried(Struct, frozen=True, array_like=True, tag="tried", gc=False):
    """How the last attempt of a task ended; it says nothing about evidence from before.

    `seconds` of wall time are those of the last success.
    """

    key: str
    task: str
    run: str
    attempt: int
    n: int
    state: End
    reason: EndReason = EndReason.OK
    exit_code: int | None = None
    seconds: float | None = None


class Settled(Tried, frozen=True, array_like=True, tag="settled", gc=False):
    """The same, with evidence: as JSON, for most of it is never asked for.

    `made` are the output paths in it, None when that is exactly the key; `present` those that stood there
    when it was taken, None: all. State and evidence may be of different attempts in a compacted file.
    """

    made: tuple[str, ...] | None = None
    present: tuple[str, ...] | None = None
    evidence: Raw = Raw(b"null")

    def paths(self) -> tuple[str, ...]:
        """The output paths that the evidence records."""
        return (self.key,) if self.made is None else self.made

    def paths_present(self) -> tuple[str, ...]:
        """Those of them that were made or found, so that no tombstone of theirs stands any longer."""
        return self.paths() if self.present is None else self.present


class Evicted(Struct, frozen=True, array_like=True, tag="evicted", gc=False):
    """A tombstone: an output that was removed on purpose, as it was."""

    key: str
    task: str
    run: str
    record: FileRecord


Line = Tried | Settled | Evicted

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class _Head(Struct):
    checkpoint: int


HEAD = _ENCODER.encode(_Head(CHECKPOINT_FORMAT)) + b"\n"


def encode_checkpoint(lines: Iterable[Line]) -> bytes:
    """Lines of JSON, each with its newline; the head is not among them."""
    return _ENCODER.encode_lines(lines)


def read_checkpoint(path: str) -> list[Line] | None:
    """`checkpoint_lines`, all at once."""
    lines = checkpoint_lines(path)
    return None if lines is None else list(lines)


def checkpoint_lines(path: str) -> Iterator[Line] | None:
    """All lines, a torn last one left out; None when the file is missing or empty.

    Raises `RecordError` for damage anywhere but in a torn tail, and for a newer format.
    """
    if not os.path.exists(path):
        return None
    data = blocks(path)
    first = next(data, b"")
    if not first:
        return None
    start = first.index(b"\n") + 1
    _check_head(first[:start], path)
    return _decoded(chain((first[start:],), data), path)


def _decoded(data: Iterable[bytes], path: str) -> Iterator[Line]:
    """The lines, each apart from the file that it was read from: what is superseded goes away with its bytes.
    All lines of a run share its name."""
    number = 2
    for block in data:
        _check_text(block, path, number)
        for line in decode_lines(_DECODER, block, path, first=number):
            force_setattr(line, "run", sys.intern(line.run))
            if type(line) is Settled:
                force_setattr(line, "evidence", line.evidence.copy())
            yield line
        number += block.count(b"\n")


def _check_head(head: bytes, path: str) -> None:
    try:
        found = msgspec.json.decode(head, type=_Head).checkpoint
    except msgspec.MsgspecError as error:
        raise damaged(path, 1, str(error)) from None
    if found > CHECKPOINT_FORMAT:
        raise RecordError(
            f"written in format {found} by a newer Treadle; this one reads up to format {CHECKPOINT_FORMAT}",
            place=Place(path, 1),
            hint="use the newer Treadle in this folder",
            code="newer-format",
        )


def _check_text(data: bytes, path: str, first: int) -> None:
    """Evidence is skipped by its braces and quotes, so whether it is text must be looked at here."""
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise damaged(path, first + data.count(b"\n", 0, error.start), "it is not UTF-8 text") from None


def line_of(event: Event, run: str, mask: Mask | None = None) -> Line | None:
    """What an event leaves behind, if anything: ends of attempts, evidence, tombstones."""
    match event:
        case TaskSettled() if event.evidence is not None or _was_tried(event):
            return _settled(event, run, mask)
        case EvidenceWithdrawn(outcome=outcome):
            known = (event.key, event.task, event.run or run, event.attempt, event.n)
            return Tried(*known, End.FAILED, _bad(outcome.reason), outcome.exit_code)
        case OutputEvicted(task=task, key=key, record=record):
            return Evicted(key, task, run, record)
        case _:
            return None


def _bad(reason: EndReason) -> EndReason:
    """A success that was taken back must never read as one."""
    return EndReason.LOST if reason is EndReason.OK else reason


def _was_tried(event: TaskSettled) -> bool:
    """If nothing was tried, what was true of the task before still is."""
    return event.state in (End.SUCCEEDED, End.FAILED) or (event.state is End.CANCELLED and event.n > 0)


def _settled(event: TaskSettled, run: str, mask: Mask | None) -> Tried | Settled:
    outcome = event.outcome or Outcome()
    seconds = _seconds(outcome) if event.state is End.SUCCEEDED else None
    known = (event.key, event.task, event.run or run, event.attempt, event.n, event.state)
    ended = (outcome.reason, outcome.exit_code, seconds)
    if event.evidence is None:
        return Tried(*known, *ended)
    evidence = event.evidence
    made = (_made(event.key, evidence), _present(event.state, evidence))
    return Settled(*known, *ended, *made, encode_evidence(evidence, mask))


def _seconds(outcome: Outcome) -> float | None:
    if outcome.usage.wall is not None:
        return outcome.usage.wall
    if outcome.start is None or outcome.end is None:
        return None
    return max(0.0, outcome.end - outcome.start)


def _made(key: str, evidence: Evidence) -> tuple[str, ...] | None:
    paths = tuple(output.path for output in evidence.outputs)
    return None if paths == (key,) else paths


def _present(state: End, evidence: Evidence) -> tuple[str, ...] | None:
    """Evidence that was only refreshed (no success, no note) says nothing about outputs being there."""
    if state is not End.SUCCEEDED and not evidence.note:
        return ()
    there = tuple(output.path for output in evidence.outputs if output.size >= 0)
    return None if len(there) == len(evidence.outputs) else there


def open_attempts(events: Iterable[Event]) -> dict[str, AttemptSubmitted]:
    """The last attempt of each task that was tried and never settled."""
    found: dict[str, AttemptSubmitted] = {}
    for event in events:
        if isinstance(event, AttemptSubmitted):
            found[event.task] = event
        elif isinstance(event, TaskSettled):
            found.pop(event.task, None)
    return found


def outliving(events: Iterable[Event]) -> frozenset[str]:
    """Tasks whose open attempt did not end with its driver: it is in flight, or another run tells its end."""
    open_: dict[str, AttemptSubmitted] = {}
    taken: dict[tuple[str, int], str] = {}
    for event in events:
        if isinstance(event, AttemptSubmitted):
            if event.identity:
                open_[event.task] = event
            elif open_:
                open_.pop(event.task, None)
        elif open_ and isinstance(event, AttemptEnded):
            if (one := open_.get(event.task)) is not None and (one.run, one.n) == (event.run, event.n):
                del open_[event.task]
        elif open_ and isinstance(event, AttemptHandedOver):
            taken[event.run, event.n] = event.by
    return frozenset(task for task, one in open_.items() if taken.get((one.run, one.n)) != "")


def key_of(attempt: AttemptSubmitted, started: RunStarted) -> str:
    """The evidence key of the task that was tried."""
    return evidence_key(started.workflow, attempt.task, attempt.outputs, attempt.artifact)


def lines_of(events: Sequence[Event], mask: Mask | None = None) -> list[Line]:
    """What a journal leaves behind; an attempt that was submitted and never settled was interrupted, unless
    its job goes on without its driver."""
    if not events:
        return []
    started = first_of(events)
    lines = [line for event in events if (line := line_of(event, started.run, mask)) is not None]
    open_ = open_attempts(events)
    live = outliving(events) if any(one.identity for one in open_.values()) else ()
    lines += (_interrupted(attempt, started) for task, attempt in open_.items() if task not in live)
    return lines


def first_of(events: Sequence[Event]) -> RunStarted:
    """The first event of a journal, which says whose it is."""
    match events[0]:
        case RunStarted() as started:
            return started
        case other:
            raise ValueError(f"a journal begins with run_started, not with {type(other).__name__}")


def _interrupted(attempt: AttemptSubmitted, started: RunStarted) -> Tried:
    known = (key_of(attempt, started), attempt.task, attempt.run or started.run, attempt.attempt, attempt.n)
    return Tried(*known, End.CANCELLED, EndReason.INTERRUPTED)

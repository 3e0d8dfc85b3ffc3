"""The past of a work folder: what its records say about tasks and paths, folded from events."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from treadle.base.errors import RecordError
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.place import Place
from treadle.records.event import AnyEvent, End, EndReason, Event, Evidence, FileRecord
from treadle.records.flight import Flights, Interrupted, is_left
from treadle.records.journal import is_ended, read_journal
from treadle.records.line import Evicted, Line, Settled, Tried, checkpoint_lines, lines_of
from treadle.records.version import check_version

_EVIDENCE = msgspec.json.Decoder(Evidence)
_REREAD = 3


class Last(Struct, frozen=True):
    """How the last attempt of a task ended; `interrupted`: nobody saw its end."""

    state: End
    reason: EndReason = EndReason.OK
    exit_code: int | None = None
    interrupted: bool = False


class Past:
    """What is known, by evidence key and by output path. Look-ups decode only what is asked for."""

    __slots__ = ("_makers", "_settled", "_tombstones", "flights")

    def __init__(self) -> None:
        self.flights: Mapping[str, Interrupted] = {}  # jobs that go on without their driver, by evidence key
        self._settled: dict[str, Tried | Settled] = {}  # in the order in which evidence was given
        self._tombstones: dict[str, Evicted] = {}
        self._makers: dict[str, str] | None = None

    def evidence(self, key: str) -> Evidence | None:
        """What the task's last success left, whatever happened to it since. Raises `RecordError`."""
        line = self._settled.get(key)
        if not isinstance(line, Settled):
            return None
        try:
            return _EVIDENCE.decode(line.evidence)
        except msgspec.MsgspecError as error:
            raise RecordError(
                f"the evidence of task {line.task} cannot be read ({error})",
                place=Place(f"checkpoint.jsonl or the journal of run {line.run}"),
                hint="take its line out: the task will run again",
                code="damaged-record",
            ) from None

    def last(self, key: str) -> Last | None:
        """How its last attempt ended; None when it was never tried (adopted, touched: its state says so)."""
        line = self._settled.get(key)
        if line is None:
            return None
        return Last(line.state, line.reason, line.exit_code, line.reason is EndReason.INTERRUPTED)

    def maker(self, path: str) -> str | None:
        """The key whose evidence recorded this output path last."""
        if self._makers is None:
            self._makers = {
                made: key
                for key, line in self._settled.items()
                if isinstance(line, Settled)
                for made in line.paths()
            }
        return self._makers.get(path)

    def tombstone(self, path: str) -> FileRecord | None:
        """The output as it was when it was removed on purpose, unless it was made again since."""
        line = self._tombstones.get(path)
        return line.record if line is not None else None

    def seconds(self, key: str) -> float | None:
        """Seconds of wall time that its last success took."""
        line = self._settled.get(key)
        return line.seconds if line is not None else None

    def attempt(self, key: str) -> Tried | None:
        """The last attempt itself: its task, run and numbers, by which its log is found."""
        return self._settled.get(key)

    def lines(self) -> Iterator[Line]:
        """The fewest lines that fold to the same past."""
        yield from self._settled.values()
        yield from self._tombstones.values()

    @property
    def size(self) -> int:
        """How many lines `lines` has."""
        return len(self._settled) + len(self._tombstones)

    def add(self, lines: Iterable[Line]) -> int:
        """Let what happened later count; gives the number of lines. Only for a past that nobody else looks
        at yet."""
        settled, tombstones = self._settled, self._tombstones
        count = 0
        for line in lines:
            count += 1
            if type(line) is Evicted:
                tombstones[line.record.path] = line
            elif type(line) is Settled:
                if (old := settled.pop(line.key, None)) is not None:
                    line = _settled_again(old, line)
                settled[line.key] = line
                for path in line.paths_present() if tombstones else ():
                    tombstones.pop(path, None)
            elif type(line) is Tried:
                settled[line.key] = _tried_again(settled.get(line.key), line)
        self._makers = None
        return count


def _settled_again(old: Tried | Settled, new: Settled) -> Settled:
    """The new evidence; where nothing was run for it, beside the attempt and the time of before."""
    if new.n == 0:
        new = msgspec.structs.replace(new, run=old.run, attempt=old.attempt, n=old.n)
    if new.seconds is None and old.seconds is not None:
        new = msgspec.structs.replace(new, seconds=old.seconds)
    return new


def _tried_again(old: Tried | Settled | None, new: Tried) -> Tried | Settled:
    """The end of the new attempt, beside the evidence and the time of the last success."""
    if old is None:
        return new
    return msgspec.structs.replace(
        old,
        task=new.task,
        run=new.run,
        attempt=new.attempt,
        n=new.n,
        state=new.state,
        reason=new.reason,
        exit_code=new.exit_code,
        seconds=old.seconds if new.seconds is None else new.seconds,
    )


def fold(journals: Iterable[Sequence[Event]], lines: Iterable[Line] = ()) -> Past:
    """The past that checkpoint lines and then whole journals, oldest first, add up to."""
    past = Past()
    past.add(lines)
    flights = Flights()
    for events in journals:
        past.add(lines_of(events))
        flights.add(events)
    past.flights = flights.by_key
    return past


def load_past(state: StateFolder) -> Past:
    """Read the records of a work folder. Takes no lock and writes nothing.

    The checkpoint file, and over it the journals of runs that did not end: that of a live run, and those
    that the next run will mend. Raises `RecordError` and `DiskError`.
    """
    check_version(state)
    for _ in range(_REREAD):
        runs = unended_runs(state)
        journals = [read_journal(run.events).events for run in runs]
        past = _fold_over_checkpoint(state, journals)
        if not any(is_ended(run.events) for run in runs):
            break  # else a run ended while we read, and the checkpoint may be newer than its journal
    return past


def _fold_over_checkpoint(state: StateFolder, journals: Iterable[Sequence[AnyEvent]]) -> Past:
    found = checkpoint_lines(state.checkpoint)
    if found is None:  # the first run, or the copy is gone: the journals are the truth
        return fold(read_journal(run.events).events for run in journaled_runs(state))
    past = fold((), found)
    flights = Flights()
    for events in journals:
        if not is_left(events):  # else the copy has its lines, and perhaps later ones about the same
            past.add(lines_of(events))
        flights.add(events)
    past.flights = flights.by_key
    return past


def journaled_runs(state: StateFolder) -> list[RunFolder]:
    """Runs that have a journal, oldest first."""
    folders = (state.run(run) for run in state.run_ids())
    return [folder for folder in folders if os.path.exists(folder.events)]


def unended_runs(state: StateFolder) -> list[RunFolder]:
    """Runs whose journal does not end, oldest first: live ones, and those that were killed."""
    return [folder for folder in journaled_runs(state) if not is_ended(folder.events)]

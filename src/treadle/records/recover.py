"""What a run does first, under the lock: end the runs that were killed, and complete the copy.

Nothing here is undone or repeated by being killed half-way: a run counts as not ended until the very
last write about it, and what was appended before is found again by the next `recover`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from treadle.base.layout import RunFolder, StateFolder
from treadle.base.mask import Mask
from treadle.records.compact import Checkpoint, append_missing, compact
from treadle.records.event import (
    FORMAT,
    AttemptHandedOver,
    Event,
    RunDetached,
    RunEnded,
    RunStarted,
    TaskSettled,
)
from treadle.records.flight import Flights, Interrupted, interrupted, is_left
from treadle.records.journal import Journal, Journaled, mend, read_journal
from treadle.records.line import Line, checkpoint_lines, lines_of
from treadle.records.lock import Lock
from treadle.records.owner import Owner, read_owner
from treadle.records.past import Past, unended_runs
from treadle.records.runs import owner_is_gone
from treadle.records.version import migrate

UNKNOWN_EXIT = -1  # exit code of a run whose end nobody saw
_LATER = "later"  # in the place of a run, where it is not known which


class Recovery(Struct, frozen=True, kw_only=True):
    """The past as it is now, the attempts that ended with their driver, and the runs that were found dead.

    `torn`: bytes that were cut off the ends of their journals. Jobs that go on without their driver are in
    `past.flights`; the runs that submitted them are told of once, but do not end before `hand_over`. Drivers
    of the `detached` among them went by themselves.
    """

    past: Past
    interrupted: tuple[Interrupted, ...] = ()
    runs: tuple[str, ...] = ()
    detached: tuple[str, ...] = ()
    torn: int = 0


def recover(
    state: StateFolder,
    *,
    mask: Mask | None = None,
    lock: Lock | None = None,
    clean: Callable[[Sequence[Interrupted]], None] | None = None,
) -> Recovery:
    """End the runs that were killed, complete the checkpoint file, compact it; call it under the lock.

    `clean` is called for each such run before its end is written, with what ended with it: if it raises
    (orphans on another host, say), the run stays as it is and the next `recover` tells of it again. Runs
    whose owner lives are only read, and those with jobs in flight stay open for these alone. Raises
    `RecordError`, `DiskError`, `LockError`, and what `clean` raises.
    """
    migrate(state)
    checkpoint = Checkpoint.open(state, mask=mask)
    past = Past()
    lines = past.add(checkpoint_lines(state.checkpoint) or ())
    killed: list[tuple[RunFolder, Journaled]] = []
    flying: list[tuple[RunFolder, Journaled, Flights]] = []
    live: list[Journaled] = []
    flights = Flights()
    try:
        for folder in unended_runs(state):
            found = read_journal(folder.events)
            if not owner_is_gone(folder):
                live.append(found)
                continue
            if lock is not None:
                lock.check()
            flights.add(found.events)
            own = Flights()
            own.add(found.events)
            if own.by_key:
                flying.append((folder, found, own))
            if not is_left(found.events):
                lines += past.add(_copy(state, folder, found, checkpoint, mask))
                if clean is not None:
                    clean(interrupted(found.events))
                killed.append((folder, found))
            if not own.by_key:
                _leave_or_end(folder, found, 0, mask)
        for folder, found, own in flying:
            _settle_claims(folder, found, own, flights, mask)
    finally:
        checkpoint.close()
    compact(state.checkpoint, past, lines)
    for found in live:
        past.add(lines_of(found.events))
    past.flights = flights.by_key
    return Recovery(
        past=past,
        interrupted=tuple(one for _, found in killed for one in interrupted(found.events)),
        runs=tuple(folder.run for folder, _ in killed),
        detached=tuple(folder.run for folder, found in killed if _went(found.events)),
        torn=sum(found.torn for _, found in killed),
    )


def _went(events: Sequence[Event]) -> bool:
    """Whether a driver said itself that it left its jobs alone."""
    return bool(events) and isinstance(last := events[-1], RunDetached) and not last.mended


def _settle_claims(
    folder: RunFolder, found: Journaled, own: Flights, flights: Flights, mask: Mask | None
) -> None:
    """Leave a run open for the jobs that are its own. Those that a later one took over, and perhaps saw end,
    before it could tell this one, are told of now: once the later one has ended nobody could any more."""
    kept = len(flights.of(folder.run))
    if kept == len(own.by_key) and is_left(found.events):
        return
    events = [
        _handed_over(one, folder.run, _holder(flights, key))
        for key, one in own.by_key.items()
        if _holder(flights, key) != folder.run
    ]
    _leave_or_end(folder, found, kept, mask, events)


def _holder(flights: Flights, key: str) -> str:
    """The run that has the job of a task by now; where it has ended, some later one saw that."""
    flight = flights.by_key.get(key)
    return flight.holder if flight is not None else _LATER


def _handed_over(one: Interrupted, holder: str, by: str) -> AttemptHandedOver:
    run = one.run if one.run != holder else ""
    return AttemptHandedOver(time=time.time(), task=one.task, n=one.n, by=by, run=run)


def hand_over(
    state: StateFolder, flights: Sequence[Interrupted], by: str, *, mask: Mask | None = None
) -> None:
    """Tell the runs that submitted these jobs that run `by` has them now, whose journal says so already;
    those that have none left end with that. `by` empty: nobody has them any more, they were interrupted.

    Raises `DiskError` and `RecordError`; then call it again.
    """
    for holder in dict.fromkeys(one.holder for one in flights):
        folder = state.run(holder)
        found = read_journal(folder.events)
        if found.events and isinstance(found.events[-1], RunEnded):
            continue
        events: list[Event] = [_handed_over(one, holder, by) for one in flights if one.holder == holder]
        left = Flights()
        left.add([*found.events, *events])
        _leave_or_end(folder, found, len(left.by_key), mask, events)


def _copy(
    state: StateFolder, folder: RunFolder, found: Journaled, checkpoint: Checkpoint, mask: Mask | None
) -> Sequence[Line]:
    """Complete the copy of what the run left; the lines that were added."""
    known = [line for line in checkpoint_lines(state.checkpoint) or () if line.run == folder.run]
    added = append_missing(checkpoint, lines_of(found.events, mask), known)
    checkpoint.flush()
    return added


def _leave_or_end(
    folder: RunFolder, found: Journaled, flights: int, mask: Mask | None, events: Sequence[Event] = ()
) -> None:
    """Write the line that says that the run ended, or that it is open for its jobs alone: the last thing
    that is written about it, but for the end of those."""
    if found.torn:
        mend(folder.events)
    journal = Journal.reopen(folder.events, mask)
    try:
        first = [] if found.events else [_first_line(folder)]
        journal.write([*first, *events, _left(found.events, flights) if flights else _ended(found.events)])
        journal.sync()
    finally:
        journal.close()


def _first_line(folder: RunFolder) -> RunStarted:
    """For a journal that a crash left empty: its owner file tells whose it was."""
    seen = read_owner(folder.owner)
    owner = seen.owner if seen else Owner(uuid="")
    return RunStarted(
        time=owner.since,
        format=FORMAT,
        run=folder.run,
        treadle="",
        workflow="",
        host=owner.host,
        boot=owner.boot,
        pid=owner.pid,
        user=owner.user,
    )


def _ended(events: Sequence[Event]) -> RunEnded:
    return RunEnded(time=time.time(), exit_code=UNKNOWN_EXIT, counts=_counts(events), mended=True)


def _left(events: Sequence[Event], flights: int) -> RunDetached:
    return RunDetached(
        time=time.time(),
        exit_code=UNKNOWN_EXIT,
        jobs=flights,
        counts=_counts(events),
        copied=True,
        mended=True,
    )


def _counts(events: Sequence[Event]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for event in events:
        if isinstance(event, TaskSettled):
            counts[event.state] = counts.get(event.state, 0) + 1
    return counts

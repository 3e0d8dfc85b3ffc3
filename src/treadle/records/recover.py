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
    AttemptEnded,
    AttemptStarted,
    Event,
    FileRecord,
    RunEnded,
    RunStarted,
    TaskSettled,
)
from treadle.records.journal import Journal, Journaled, mend, read_journal
from treadle.records.line import Line, first_of, key_of, lines_of, open_attempts, read_checkpoint
from treadle.records.lock import Lock
from treadle.records.owner import Owner, read_owner
from treadle.records.past import Past, fold, unended_runs
from treadle.records.runs import owner_is_gone
from treadle.records.version import migrate

UNKNOWN_EXIT = -1  # exit code of a run whose end nobody saw


class Interrupted(Struct, frozen=True, kw_only=True):
    """An attempt of a run that was killed, whose task never settled.

    `job` and `started` as the backend told them (empty, 0: killed before it could), on `host` since
    `boot`. `ended`: the attempt itself is known to have ended and only waited for a retry. `outputs` are
    its declared outputs, `before` what stood there when it began; `resumable`: they are kept.
    """

    run: str
    task: str
    key: str
    attempt: int
    n: int
    name: str
    backend: str
    job: str = ""
    started: int = 0
    host: str = ""
    boot: str = ""
    outputs: tuple[str, ...] = ()
    before: tuple[FileRecord, ...] = ()
    resumable: bool = False
    ended: bool = False


class Recovery(Struct, frozen=True, kw_only=True):
    """The past as it is now, the attempts that were in flight, and the runs that were ended here.

    `torn`: bytes that were cut off the ends of their journals.
    """

    past: Past
    interrupted: tuple[Interrupted, ...] = ()
    runs: tuple[str, ...] = ()
    torn: int = 0


def recover(
    state: StateFolder,
    *,
    mask: Mask | None = None,
    lock: Lock | None = None,
    clean: Callable[[Sequence[Interrupted]], None] | None = None,
) -> Recovery:
    """End the runs that were killed, complete the checkpoint file, compact it; call it under the lock.

    `clean` is called for each such run before its end is written, with what was in flight: if it raises
    (orphans on another host, say), the run stays as it is and the next `recover` tells of it again. Runs
    whose owner lives are only read. Raises `RecordError`, `DiskError`, `LockError`, and what `clean` raises.
    """
    migrate(state)
    checkpoint = Checkpoint.open(state, mask=mask)
    lines = read_checkpoint(state.checkpoint) or []
    killed: list[tuple[str, Journaled]] = []
    live: list[Journaled] = []
    try:
        for folder in unended_runs(state):
            found = read_journal(folder.events)
            if not owner_is_gone(folder):
                live.append(found)
                continue
            if lock is not None:
                lock.check()
            lines += _copy(folder, found, checkpoint, lines, mask)
            if clean is not None:
                clean(in_flight(found.events))
            _end(folder, found, mask)
            killed.append((folder.run, found))
    finally:
        checkpoint.close()
    return _recovered(state, lines, killed, live)


def _copy(
    folder: RunFolder, found: Journaled, checkpoint: Checkpoint, lines: Sequence[Line], mask: Mask | None
) -> Sequence[Line]:
    """Complete the copy of what the run left; the lines that were added."""
    known = [line for line in lines if line.run == folder.run]
    added = append_missing(checkpoint, lines_of(found.events, mask), known)
    checkpoint.flush()
    return added


def _end(folder: RunFolder, found: Journaled, mask: Mask | None) -> None:
    """Write the line that says that the run ended: the last thing that is ever written about it."""
    if found.torn:
        mend(folder.events)
    journal = Journal.reopen(folder.events, mask)
    try:
        first = [] if found.events else [_first_line(folder)]
        journal.write([*first, _ended(found.events)])
        journal.sync()
    finally:
        journal.close()


def _recovered(
    state: StateFolder, lines: list[Line], killed: list[tuple[str, Journaled]], live: list[Journaled]
) -> Recovery:
    past = fold((), lines)
    compact(state.checkpoint, past, len(lines))
    for found in live:
        past.add(lines_of(found.events))
    return Recovery(
        past=past,
        interrupted=tuple(one for _, found in killed for one in in_flight(found.events)),
        runs=tuple(run for run, _ in killed),
        torn=sum(found.torn for _, found in killed),
    )


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
    counts: dict[str, int] = {}
    for event in events:
        if isinstance(event, TaskSettled):
            counts[event.state] = counts.get(event.state, 0) + 1
    return RunEnded(time=time.time(), exit_code=UNKNOWN_EXIT, counts=counts, mended=True)


def in_flight(events: Sequence[Event]) -> tuple[Interrupted, ...]:
    """The attempts of a journal whose tasks never settled, in the order in which they were submitted."""
    if not events:
        return ()
    first = first_of(events)
    started: dict[int, AttemptStarted] = {}
    ended: set[int] = set()
    for event in events:
        if isinstance(event, AttemptStarted):
            started[event.n] = event
        elif isinstance(event, AttemptEnded):
            ended.add(event.n)
    return tuple(
        Interrupted(
            run=first.run,
            task=one.task,
            key=key_of(one, first),
            attempt=one.attempt,
            n=one.n,
            name=one.name,
            backend=one.backend,
            job=started[one.n].job if one.n in started else "",
            started=started[one.n].started if one.n in started else 0,
            host=first.host,
            boot=first.boot,
            outputs=one.outputs,
            before=one.before,
            resumable=one.resumable,
            ended=one.n in ended,
        )
        for one in sorted(open_attempts(events).values(), key=lambda one: one.n)
    )

"""The runs that are kept, each in a few figures: from the first and the last line of its journal."""

from __future__ import annotations

import os
from enum import StrEnum

from msgspec import Struct

from treadle.base.layout import RunFolder, StateFolder
from treadle.records.journal import end_of, read_journal, start_of
from treadle.records.runs import is_live
from treadle.report.tally import Tally


class RunState(StrEnum):
    """How a run stands. `killed`: nobody saw its end; `stopped`: the world was in the way (exit code 3)."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    TERMINATED = "terminated"
    KILLED = "killed"


_BY_EXIT = {
    0: RunState.DONE,
    1: RunState.FAILED,
    130: RunState.INTERRUPTED,
    143: RunState.TERMINATED,
}


class KeptRun(Struct, frozen=True, kw_only=True):
    """One run; times in seconds since the epoch, `counts` of tasks by end."""

    run: str
    workflow: str
    state: RunState
    started: float | None
    ended: float | None
    exit_code: int | None
    counts: dict[str, int]


def run_state(folder: RunFolder, exit_code: int | None, *, mended: bool) -> RunState:
    """How a run stands; `exit_code` None: its journal does not tell an end."""
    if exit_code is None:
        return RunState.RUNNING if is_live(folder) else RunState.KILLED
    return RunState.KILLED if mended else _BY_EXIT.get(exit_code, RunState.STOPPED)


def kept_runs(state: StateFolder) -> list[KeptRun]:
    """All runs that are kept, the newest first. Raises `RecordError` and `DiskError`."""
    folders = (state.run(run) for run in reversed(state.run_ids()))
    return [_kept(folder) for folder in folders if os.path.exists(folder.events)]


def _kept(folder: RunFolder) -> KeptRun:
    first, last = start_of(folder.events), end_of(folder.events)
    exit_code = last.exit_code if last else None
    return KeptRun(
        run=folder.run,
        workflow=first.workflow if first else "",
        state=run_state(folder, exit_code, mended=last is not None and last.mended),
        started=first.time if first else None,
        ended=last.time if last else None,
        exit_code=None if last is None or last.mended else exit_code,
        counts=last.counts if last else _counts(folder),
    )


def _counts(folder: RunFolder) -> dict[str, int]:
    """What a run that did not end has come to so far."""
    tally = Tally()
    tally.feed(read_journal(folder.events).events)
    return {end.value: number for end, number in tally.ends.items() if number}

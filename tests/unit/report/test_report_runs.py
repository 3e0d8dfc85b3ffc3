"""The list of runs: read from the ends of their journals."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.base.layout import RunFolder, StateFolder
from treadle.records.clock import SystemClock
from treadle.records.event import FORMAT, End, RunEnded, RunStarted, TaskSettled
from treadle.records.journal import Journal, end_of, start_of
from treadle.records.owner import Owner, this_process
from treadle.records.runs import new_run
from treadle.report.runs import RunState, kept_runs, run_state


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return StateFolder(str(tmp_path))


def journaled(
    state: StateFolder, *events: object, owner: Owner | None = None, now: float = 1.8e9
) -> RunFolder:
    folder = new_run(state, owner or Owner(uuid="gone", locked=True), now=now)
    first = RunStarted(time=now, format=FORMAT, run=folder.run, treadle="0", workflow="flow")
    journal = Journal.create(folder.events, first)
    journal.write(events)
    journal.close()
    return folder


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (0, RunState.DONE),
        (1, RunState.FAILED),
        (3, RunState.STOPPED),
        (130, RunState.INTERRUPTED),
        (143, RunState.TERMINATED),
    ],
)
def test_a_run_that_ended_is_told_by_its_exit_code(state, code, how):
    journaled(state, RunEnded(time=1.8e9 + 5, exit_code=code, counts={"succeeded": 2}))
    (run,) = kept_runs(state)
    assert (run.state, run.exit_code, run.counts) == (how, code, {"succeeded": 2})
    assert (run.workflow, run.started, run.ended) == ("flow", 1.8e9, 1.8e9 + 5)


def test_a_run_whose_end_nobody_saw_was_killed_mended_or_not(state):
    settled = TaskSettled(time=1.8e9 + 1, task="t", key="t", state=End.SUCCEEDED)
    journaled(state, settled)
    journaled(state, settled, RunEnded(time=1.8e9 + 9, exit_code=-1, mended=True), now=1.8e9 + 60)
    mended, torn = kept_runs(state)
    assert (mended.state, torn.state) == (RunState.KILLED, RunState.KILLED)
    assert (mended.exit_code, torn.exit_code) == (None, None)
    assert torn.ended is None
    assert torn.counts == {"succeeded": 1}


def test_a_run_of_a_living_process_is_running(state):
    folder = journaled(state, owner=this_process(SystemClock()))
    assert run_state(folder, None, mended=False) is RunState.RUNNING
    assert kept_runs(state)[0].state is RunState.RUNNING


def test_the_newest_run_comes_first(state):
    runs = [journaled(state, now=1.8e9 + minute * 60).run for minute in range(3)]
    assert [one.run for one in kept_runs(state)] == runs[::-1]


def test_a_journal_without_a_whole_first_line_has_no_start_and_no_end(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"event":"run_sta')
    assert start_of(str(path)) is None
    assert end_of(str(path)) is None


def test_a_torn_end_is_none(state):
    folder = journaled(state, RunEnded(time=1.8e9 + 5, exit_code=0))
    data = Path(folder.events).read_bytes()
    assert end_of(folder.events) is not None
    Path(folder.events).write_bytes(data[:-1])
    assert end_of(folder.events) is None

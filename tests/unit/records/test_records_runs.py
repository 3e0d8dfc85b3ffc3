"""Run folders: made exclusively, in order; the last are kept, those of the living left alone."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import msgspec
import pytest
from records_story import DEAD, fresh, journaled, ourselves, settled, started, submitted, write_journal

from treadle.base.errors import DiskError
from treadle.base.layout import RunFolder, StateFolder
from treadle.records.compact import Checkpoint
from treadle.records.event import End, Event, PlanEntered, RunEnded
from treadle.records.owner import Pulse, read_owner
from treadle.records.runs import is_live, new_run, owner_is_gone, prune

NOW = 1_796_036_701.0  # 2026-11-30T11:05:01Z


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    state = fresh(tmp_path)
    Checkpoint.open(state).close()
    return state


def test_a_run_has_an_id_of_its_time_an_owner_and_the_latest_link(state: StateFolder) -> None:
    owner = ourselves(locked=True)
    folder = new_run(state, owner, now=NOW)
    assert re.fullmatch(r"20261130T110501Z-[0-9a-f]{4}", folder.run)
    assert read_owner(folder.owner).owner == owner
    assert os.path.isdir(folder.logs)
    assert os.readlink(state.latest) == folder.run
    assert state.run_ids() == [folder.run]


def test_ids_sort_as_the_runs_began_also_in_one_second_and_when_the_clock_was_set_back(
    state: StateFolder,
) -> None:
    times = [NOW, NOW, NOW + 0.5, NOW - 60, NOW + 100]
    made = [new_run(state, DEAD, now=now).run for now in times]
    assert made == sorted(made)
    assert state.run_ids() == made
    assert os.readlink(state.latest) == made[-1]


def test_a_run_from_a_far_future_does_not_draw_the_ids_with_it(state: StateFolder) -> None:
    new_run(state, DEAD, now=NOW + 10**8)
    assert new_run(state, DEAD, now=NOW).run.startswith("20261130T110501Z-")


def test_runs_that_begin_at_once_never_share_a_folder(state: StateFolder) -> None:
    made: list[RunFolder] = []
    threads = [threading.Thread(target=lambda: made.append(new_run(state, DEAD, now=NOW))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({folder.root for folder in made}) == 8
    assert all(os.path.exists(folder.owner) for folder in made)


def test_where_no_run_folder_can_be_made_the_place_is_named(state: StateFolder) -> None:
    Path(state.runs).write_text("")
    with pytest.raises(DiskError, match="runs"):
        new_run(state, DEAD, now=NOW)


def test_a_run_lives_while_its_process_does_and_its_journal_has_no_end(state: StateFolder) -> None:
    assert is_live(journaled(state, owner=ourselves()))
    assert not is_live(journaled(state, owner=ourselves(), ended=True))
    assert not is_live(journaled(state, owner=msgspec.structs.replace(ourselves(), started=1)))


def test_a_run_is_gone_when_its_lock_was_given_back_though_its_process_goes_on(state: StateFolder) -> None:
    """A driver that left jobs at work may have to hand in the next one, and that one is not to wait."""
    owner = ourselves(locked=True)
    folder = journaled(state, owner=owner)
    lock = Pulse.create(state.lock, owner, 0.0)
    assert is_live(folder)
    os.unlink(state.lock)
    lock.close()
    assert owner_is_gone(folder)


def test_a_run_elsewhere_lives_as_long_as_the_lock_is_still_its_own(state: StateFolder) -> None:
    folder = journaled(state, owner=DEAD)
    assert owner_is_gone(folder)
    lock = Pulse.create(state.lock, DEAD, 0.0)
    assert is_live(folder)
    os.unlink(state.lock)
    lock.close()
    Pulse.create(state.lock, ourselves(locked=True), 0.0).close()
    assert owner_is_gone(folder)


def test_a_run_elsewhere_without_lock_is_gone_after_an_hour_of_silence(state: StateFolder) -> None:
    owner = msgspec.structs.replace(DEAD, locked=False)
    folder = journaled(state, owner=owner)
    assert is_live(folder)
    os.utime(folder.owner, (NOW - 10**8, NOW - 10**8))
    assert owner_is_gone(folder)
    pulse = Pulse.reopen(folder.owner, owner, 0.0)
    pulse.beat(20.0)
    assert read_owner(folder.owner).counter == 1
    assert is_live(folder)


# What is kept


def run_of(state: StateFolder, *events: Event, ended: bool = True, backend: str = "local") -> str:
    """A run with one attempt, or with the events given."""
    folder = new_run(state, DEAD, now=NOW)
    middle = list(events) or [submitted(1, "a", backend=backend), settled(1, "a")]
    end = [RunEnded(time=9.0, exit_code=0)] if ended else []
    write_journal(folder, [started(folder.run), *middle, *end])
    return folder.run


IDLE = PlanEntered(time=1.0, round=1, digest="", tasks=3, will_run=0)


def test_the_last_runs_that_attempted_something_are_kept(state: StateFolder) -> None:
    runs = [run_of(state) for _ in range(25)]
    assert prune(state) == runs[4::-1]
    assert state.run_ids() == runs[5:]
    assert os.readlink(state.latest) == runs[-1]
    assert prune(state) == []


def test_runs_that_attempted_nothing_do_not_push_out_others(state: StateFolder) -> None:
    worked = [run_of(state) for _ in range(3)]
    idle = [run_of(state, IDLE) for _ in range(5)]
    assert sorted(prune(state, keep=3)) == idle[:-1]
    assert state.run_ids() == [*worked, idle[-1]]


def test_runs_that_did_not_end_are_kept(state: StateFolder) -> None:
    alive = run_of(state, ended=False)
    runs = [run_of(state) for _ in range(4)]
    assert prune(state, keep=2) == runs[1::-1]
    assert state.run_ids() == [alive, *runs[2:]]


def test_a_run_whose_job_may_still_be_in_a_scheduler_is_kept(state: StateFolder) -> None:
    detached = run_of(state, submitted(1, "a", backend="slurm"))
    local = run_of(state, submitted(1, "b"))
    run_of(state)
    assert prune(state, keep=1) == [local]
    checkpoint = Checkpoint.open(state, "a-later-run")
    checkpoint.note([settled(1, "a", state=End.FAILED)])
    checkpoint.flush()
    assert prune(state, keep=1) == [detached]


def test_what_is_no_run_is_left_alone(state: StateFolder) -> None:
    run_of(state)
    mine = Path(state.runs, "notes")
    mine.mkdir()
    os.utime(mine, (1, 1))
    half = new_run(state, DEAD, now=NOW)
    run_of(state)
    assert prune(state, keep=1) != []
    assert mine.exists()
    assert os.path.exists(half.root)  # without a journal, but young: it may be about to begin
    os.utime(half.root, (1, 1))
    assert prune(state, keep=1) == [half.run]


def test_what_cannot_be_read_ends_no_run_in_an_error(state: StateFolder) -> None:
    odd = state.run(run_of(state))
    os.unlink(odd.events)
    os.mkdir(odd.events)
    for _ in range(3):
        run_of(state)
    assert odd.run not in prune(state, keep=1)
    assert os.path.exists(odd.root)

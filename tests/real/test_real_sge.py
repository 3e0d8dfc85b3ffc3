"""A real Grid Engine, asked in the words of our dialect: what it prints is what we read."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest
from dialect_world import Asked, lines_of, touches

from treadle.backends.cluster.dialect import Phase, Row, Silence, Sort
from treadle.plan.task import Resources
from treadle.records.event import EndReason

pytestmark = pytest.mark.real
MB = 1 << 20


def is_running(row: Row) -> bool:
    return row.phase is Phase.RUNNING


def test_sge_every_element_of_an_array_has_its_account_and_its_log(grid: Asked) -> None:
    array = grid.submit("echo element $SGE_TASK_ID", size=3, running=2)
    for index in (1, 2, 3):
        account = grid.final(grid.dialect.element(array, index))
        assert (account.ended, account.exit_code, account.name) == (None, 0, grid.name())
        assert lines_of(grid.log(index)) == [f"element {index}"]
    assert grid.row(grid.dialect.element(array, 1)) is None


def test_sge_what_waits_of_an_array_is_shown_element_by_element(grid: Asked) -> None:
    array = grid.submit("exec sleep 60", size=4, running=2)
    elements = [grid.dialect.element(array, index) for index in range(1, 5)]
    grid.row_when(elements[1], is_running)
    rows = grid.polled(array)
    assert not isinstance(rows, Silence)
    assert [rows[element].phase for element in elements] == [Phase.RUNNING] * 2 + [Phase.PENDING] * 2
    assert {rows[element].name for element in elements} == {grid.name()}
    grid.cancel(array)
    grid.until(lambda: grid.row(elements[0]) is grid.row(elements[3]) is None)


def test_sge_a_failure_has_its_exit_code(grid: Asked) -> None:
    account = grid.final(grid.submit("exit 3"))
    assert (account.ended, account.exit_code) == (EndReason.APP, 3)
    assert account.end is not None
    assert grid.since <= account.end <= time.time() + 1


def test_sge_a_job_over_its_time_is_known_as_such(grid: Asked) -> None:
    job = grid.submit("exec sleep 600", resources=Resources(time_limit=2))
    assert grid.final(job).ended is EndReason.TIME


def test_sge_a_job_whose_processes_need_more_than_its_memory_is_known_as_such(grid: Asked) -> None:
    # One process alone would only be told that there is no memory.
    one = f"{sys.executable} -c 'import time; kept = bytearray(120 << 20); time.sleep(60)'"
    body = f"{one} & {one} & {one} & wait"
    job = grid.submit(body, resources=Resources(memory=250 * MB, time_limit=600))
    account = grid.final(job)
    assert account.ended is EndReason.OOM
    assert account.memory is not None
    assert account.memory > 250 * MB


def test_sge_a_cancelled_job_leaves_the_queue_and_looks_killed(grid: Asked) -> None:
    job = grid.submit("exec sleep 600")
    grid.row_when(job, is_running)
    grid.cancel(job)
    account = grid.final(job)
    assert account.ended in (EndReason.APP, EndReason.CANCELLED)  # this version does not tell who it was
    assert account.signal == signal.SIGKILL
    grid.until(lambda: grid.row(job) is None)


def test_sge_a_job_is_found_by_its_name_in_the_queue_and_in_accounting(grid: Asked) -> None:
    job = grid.submit("sleep 3")
    name = grid.name()
    assert grid.found(name)[0] == {name: job}
    grid.final(job)
    assert grid.found(name)[1] == {name: job}


def test_sge_a_request_that_cannot_be_is_refused_and_a_broken_one_is_hopeless(grid: Asked) -> None:
    refused = grid.offer("exit 0", resources=Resources(constraint="no_such_thing=1"))
    assert refused.sort is Sort.REFUSED
    job = grid.submit("exit 0", workdir=str(grid.folder / "missing"))
    row = grid.row_when(job, lambda row: row.hopeless)
    assert row.state == "Eqw"
    grid.cancel(job)
    grid.until(lambda: grid.row(job) is None)


def test_sge_an_unknown_job_is_no_evidence(grid: Asked) -> None:
    assert grid.accounted("99999999") == {}


def test_sge_a_requeued_job_runs_again_under_its_id(grid: Asked, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    body = f"{touches(runs)}; test $(wc -l < {runs}) = 2 || exec sleep 600"
    job = grid.submit(body, requeue=True)
    grid.until(lambda: lines_of(runs))
    grid.scheduler.run("qmod", "-rj", job)
    grid.until(lambda: lines_of(runs) == ["started"] * 2)
    grid.until(lambda: grid.row(job) is None)
    grid.until(lambda: grid.final(job).exit_code == 0)
    assert grid.final(job).ended is None


def test_sge_a_stopped_master_is_silence_and_accounting_goes_on(grid: Asked) -> None:
    ended, running = grid.submit("exit 2"), grid.submit("sleep 4; exit 6")
    grid.final(ended)
    grid.row_when(running, is_running)
    grid.scheduler.stop("sge_qmaster")
    try:
        silence = grid.polled(running)
        assert isinstance(silence, Silence)
        assert silence.down
        assert grid.offer("exit 0").sort is Sort.TRANSIENT
        assert grid.final(ended).exit_code == 2
    finally:
        grid.scheduler.start("sge_qmaster")
    assert grid.final(running, seconds=90).exit_code == 6

"""A real SLURM, asked in the words of our dialect: what it prints is what we read.

The slow ends (a time limit, a node, a requeue) are SLURM's own pace; see CONTRIBUTING.md for starting one by
hand.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dialect_world import Asked, lines_of, touches

from schedulers.start import Scheduler
from treadle.backends.cluster.dialect import Phase, Row, Silence, Sort
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.slurm import Slurm
from treadle.plan.task import Resources
from treadle.records.event import EndReason

pytestmark = pytest.mark.real
MB = 1 << 20


def is_running(row: Row) -> bool:
    return row.phase is Phase.RUNNING


def is_over(row: Row) -> bool:
    return row.phase is Phase.ENDED


# SLURM with accounting


@pytest.fixture
def asked(slurm: Scheduler, tmp_path: Path) -> Asked:
    return Asked(slurm, Slurm(ClusterSettings(backend="slurm")), tmp_path)


def test_slurm_every_element_of_an_array_has_its_row_its_account_and_its_log(asked: Asked) -> None:
    array = asked.submit("echo element $SLURM_ARRAY_TASK_ID", size=4, running=2)
    elements = [asked.dialect.element(array, index) for index in range(1, 5)]
    for index, element in enumerate(elements, 1):
        row = asked.row_when(element, is_over)
        assert (row.ended, row.name) == (None, asked.name())
        account = asked.final(element)
        assert (account.ended, account.exit_code) == (None, 0)
        assert lines_of(asked.log(index)) == [f"element {index}"]


def test_slurm_what_waits_of_an_array_is_shown_element_by_element(asked: Asked) -> None:
    array = asked.submit("sleep 60", size=5, running=2)
    elements = [asked.dialect.element(array, index) for index in range(1, 6)]
    asked.row_when(elements[1], is_running)
    rows = asked.polled(array)
    assert not isinstance(rows, Silence)
    assert [rows[element].phase for element in elements] == [Phase.RUNNING] * 2 + [Phase.PENDING] * 3
    assert rows[elements[4]].reason == "JobArrayTaskLimit"
    asked.cancel(elements[3])  # leaves no trace, in neither place
    asked.until(lambda: asked.row(elements[3]) is None)
    asked.cancel(array)
    assert asked.row_when(elements[0], is_over).ended is EndReason.CANCELLED


def test_slurm_a_failure_has_its_exit_code(asked: Asked) -> None:
    job = asked.submit("exit 3")
    assert asked.row_when(job, is_over).ended is EndReason.APP
    account = asked.final(job)
    assert (account.ended, account.exit_code, account.signal) == (EndReason.APP, 3, 0)
    assert account.start is not None
    assert account.end is not None
    assert asked.since <= account.start <= account.end <= time.time() + 1


def test_slurm_a_job_over_its_time_is_known_as_such(asked: Asked) -> None:
    job = asked.submit("exec sleep 600", resources=Resources(time_limit=60))
    asked.row_when(job, is_running)
    # Limits are whole minutes; the administrator may set the end itself, if not to the second of the start.
    update = ("scontrol", "update", f"jobid={job}", "EndTime=now")
    asked.until(lambda: asked.scheduler.run(*update).returncode == 0)
    assert asked.row_when(job, is_over, seconds=90).ended is EndReason.TIME
    assert asked.final(job).ended is EndReason.TIME


def test_slurm_a_job_over_its_memory_is_known_as_such_even_if_it_says_success(asked: Asked) -> None:
    body = "dd if=/dev/zero of=/dev/null bs=400M count=3; sleep 3; exit 0"
    job = asked.submit(body, resources=Resources(memory=100 * MB))
    wanted = EndReason.OOM if asked.scheduler.facts["memory_limits"] == "cgroup" else EndReason.APP
    assert asked.row_when(job, is_over).ended is wanted
    assert asked.final(job).ended is wanted


def test_slurm_peak_memory_and_cpu_time_come_from_the_steps(asked: Asked) -> None:
    body = f"{sys.executable} -c 'import time; kept = bytearray(200 << 20)\n"
    body += "while time.process_time() < 3: sum(range(1000))'"
    account = asked.final(asked.submit(body, resources=Resources(memory=400 * MB)))
    assert account.memory is not None
    assert account.cpu is not None
    assert 150 * MB < account.memory < 400 * MB
    assert 2.5 < account.cpu < 30


def test_slurm_a_cancelled_job_is_known_as_such(asked: Asked) -> None:
    job = asked.submit("exec sleep 600")
    asked.row_when(job, is_running)
    asked.cancel(job)
    assert asked.row_when(job, is_over).ended is EndReason.CANCELLED
    account = asked.final(job)
    assert account.ended is EndReason.CANCELLED
    assert account.state == "CANCELLED by 0"


def test_slurm_a_job_is_found_by_its_name_in_the_queue_and_in_accounting(asked: Asked) -> None:
    job = asked.submit("exit 0")
    name = asked.name()
    assert asked.found(name, "t-nobodys")[0] == {name: job}
    # A first record may be final and yet lack the name ("allocation") for some seconds.
    asked.until(lambda: asked.found(name, "t-nobodys") == [{name: job}] * 2)
    assert asked.final(job).name == name


def test_slurm_a_request_that_cannot_be_is_refused_or_hopeless(asked: Asked) -> None:
    refused = asked.offer("exit 0", resources=Resources(partition="nowhere"))
    assert refused.sort is Sort.REFUSED
    assert "partition" in refused.message
    job = asked.submit("exit 0", resources=Resources(partition="short", time_limit=3600))
    assert asked.row_when(job, lambda row: row.hopeless).reason == "PartitionTimeLimit"
    asked.cancel(job)


def test_slurm_an_unknown_job_is_no_evidence_alone_or_among_others(asked: Asked) -> None:
    job = asked.submit("exit 0")
    assert asked.polled("99999999") == {}
    assert asked.accounted("99999999") == {}
    rows = asked.polled("99999999", job)
    assert not isinstance(rows, Silence)
    assert list(rows) == [job]


def test_slurm_the_limit_of_arrays_is_read(asked: Asked) -> None:
    assert asked.dialect.limits_of(asked.said(asked.dialect.limits())).array_size == 10_000


def test_slurm_a_stopped_controller_is_silence_and_no_jobs_fault(asked: Asked) -> None:
    job = asked.submit("sleep 3; echo done")
    asked.row_when(job, is_running)
    asked.scheduler.stop("slurmctld")
    try:
        with ThreadPoolExecutor(3) as threads:  # each hangs for 9 to 18 s
            ping = threads.submit(asked.said, asked.dialect.ping())
            polled, offered = threads.submit(asked.polled, job), threads.submit(asked.offer, "exit 0")
        assert ping.result().code != 0
        silence = polled.result()
        assert isinstance(silence, Silence)
        assert silence.down
        assert offered.result().sort is Sort.TRANSIENT
    finally:
        asked.scheduler.start("slurmctld")
    assert asked.row_when(job, is_over, seconds=90).ended is None
    assert asked.found(asked.name())[0] == {}, "what was refused for the outage came after all"


def test_slurm_a_stopped_database_is_silence_and_its_rows_come_later(asked: Asked) -> None:
    asked.scheduler.kill("slurmdbd")
    try:
        job = asked.submit("exit 4")
        silence = asked.accounted(job)
        assert isinstance(silence, Silence)
        assert silence.down
        assert asked.row_when(job, is_over).ended is EndReason.APP
    finally:
        asked.scheduler.start("slurmdbd")
    assert asked.final(job, seconds=90).exit_code == 4


def test_slurm_a_node_that_is_set_down_ends_its_jobs(asked: Asked) -> None:
    job = asked.submit("exec sleep 600")
    node = asked.row_when(job, is_running).host
    assert node in asked.scheduler.nodes
    update = ("scontrol", "update", f"nodename={node}")
    assert asked.scheduler.run(*update, "state=down", "reason=test").returncode == 0
    try:
        assert asked.row_when(job, is_over).ended is EndReason.NODE
        account = asked.final(job)
        assert (account.ended, account.host) == (EndReason.NODE, node)
    finally:
        asked.scheduler.run(*update, "state=resume")


def test_slurm_a_requeued_job_waits_and_runs_again_under_its_id(asked: Asked, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    body = f"{touches(runs)}; test $(wc -l < {runs}) = 2 || exec sleep 600"
    job = asked.submit(body, requeue=True)
    asked.until(lambda: lines_of(runs))
    assert asked.scheduler.run("scontrol", "requeue", job).returncode == 0
    # At first it waits for no reason at all: in flight, by whatever is read there.
    row = asked.row_when(job, lambda row: row.requeued)
    assert (row.phase, row.ended) == (Phase.PENDING, None)
    assert asked.row_when(job, is_over, seconds=90).ended is None
    assert lines_of(runs) == ["started"] * 2
    asked.until(lambda: asked.final(job).exit_code == 0)
    assert asked.final(job).ended is None


# SLURM without accounting


@pytest.fixture
def bare(slurm_without_accounting: Scheduler, tmp_path: Path) -> Asked:
    return Asked(slurm_without_accounting, Slurm(ClusterSettings(backend="slurm")), tmp_path)


def test_slurm_without_accounting_the_queue_tells_until_it_forgets(bare: Asked) -> None:
    jobs = [bare.submit("exit 0"), bare.submit("exit 5")]
    assert [bare.row_when(job, is_over).ended for job in jobs] == [None, EndReason.APP]
    for job in jobs:
        bare.until(lambda job=job: bare.row(job) is None)  # type: ignore[misc]
    assert bare.polled(*jobs) == {}


def test_slurm_without_accounting_says_so_and_is_not_down(bare: Asked) -> None:
    job = bare.submit("exec sleep 60")
    answer = bare.accounted(job)
    assert isinstance(answer, Silence)
    assert not answer.down
    assert bare.found(bare.name()) == [{bare.name(): job}, {}]
    bare.cancel(job)
    assert bare.row_when(job, is_over).ended is EndReason.CANCELLED

"""SLURM: what the queue says of jobs, in the answers of a real one."""

from __future__ import annotations

import pytest
from recorded import recorded

from treadle.backends.cluster.dialect import Phase, Row, Said, Silence
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.records.event import EndReason

VERSION = "slurm-22.05.8"
QUEUE = "'%i|%F|%K|%T|%t|%r|%M|%l|%S|%e|%R|%N'"
slurm = dialect_of(ClusterSettings(backend="slurm"))


def in_queue(job: int | str, nth: int = 0) -> list[Row]:
    """The recorded rows of a job, in the columns that the dialect asks for."""
    said = recorded(VERSION, f"squeue -h -t all -j {job} -o {QUEUE}", nth)
    rows = [line.split("|") for line in said.out.splitlines()]
    return polled("\n".join(f"{row[0]}|{row[3]}|{row[5]}|{row[11]}|name" for row in rows))


def polled(out: str) -> list[Row]:
    rows = slurm.polled(Said(0, out))
    assert not isinstance(rows, Silence)
    return rows


def test_arrays_are_asked_for_once_and_written_out() -> None:
    assert slurm.poll(["24_1", "24_2", "7", "24_3"], "me") == [
        ["squeue", "-h", "-r", "-t", "all", "-j", "24,7", "-o", "%i|%T|%r|%N|%j"]
    ]
    assert len(slurm.poll([str(10_000_000 + n) for n in range(10_000)], "me")) == 1
    assert slurm.poll([], "me") == []


def test_jobs_of_another_cluster_are_asked_for_there() -> None:
    assert slurm.poll(["3;lab", "4"], "me") == [
        ["squeue", "-h", "-r", "-t", "all", "-M", "lab", "-j", "3", "-o", "%i;lab|%T|%r|%N|%j"],
        ["squeue", "-h", "-r", "-t", "all", "-j", "4", "-o", "%i|%T|%r|%N|%j"],
    ]
    (row,) = polled("CLUSTER: lab\n3_1;lab|RUNNING|None|n1|x\n")
    assert row.job == slurm.element("3;lab", 1)
    (account,) = slurm.accounted(Said(0, "lab|3_1|COMPLETED|0:0||||n1|||x"))
    assert account.job == "3_1;lab"
    assert slurm.cancel(["3;lab"]) == [["scancel", "-M", "lab", "3"]]


@pytest.mark.parametrize(
    ("job", "phase", "reason"),
    [
        (11, Phase.PENDING, "JobHeldUser"),
        (12, Phase.PENDING, "BeginTime"),
        (16, Phase.PENDING, "Resources"),
        (14, Phase.RUNNING, ""),
        (18, Phase.ENDED, ""),
        (29, Phase.RUNNING, ""),  # suspended
    ],
)
def test_phases(job: int, phase: Phase, reason: str) -> None:
    (row,) = in_queue(job)
    assert (row.job, row.phase, row.reason, row.hopeless, row.ended) == (str(job), phase, reason, False, None)


@pytest.mark.parametrize(
    ("job", "end"),
    [
        (19, EndReason.APP),
        (20, EndReason.APP),
        (23, EndReason.OOM),
        (30, EndReason.NODE),
        (32, EndReason.TIME),
    ],
)
def test_bad_ends(job: int, end: EndReason) -> None:
    (row,) = in_queue(job)
    assert (row.phase, row.ended) == (Phase.ENDED, end)


def test_a_node_that_failed_is_named() -> None:
    (row,) = in_queue(30)
    assert row.host == "x2"


def test_elements_that_wait_are_written_out_even_without_r() -> None:
    rows = {row.job: row.phase for row in in_queue(24)}
    assert rows == {
        "24_0": Phase.RUNNING,
        "24_1": Phase.RUNNING,
        "24_2": Phase.PENDING,
        "24_3": Phase.PENDING,
        "24_4": Phase.PENDING,
    }


@pytest.mark.parametrize(
    ("printed", "phase", "end"),
    [
        ("PD", Phase.PENDING, None),
        ("CG", Phase.RUNNING, None),
        ("CD", Phase.ENDED, None),
        ("CA", Phase.ENDED, EndReason.CANCELLED),
        ("OOM", Phase.ENDED, EndReason.OOM),
        ("CANCELLED by 1000", Phase.ENDED, EndReason.CANCELLED),
        ("CANCELLED+", Phase.ENDED, EndReason.CANCELLED),
        ("OUT_OF_ME+", Phase.ENDED, EndReason.OOM),
        ("OUT_OF_MEM", Phase.ENDED, EndReason.OOM),
        ("BOOT_FAIL", Phase.ENDED, EndReason.NODE),
        ("DEADLINE", Phase.ENDED, EndReason.TIME),
        ("REVOKED", Phase.ENDED, EndReason.LOST),
        ("PREEMPTED", Phase.ENDED, EndReason.PREEMPTED),
        ("SPECIAL_EXIT", Phase.PENDING, None),
        ("STOPPED", Phase.RUNNING, None),
        ("BEAMED_UP", Phase.UNKNOWN, None),
        ("", Phase.UNKNOWN, None),
    ],
)
def test_states_in_all_spellings(printed: str, phase: Phase, end: EndReason | None) -> None:
    (row,) = polled(f"5|{printed}|None||x")
    assert (row.phase, row.ended, row.state) == (phase, end, printed)


@pytest.mark.parametrize(
    "reason",
    [
        *("DependencyNeverSatisfied", "PartitionTimeLimit", "BadConstraints", "InvalidAccount"),
        *(
            "QOSMaxWallDurationPerJobLimit",
            "QOSMaxMemoryPerJob",
            "AssocMaxCpuPerJobLimit",
            "QOSMaxGRESPerNode",
        ),
    ],
)
def test_reasons_that_cannot_heal(reason: str) -> None:
    (row,) = polled(f"5|PENDING|{reason}||x")
    assert row.hopeless


@pytest.mark.parametrize(
    "reason",
    [
        *("Resources", "Priority", "JobHeldUser", "JobHeldAdmin", "PartitionDown", "QOSMaxJobsPerUserLimit"),
        *("QOSMaxCpuPerUserLimit", "AssocGrpCpuLimit", "ReqNodeNotAvail, UnavailableNodes:x2", "None"),
        *("PartitionConfig", "PartitionNodeLimit", "PartitionInactive", "Constraints", "ReservationDeleted"),
        *("QOSResourceLimit", "MaxCpuPerAccount", "QOSUsageThreshold", "AccountingPolicy"),
    ],
)
def test_reasons_that_may_heal(reason: str) -> None:
    (row,) = polled(f"5|PENDING|{reason}||x")
    assert not row.hopeless


def test_a_requeued_job_waits_again() -> None:
    assert [row.requeued for row in in_queue(28)] == [True]
    (held,) = in_queue(28, 2)
    assert (held.phase, held.requeued, held.hopeless) == (Phase.PENDING, True, False)


def test_one_purged_id_is_an_empty_answer() -> None:
    assert slurm.polled(recorded(VERSION, "squeue -j 999999")) == []
    assert slurm.polled(recorded(VERSION, "squeue -h -j 999999,1")) == []


@pytest.mark.parametrize(
    "said",
    [
        Said(None),
        recorded(VERSION, "squeue -h -j 14", -1),
        Said(1, "", "slurm_load_jobs error: Socket timed out on send/recv operation"),
        Said(0, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
    ],
)
def test_a_queue_that_cannot_be_reached_says_nothing(said: Said) -> None:
    answer = slurm.polled(said)
    assert isinstance(answer, Silence)
    assert answer.down


def test_an_odd_row_of_someone_else_is_skipped() -> None:
    assert [row.job for row in polled("what\n5|RUNNING|None|n1|a|b\n12+0|RUNNING|None|n|x")] == ["5"]
    assert isinstance(slurm.polled(Said(0, "Segmentation fault\n")), Silence)

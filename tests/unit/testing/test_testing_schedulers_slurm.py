"""The fake SLURM answers as the real one did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_world import SLURM, alike, recorded, say, shape

from treadle.testing.schedulers import FakeCluster

QUEUE = "squeue -h -t all -j {} -o '%i|%F|%K|%T|%t|%r|%M|%l|%S|%e|%R|%N'"
COLUMNS = (
    "JobID,JobIDRaw,JobName,State,ExitCode,DerivedExitCode,Elapsed,ElapsedRaw,MaxRSS,TotalCPU,Submit,Start,End,"
    "NodeList,ReqMem,Timelimit,Reason"
)
ACCOUNT = f"sacct -j {{}} -P -o {COLUMNS}"
SUBMISSIONS = [
    "sbatch ok.sh",
    "sbatch --parsable ok.sh",
    "sbatch --parsable -M lab ok.sh",
    "sbatch -p nosuch ok.sh",
    "sbatch -n 1000 ok.sh",
    "sbatch --mem=900G ok.sh",
    "sbatch -t 10-0 ok.sh",
    "sbatch -t xx ok.sh",
    "sbatch missing.sh",
    "sbatch --wrap 'exit 0' --array=0-20000",
    "sbatch --dependency=afterok:999999 ok.sh",
    "sbatch --test-only ok.sh",
    "sbatch -A nosuchacct ok.sh",
    "sbatch -D /tmp/nosuchdir ok.sh",
]
UNKNOWN = [
    "squeue -j 999999",
    "squeue -h -j 999999,1",
    "sacct -j 999999 -P -o JobID,State",
    "scancel 999999",
    "squeue -j abc",
    "scancel abc",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    (folder / "ok.sh").write_text("#!/bin/sh\n#SBATCH --job-name=ok -t 2 --mem=500M\ntrue\n")
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCluster]:
    folder = tmp_path_factory.mktemp("cluster") / "slurm"
    with FakeCluster(
        "slurm", folder, slots=16, memory=16 << 30, partitions=("main", "short"), user="root", uid=0
    ) as cluster:
        yield cluster


def queue(cluster: FakeCluster, folder: Path, job: str) -> list[list[str]]:
    said = say(cluster, QUEUE.format(job), folder)
    assert said.code == 0
    return [line.split("|") for line in said.out.splitlines()]


def real_queue(job: int, nth: int = 0) -> list[list[str]]:
    return [line.split("|") for line in recorded(SLURM, QUEUE.format(job), nth).out.splitlines()]


def same_row(mine: list[str], real: list[str]) -> None:
    """States and reasons are equal, and the other columns are of one kind."""
    assert mine[3:6] == real[3:6]
    assert [shape(cell) for cell in mine[10:]] == [shape(cell) for cell in real[10:]]
    assert shape(mine[2]) == shape(real[2])


def accounts(out: str) -> list[dict[str, str]]:
    header, *lines = [line.split("|") for line in out.splitlines()]
    return [dict(zip(header, line, strict=True)) for line in lines]


def same_accounts(mine: str, real: str) -> None:
    """Rows of jobs and their batch steps; those of `srun` steps are left out, figures need not be equal."""
    ours, theirs = accounts(mine), [row for row in accounts(real) if not row["JobID"].endswith(".0")]
    assert len(ours) == len(theirs)
    for row, other in zip(ours, theirs, strict=True):
        assert list(row) == list(other)
        for name in ("State", "ExitCode", "DerivedExitCode"):
            assert row[name] == other[name], name
        for name in ("JobID", "Submit", "Start", "End", "NodeList"):
            assert shape(row[name]) == shape(other[name]), name


def submit(cluster: FakeCluster, folder: Path, words: str) -> str:
    said = say(cluster, f"sbatch --parsable -o /dev/null {words}", folder)
    assert said.code == 0, said
    return said.out.strip()


@pytest.mark.parametrize("command", SUBMISSIONS)
def test_submissions_are_answered_as_recorded(cluster: FakeCluster, folder: Path, command: str) -> None:
    alike(say(cluster, command, folder), recorded(SLURM, command))


@pytest.mark.parametrize("command", UNKNOWN)
def test_unknown_jobs_are_answered_as_recorded(cluster: FakeCluster, folder: Path, command: str) -> None:
    if "sacct" in command:
        alike(say(cluster, command, folder), recorded(SLURM, command))
    else:
        mine, real = say(cluster, command, folder), recorded(SLURM, command)
        assert (mine.code, mine.err) == (real.code, real.err)


@pytest.mark.parametrize(
    ("job", "nth", "words"),
    [
        (18, 0, "--wrap true"),
        (19, 0, "--wrap 'exit 3'"),
        (20, 0, "--wrap 'kill -9 $$'"),
        (21, 0, "--wrap nosuchcommand"),
        (22, 0, "-o /nosuch/folder/%j.out --wrap true"),
    ],
    ids=["completed", "failed", "signalled", "not found", "no output folder"],
)
def test_ends_are_shown_as_recorded(
    cluster: FakeCluster, folder: Path, job: int, nth: int, words: str
) -> None:
    number = submit(cluster, folder, words)
    cluster.wait_for(lambda jobs: all(one.ended for one in jobs if one.job == int(number)))
    (row,) = queue(cluster, folder, number)
    same_row(row, real_queue(job, nth)[0])
    same_accounts(
        say(cluster, ACCOUNT.format(number), folder).out, recorded(SLURM, ACCOUNT.format(job), nth).out
    )


@pytest.mark.parametrize(
    ("job", "nth", "verb"),
    [(14, 1, "cancel"), (32, 0, "timeout"), (23, 0, "oom"), (29, 0, "suspend"), (30, 0, "node_fail")],
)
def test_what_is_done_to_running_jobs_is_shown_as_recorded(
    cluster: FakeCluster, folder: Path, job: int, nth: int, verb: str
) -> None:
    number = submit(cluster, folder, f"--no-requeue -J {verb} --wrap 'sleep 100'")
    cluster.wait_for(lambda jobs: any(one.pid for one in jobs if one.name == verb))
    assert cluster.each(verb, verb) == 1
    states = ("cancelled", "timeout", "oom", "suspended", "node_fail")
    cluster.wait_for(lambda jobs: any(one.state in states for one in jobs if one.name == verb))
    (row,) = queue(cluster, folder, number)
    same_row(row, real_queue(job, nth)[0])
    same_accounts(
        say(cluster, ACCOUNT.format(number), folder).out, recorded(SLURM, ACCOUNT.format(job), nth).out
    )
    say(cluster, f"scancel {number}", folder)


def test_held_and_dependent_jobs_are_shown_as_recorded(cluster: FakeCluster, folder: Path) -> None:
    held = submit(cluster, folder, "-H ok.sh")
    waits = submit(cluster, folder, f"-d afterok:{held} ok.sh")
    same_row(queue(cluster, folder, held)[0], real_queue(11)[0])
    same_row(queue(cluster, folder, waits)[0], real_queue(13)[0])
    same_accounts(say(cluster, ACCOUNT.format(held), folder).out, recorded(SLURM, ACCOUNT.format(11)).out)
    assert say(cluster, f"scancel {held}", folder).code == 0
    same_row(queue(cluster, folder, held)[0], real_queue(11, 1)[0])
    same_accounts(say(cluster, ACCOUNT.format(held), folder).out, recorded(SLURM, ACCOUNT.format(11), 1).out)
    same_row(queue(cluster, folder, waits)[0], real_queue(13, 1)[0])
    assert say(cluster, f"scancel {held} {waits}", folder).out == ""


def test_an_array_is_one_line_for_what_waits_and_one_for_each_other(
    cluster: FakeCluster, folder: Path
) -> None:
    number = submit(cluster, folder, "--array=0-4%2 --wrap 'sleep 100'")
    cluster.wait_for(lambda jobs: sum(bool(one.pid) for one in jobs if one.job == int(number)) == 2)
    mine = sorted(queue(cluster, folder, number))
    real = sorted(real_queue(24))
    assert [row[2:6] for row in mine] == [row[2:6] for row in real]
    table, printed = say(cluster, f"squeue -r -j {number}", folder), recorded(SLURM, "squeue -r -j 24")
    assert sorted(line.split()[4:] for line in table.out.replace("0:00", "0:02").splitlines()[4:]) == sorted(
        [*line.split()[4:7], "node1"] for line in printed.out.splitlines()[4:]
    )
    assert table.out.splitlines()[0] == printed.out.splitlines()[0]
    say(cluster, f"scancel {number}_4", folder)
    left = say(cluster, f"scontrol show job {number}_4", folder)
    assert (left.code, left.out) == (1, f"Job {number}_4 not found\n")
    assert f"{number}_4" not in say(cluster, f"sacct -n -P -X -j {number} -o JobID", folder).out
    say(cluster, f"scancel {number}", folder)
    cluster.wait_for(lambda jobs: all(one.ended for one in jobs if one.job == int(number)))
    assert say(cluster, f"sacct -X -n -P -j {number} -o JobID,State", folder).out.splitlines() == [
        f"{number}_0|CANCELLED by 0",
        f"{number}_1|CANCELLED by 0",
        f"{number}_[2-3]|CANCELLED by 0",
    ]


def test_a_requeued_job_has_a_row_for_each_run(cluster: FakeCluster, folder: Path) -> None:
    number = submit(cluster, folder, "-J again --wrap 'sleep 100'")
    cluster.wait_for(lambda jobs: any(one.pid for one in jobs if one.name == "again"))
    assert say(cluster, f"scontrol requeue {number}", folder).code == 0
    cluster.wait_for(lambda jobs: any(one.starts == 2 and one.pid for one in jobs if one.name == "again"))
    command = f"{ACCOUNT.format(28)} -D"
    same_accounts(say(cluster, f"{ACCOUNT.format(number)} -D", folder).out, recorded(SLURM, command).out)
    assert "Restarts=1" in say(cluster, f"scontrol show job {number}", folder).out
    say(cluster, f"scancel {number}", folder)


def test_without_accounting_and_without_a_controller_the_words_are_those_recorded(
    tmp_path: Path,
) -> None:
    with FakeCluster("slurm", tmp_path / "c", accounting=False) as cluster:
        alike(say(cluster, "sacct -j 1", tmp_path), recorded(SLURM, "sacct -j 1"))
        cluster.down()
        for command, nth in (
            ("squeue -h -j 14", 0),
            ("scancel 14", 1),
            ("sbatch ok.sh", 1),
            ("scontrol ping", 0),
        ):
            mine, real = say(cluster, command, tmp_path), recorded(SLURM, command, nth)
            assert (mine.code, mine.err) == (real.code, real.err)
        cluster.up()
        assert say(cluster, "squeue -h", tmp_path).code == 0


def test_a_time_format_is_obeyed(cluster: FakeCluster, folder: Path) -> None:
    number = submit(cluster, folder, "--wrap true")
    said = say(cluster, f"SLURM_TIME_FORMAT=%s sacct -X -n -P -j {number} -o Submit", folder)
    assert abs(int(said.out) - cluster.now()) < 60


def test_the_largest_array_is_told_and_held_to(cluster: FakeCluster, folder: Path) -> None:
    assert "MaxArraySize            = 1001" in say(cluster, "scontrol show config", folder).out
    assert say(cluster, "sbatch --array=1-1001 --wrap true", folder).code == 1

"""Fake schedulers run jobs for real, many of them, beside each other, and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_world import say

from treadle.base.errors import SchedulerError
from treadle.base.groups import process_gone, start_time
from treadle.testing.pytest_plugin import fake_cluster
from treadle.testing.schedulers import FakeCluster
from waiting import until

__all__ = ["fake_cluster"]
Start = Callable[..., FakeCluster]


@pytest.mark.parametrize(
    ("kind", "command", "variable"),
    [
        ("slurm", "sbatch --array=1-3 -o out.%a job.sh", "SLURM_ARRAY_TASK_ID"),
        ("pbs", "qsub -V -J 1-3 -j oe -o out.^array_index^ job.sh", "PBS_ARRAY_INDEX"),
        ("torque", "qsub -V -t 1-3 -j oe -o out job.sh", "PBS_ARRAYID"),
        ("sge", "qsub -V -cwd -t 1-3 -j y -o 'out.$TASK_ID' job.sh", "SGE_TASK_ID"),
        ("lsf", "bsub -J 'a[1-3]' -o out.%I sh job.sh", "LSB_JOBINDEX"),
    ],
)
def test_elements_run_with_their_index_environment_and_output(
    fake_cluster: Start, tmp_path: Path, kind: str, command: str, variable: str
) -> None:
    cluster = fake_cluster(kind)
    (tmp_path / "job.sh").write_text(f"#!/bin/sh\necho $COLOUR ${variable}\necho err >&2\n")
    assert say(cluster, f"COLOUR=blue {command}", tmp_path).code == 0
    assert {one.state for one in cluster.wait()} == {"completed"}
    for index in (1, 2, 3):
        (out,) = [one for one in tmp_path.glob("out*") if one.name.endswith(str(index))]
        assert sorted(out.read_text().split()) == sorted(["blue", str(index), "err"])


def test_a_script_is_kept_as_it_was_submitted(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm")
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho first\n")
    say(cluster, "sbatch -H -o out job.sh", tmp_path)
    script.write_text("#!/bin/sh\necho second\n")
    cluster.each("release")
    cluster.wait()
    assert (tmp_path / "out").read_text() == "first\n"


def test_no_more_run_at_once_than_there_are_slots_and_the_throttle_allows(
    fake_cluster: Start, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm", slots=3)
    say(cluster, "sbatch --array=1-6%2 -o /dev/null --wrap 'sleep 0.1'", tmp_path)
    say(cluster, "sbatch -c 2 -o /dev/null --wrap 'sleep 0.1'", tmp_path)
    jobs = cluster.wait()
    moments = sorted(moment for one in jobs for moment in (one.started, one.ended))

    def at(moment: float, number: int | None = None) -> int:
        return sum(
            one.cpus for one in jobs if one.started <= moment < one.ended and number in (None, one.job)
        )

    assert max(at(moment) for moment in moments) <= 3
    assert max(at(moment, 1) for moment in moments) == 2


def test_an_array_of_ten_thousand_goes_in_by_one_call_and_out_by_one(
    fake_cluster: Start, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm", slots=10_000, max_array_size=10_001, speed=0)
    cluster.script("simulate", seconds=60)
    begin = time.monotonic()
    assert say(cluster, "sbatch --array=1-10000 --wrap true", tmp_path).code == 0
    cluster.wait_for(lambda jobs: all(one.started for one in jobs))
    lines = say(cluster, "squeue -h -r -t all -o '%i|%T|%r|%N|%j'", tmp_path).out.splitlines()
    assert len(lines) == 10_000
    assert {line.split("|")[1] for line in lines} == {"RUNNING"}
    cluster.advance(61)
    assert {one.state for one in cluster.jobs()} == {"completed"}
    assert cluster.calls() == {"sbatch": 1, "squeue": 1}
    assert time.monotonic() - begin < 20


def test_ten_thousand_jobs_are_simulated_in_turn_at_linear_cost(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", slots=50, max_array_size=10_001, speed=1000)
    cluster.script("simulate", seconds=1, code=0)
    begin = time.monotonic()
    say(cluster, "sbatch --array=1-10000 --wrap true", tmp_path)
    cluster.wait_for(lambda jobs: all(one.ended for one in jobs))
    assert time.monotonic() - begin < 30


def test_a_simulated_job_calls_the_function_that_stands_for_it(fake_cluster: Start, tmp_path: Path) -> None:
    (tmp_path / "stands_for_jobs.py").write_text(
        "import pathlib\n"
        "def act(job):\n"
        "    pathlib.Path(job['workdir'], job['name'] + str(job['index'])).write_text(job['script'])\n"
    )
    cluster = fake_cluster("slurm", simulator="stands_for_jobs:act", path=(str(tmp_path),))
    cluster.script("simulate", name="sim")
    say(cluster, "sbatch -J sim --array=1-2 --wrap 'exit 1'", tmp_path)
    say(cluster, "sbatch -J real -o /dev/null --wrap 'exit 1'", tmp_path)
    assert [one.state for one in cluster.wait()] == ["completed", "completed", "failed"]
    assert "exit 1" in (tmp_path / "sim2").read_text()


def test_a_command_imports_nothing_that_is_slow(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm")
    code = f"import sys; sys.argv[1:] = ['{cluster.folder}', 'squeue', '-h']; sys.path.pop(0)\n"
    client = Path(sys.modules["treadle.testing.schedulers.client"].__file__ or "")
    code += f"exec(open('{client}').read().partition('if __name__')[0])\n"
    code += "main(sys.argv[1], sys.argv[2], sys.argv[3:]); print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"socket", "json", "re", "subprocess", "site", "enum", "selectors", "typing"}
    assert not heavy & set(done.stdout.split())


def test_two_clusters_do_not_know_each_other(fake_cluster: Start, tmp_path: Path) -> None:
    one, other = fake_cluster("slurm"), fake_cluster("slurm", slots=1)
    say(one, "sbatch -J here -o /dev/null --wrap true", tmp_path)
    say(other, "sbatch -J there -o /dev/null --wrap true", tmp_path)
    assert [job.name for job in one.wait()] == ["here"]
    assert [job.name for job in other.wait()] == ["there"]
    assert other.calls() == {"sbatch": 1}


def test_a_cluster_in_a_folder_with_a_long_and_odd_name(tmp_path: Path) -> None:
    folder = tmp_path / ("very long " * 10) / "it's $HOME"
    with FakeCluster("slurm", folder) as cluster:
        assert say(cluster, "sbatch --parsable -o /dev/null --wrap true", tmp_path).out == "1\n"
        assert [one.state for one in cluster.wait()] == ["completed"]


def test_nothing_is_left_when_a_cluster_ends_not_even_what_left_its_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = f"setsid sh -c 'echo $$ >> {pids}; exec sleep 300' & echo $$ >> {pids}; trap '' TERM; sleep 300"
    with FakeCluster("slurm", tmp_path / "c") as cluster:
        say(cluster, "sbatch -o /dev/null", tmp_path, stdin=f"#!/bin/sh\n{text}\n")
        until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        alive = [(int(pid), start_time(int(pid))) for pid in pids.read_text().split()]
    until(lambda: all(process_gone(pid, started) for pid, started in alive))
    said = say(cluster, "squeue", tmp_path)
    assert said.code == 1
    assert "is not running" in said.err


def test_a_cancelled_job_ends_with_all_its_processes_also_if_it_ignores_it(
    fake_cluster: Start, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm", kill_wait=0.2)
    pids = tmp_path / "pids"
    text = f"trap '' TERM; sleep 300 & echo $! $$ > {pids}; wait; sleep 300"
    say(cluster, "sbatch -o /dev/null", tmp_path, stdin=f"#!/bin/sh\n{text}\n")
    until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    alive = [(int(pid), start_time(int(pid))) for pid in pids.read_text().split()]
    say(cluster, "scancel 1", tmp_path)
    assert say(cluster, "squeue -h -o %T", tmp_path).out in ("COMPLETING\n", "")
    assert [one.state for one in cluster.wait()] == ["cancelled"]
    until(lambda: all(process_gone(pid, started) for pid, started in alive))


def test_a_cluster_ends_with_its_owner_and_its_jobs_too(tmp_path: Path) -> None:
    code = f"""
        import os, signal, subprocess
        from treadle.testing.schedulers import FakeCluster
        cluster = FakeCluster("slurm", {str(tmp_path / "c")!r})
        cluster.start()
        subprocess.run(["sbatch", "-o", "/dev/null", "--wrap", "sleep 300"], env=cluster.env, check=True)
        jobs = cluster.wait_for(lambda jobs: jobs[0].pid > 0)
        print(cluster._child.pid, jobs[0].pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    pids = [int(word) for word in done.stdout.splitlines()[-1].split()]
    until(lambda: all(process_gone(pid, 0) for pid in pids))


def test_a_cluster_ends_when_its_folder_is_removed(tmp_path: Path) -> None:
    cluster = FakeCluster("slurm", tmp_path / "c")
    cluster.start()
    say(cluster, "sbatch -o /dev/null --wrap 'sleep 300'", tmp_path)
    (job,) = cluster.wait_for(lambda jobs: jobs[0].pid > 0)
    started = start_time(job.pid)
    shutil.rmtree(cluster.folder)
    until(lambda: process_gone(job.pid, started))
    until(lambda: process_gone(cluster._child.pid, 0) if cluster._child else True)
    with pytest.raises(SchedulerError):
        cluster.jobs()
    cluster.close()


def test_a_folder_that_has_a_cluster_takes_no_other(tmp_path: Path) -> None:
    with FakeCluster("slurm", tmp_path / "c"), pytest.raises(SchedulerError, match="another folder"):
        FakeCluster("slurm", tmp_path / "c").start()


def test_what_was_submitted_is_told(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm")
    say(cluster, "sbatch -J a -c 2 --mem=1G -t 10 --comment 'run 1' -o /dev/null --wrap 'exit 4'", tmp_path)
    (job,) = cluster.wait()
    assert (job.job, job.index, job.name, job.state) == (1, 0, "a", "failed")
    assert (job.cpus, job.memory, job.limit, job.comment) == (2, 1 << 30, 600, "run 1")
    assert (job.exit_code, job.starts, job.node) == (4, 1, "node1")
    assert job.submitted <= job.started <= job.ended
    ((_, program, arguments),) = cluster.log()
    assert (program, arguments[:2]) == ("sbatch", ["-J", "a"])


def test_commands_stand_in_a_folder_for_path(fake_cluster: Start) -> None:
    cluster = fake_cluster("sge")
    assert shutil.which("qsub", path=cluster.env["PATH"]) == os.path.join(cluster.bin, "qsub")


def test_grid_engine_reads_its_orders_from_anywhere_in_a_script(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("sge")
    text = "#!/bin/sh\n#$ -j y -o /dev/null\ncat <<'end'\n#$ -N odd\nend\n"
    say(cluster, "qsub", tmp_path, stdin=text)
    assert [one.name for one in cluster.wait()] == ["odd"]


def test_an_order_behind_the_first_command_is_none_for_slurm(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm")
    text = "#!/bin/sh\n#SBATCH -J first -o /dev/null\n\n# note\ntrue\n#SBATCH -J second\n"
    say(cluster, "sbatch", tmp_path, stdin=text)
    assert [one.name for one in cluster.wait()] == ["first"]

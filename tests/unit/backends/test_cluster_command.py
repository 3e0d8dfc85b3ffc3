"""Commands of schedulers: their time limit, their environment, and the loop that they never hold up."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

import pytest

from treadle.backends.cluster.command import Commands, Outage, clean, outage_limit
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import SchedulerError
from treadle.base.proc import answer_of


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def commands(tmp_path):
    made = []

    def make(**changes) -> Commands:
        settings = ClusterSettings(backend="slurm", bin_dir=str(tmp_path), **changes)
        made.append(Commands(dialect_of(settings), settings, str(tmp_path)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_command_is_looked_for_in_bin_dir_first(commands, tmp_path):
    program(tmp_path, "squeue", "echo mine; echo bad >&2; exit 3")
    said = commands().run(["squeue"])
    assert (said.code, said.out, said.err) == (3, "mine\n", "bad\n")


def test_a_hanging_command_is_ended_with_all_that_it_started(commands, tmp_path):
    program(tmp_path, "squeue", "sleep 300 & echo $! > pid; wait")
    began = time.monotonic()
    said = commands(command_timeout=0.3).run(["squeue"])
    assert said.code is None
    assert time.monotonic() - began < 20
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.01)


def test_what_left_the_group_and_holds_the_pipes_does_not_hold_us(tmp_path):
    began = time.monotonic()
    answer = answer_of(
        ["sh", "-c", "setsid sleep 20 & sleep 20"], env=dict(os.environ), cwd=str(tmp_path), timeout=0.2
    )
    assert answer[0] is None
    assert time.monotonic() - began < 15


def test_a_missing_command_is_named_with_the_way_out(commands):
    with pytest.raises(SchedulerError) as caught:
        commands().run(["no-such-squeue"])
    assert "no-such-squeue" in str(caught.value)
    assert "bin_dir" in str(caught.value)


def test_the_loop_is_woken_when_a_command_has_answered(commands, tmp_path):
    program(tmp_path, "squeue", "echo here")
    runner, got = commands(), []
    runner.begin(lambda: runner.run(["squeue"]), got.append)
    assert got == []
    assert select.select([runner.reader], [], [], 30)[0]
    runner.hand_back()
    assert got[0].out == "here\n"
    assert not select.select([runner.reader], [], [], 0)[0]


def test_one_that_hangs_does_not_hold_up_another(commands, tmp_path):
    program(tmp_path, "squeue", "sleep 60")
    program(tmp_path, "sbatch", "echo 1")
    runner, got = commands(), []
    runner.begin(lambda: runner.run(["squeue"]), got.append)
    runner.begin(lambda: runner.run(["sbatch"]), got.append)
    select.select([runner.reader], [], [], 30)
    runner.hand_back()
    assert [said.out for said in got] == ["1\n"]


def test_closing_ends_what_still_runs(commands, tmp_path):
    program(tmp_path, "squeue", "echo $$ > pid; exec sleep 300")
    runner = commands()
    runner.begin(lambda: runner.run(["squeue"]), lambda said: None)
    deadline = time.monotonic() + 30
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    runner.close()
    pid = (tmp_path / "pid").read_text().strip()
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.01)


def test_a_driver_inside_an_allocation_does_not_leak_it():
    dialect = dialect_of(ClusterSettings(backend="slurm"))
    base = {
        "SLURM_JOB_ID": "7",
        "SBATCH_PARTITION": "x",
        "SLURM_CONF": "/etc/s",
        "PATH": "/bin",
        "HOME": "/h",
    }
    env = clean(base, dialect, "/opt/bin")
    assert "SLURM_JOB_ID" not in env
    assert "SBATCH_PARTITION" not in env
    assert env["SLURM_CONF"] == "/etc/s"
    assert env["PATH"] == "/opt/bin:/bin"
    assert env["SLURM_TIME_FORMAT"] == "%s"


@pytest.mark.parametrize(
    ("backend", "leak"), [("pbs", "PBS_JOBID"), ("sge", "SGE_TASK_ID"), ("lsf", "LSB_JOBID")]
)
def test_no_scheduler_leaks(backend, leak):
    assert leak not in clean({leak: "1"}, dialect_of(ClusterSettings(backend=backend)), "")


def test_the_pauses_of_an_outage_grow_and_it_ends_with_an_answer():
    outage = Outage()
    pauses = []
    for now in range(10):
        outage.failed(float(now), "down")
        pauses.append(outage.pause)
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert max(pauses) == 60.0
    assert outage.over(100.0, 99.0)
    assert not outage.over(100.0, 101.0)
    outage.told = True
    assert outage.answered(10.0) == 10.0
    assert not outage.over(1e9, 0.0)


def test_an_outage_is_waited_for_as_long_as_the_longest_job_may_take():
    settings = ClusterSettings(backend="slurm")
    assert outage_limit(settings, 3600) == 3600.0
    assert outage_limit(settings, None) == 24 * 3600.0
    assert outage_limit(ClusterSettings(backend="slurm", outage_limit=5.0), 3600) == 5.0

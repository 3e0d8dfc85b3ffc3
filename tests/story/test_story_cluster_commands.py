"""A workflow on a scheduler as a person meets it: profiles, status, logs, cancel, where the driver lives."""

from __future__ import annotations

import json
import signal
import stat
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from treadle.testing.schedulers import FakeCluster
from treadle.testing.schedulers.mischief import Do
from waiting import PATIENCE, until

FLOW = """
[[sample_groups]]
name = "cohort"
samples = ["S1", "S2"]

[[rules]]
name = "align"
output = ["{sample}.bam"]
shell = "echo aligning {sample}; sleep {config.pause}; echo {sample} > {output}"
resources = { threads = 2, memory = "2G", time_limit = "1h" }

[[rules]]
name = "report"
input = ["{sample}.bam"]
output = ["report.txt"]
shell = "cat {input} > {output}"
localrule = true

[config]
pause = 0
"""


@pytest.fixture
def cluster(folder: Any) -> Iterator[Callable[..., FakeCluster]]:
    """Start a fake scheduler; the profile `lab` of the folder means it."""
    started: list[FakeCluster] = []

    def start(kind: str = "slurm", **settings: Any) -> FakeCluster:
        fake = FakeCluster(kind, folder / "fake", **settings)
        fake.start()
        started.append(fake)
        backend = "pbs" if kind == "torque" else kind
        dialect = 'dialect = "torque"\n' if kind == "torque" else ""
        folder.write(
            "profiles/lab.toml",
            f'[cluster]\nbackend = "{backend}"\nbin_dir = "{fake.bin}"\n{dialect}poll_interval = "0.2s"\n'
            'latency_wait = "2s"\n',
        )
        folder.flow(FLOW)
        return fake

    yield start
    for fake in started:
        fake.close()


def running(fake: FakeCluster) -> bool:
    return any(job.state == "running" for job in fake.jobs())


@pytest.mark.parametrize("kind", ["slurm", "pbs", "torque", "sge", "lsf"])
def test_rules_run_on_the_scheduler_and_local_ones_here(folder, cluster, kind):
    fake = cluster(kind)
    assert folder.run_as_previewed("--profile", "lab") == {"align/sample=S1", "align/sample=S2", "report"}
    assert folder.read("report.txt") == "S1\nS2\n"
    assert len(fake.jobs()) == 2
    backends = {one["task"]: one["backend"] for one in folder.events() if "backend" in one}
    assert backends["align/sample=S1"] != "local"
    assert backends["report"] == "local"
    assert folder.treadle("logs", "align/sample=S2").stdout == "aligning S2\n"
    assert not folder.will_run()  # here the records say the same


def test_settings_for_one_run_stand_above_the_profile(folder, cluster):
    fake = cluster()
    folder.treadle("run", "--profile", "lab", "--set", "align.threads=3", "--set", "al*.memory=1G", "-y")
    assert {(job.cpus, job.memory) for job in fake.jobs()} == {(3, 1024**3)}


def test_the_preview_of_a_submission_is_what_is_sent(folder, cluster):
    cluster()
    shown = json.loads(folder.treadle("plan", "--profile", "lab", "--show", "submit", "--json").stdout)
    folder.treadle("run", "--profile", "lab")
    run = folder.runs()[-1]
    (sent,) = (folder / ".treadle" / "runs" / run / "jobs").glob("*/job.sh")
    (one,) = shown["submissions"]
    name = next(line for line in one["script"].splitlines() if "--job-name" in line)
    real = next(line for line in sent.read_text().splitlines() if "--job-name" in line)
    assert one["script"].replace(shown["run"], run).replace(name, real) == sent.read_text()
    assert one["argv"][-1].replace(shown["run"], run) == str(sent)
    assert shown["here"] == ["report"]


def test_status_tells_why_jobs_wait(folder, cluster):
    fake = cluster(slots=2)
    driver = folder.start("run", "--profile", "lab", "--config", "pause=30")
    fake.wait_for(lambda jobs: {job.state for job in jobs} == {"running", "pending"}, PATIENCE)
    until(lambda: "in the queue (Resources)" in folder.treadle("status").stdout)
    status = json.loads(folder.treadle("status", "--json").stdout)
    assert [one["reason"] for one in status["waiting"]] == ["Resources"]
    assert len(status["running"]) == 1
    folder.treadle("cancel")
    assert driver.wait(PATIENCE) == 143


def test_logs_show_what_the_scheduler_said_where_a_command_wrote_nothing(folder, cluster):
    fake = cluster(kill_wait=0.5)
    folder.flow("[[rules]]\nname = 'slow'\noutput = ['s']\nshell = 'sleep 60; touch s'\n")
    fake.script(Do.TIMEOUT, after=0.3)
    assert "reached its time limit" in folder.treadle("run", "--profile", "lab", exits=1).stderr
    assert "DUE TO TIME LIMIT" in folder.treadle("logs", "slow").stdout


def test_a_refusal_is_told_in_the_schedulers_words(folder, cluster):
    fake = cluster()
    fake.script(Do.REFUSE, words="sbatch: error: invalid partition", code=1)
    assert "invalid partition" in folder.treadle("run", "--profile", "lab", exits=1).stderr


@pytest.mark.parametrize("kind", ["slurm", "lsf"])
def test_cancel_works_when_the_driver_is_gone(folder, cluster, kind):
    fake = cluster(kind)
    driver = folder.start("run", "--profile", "lab", "--config", "pause=60")
    fake.wait_for(lambda jobs: len(jobs) == 2 and all(job.state == "running" for job in jobs), PATIENCE)
    driver.send_signal(signal.SIGKILL)
    driver.wait(PATIENCE)
    assert "2 jobs of run" in folder.treadle("cancel").stderr
    assert not running(fake)
    assert "nothing of run" in folder.treadle("cancel").stderr


def test_a_run_in_the_background_goes_on_by_itself(folder, cluster):
    fake = cluster()
    said = folder.treadle("run", "--profile", "lab", "--detach").stderr
    assert "goes on in the background" in said
    run = folder.runs()[-1]
    until(lambda: folder.events(run)[-1]["event"] == "run_ended")
    assert folder.read("report.txt") == "S1\nS2\n"
    assert len(fake.jobs()) == 2
    until(lambda: "3 done" in folder.read(f".treadle/runs/{run}/driver.log"))


def test_a_run_in_the_background_tells_at_once_what_is_wrong(folder, cluster):
    cluster()
    folder.flow("[[rules]]\nname = 'a'\noutput = ['a']\nshell = 'touch a'\ninput = ['not-there']\n")
    said = folder.treadle("run", "--detach", exits=2)
    assert "not-there" in said.stderr
    assert not folder.runs()


def test_with_nothing_to_do_nothing_goes_into_the_background(folder, cluster):
    cluster()
    folder.treadle("run", "--profile", "lab")
    assert "nothing to do" in folder.treadle("run", "--profile", "lab", "--detach").stderr


def test_the_driver_may_be_a_job(folder, cluster):
    fake = cluster()
    said = folder.treadle("run", "--profile", "lab", "--as-job").stderr
    assert "driven by job" in said
    fake.wait_for(lambda jobs: len(jobs) == 3 and all(job.state == "completed" for job in jobs), PATIENCE)
    assert folder.read("report.txt") == "S1\nS2\n"


def test_a_driver_that_is_a_job_hands_in_the_next_one_before_its_limit(folder, cluster):
    fake = cluster()
    profile = folder.read("profiles/lab.toml")
    folder.write("profiles/lab.toml", profile + 'walltime = "8s"\n')
    folder.treadle("run", "--profile", "lab", "--as-job", "--config", "pause=9")
    fake.wait_for(lambda jobs: len(jobs) >= 4 and all(job.state == "completed" for job in jobs), PATIENCE)
    until(lambda: (folder / "report.txt").exists())
    names = [job.name.partition(".")[2] for job in fake.jobs()]
    assert names.count("align") == 2  # taken over, and not submitted again
    assert names.count("treadle_driver") >= 2


def test_a_driver_that_waits_in_the_queue_is_told_and_cancelled(folder, cluster):
    fake = cluster()
    fake.script("hold", name="*treadle_driver")
    folder.treadle("run", "--profile", "lab", "--as-job")
    assert "is to be driven by job 1 on slurm" in folder.treadle("status").stdout
    told = json.loads(folder.treadle("status", "--json").stdout)
    assert (told["run"], told["driver"]) == ("", {"job": "1", "backend": "slurm"})
    assert "1 driver cancelled, before any run began" in folder.treadle("cancel").stderr
    assert [job.state for job in fake.jobs()] == ["cancelled"]
    assert "no run is recorded" in folder.treadle("status", exits=2).stderr
    folder.treadle("run", "--profile", "lab")
    assert "driven" not in folder.treadle("status").stdout


def test_cancel_ends_a_driver_that_is_a_job_and_all_that_it_has_at_work(folder, cluster):
    fake = cluster(kill_wait=30, slots=8)
    folder.treadle("run", "--profile", "lab", "--as-job", "--config", "pause=60")
    fake.wait_for(lambda jobs: [job.state for job in jobs].count("running") == 3, PATIENCE)
    until(lambda: "running align" in folder.treadle("status").stdout)
    assert "ending 1 driver that is a job" in folder.treadle("cancel").stderr
    assert not running(fake)
    ended = folder.treadle("status").stdout
    assert "terminated" in ended
    assert "driven" not in ended


def test_a_driver_on_another_host_is_dead_once_its_job_was_cancelled(folder, cluster):
    """Grid Engine kills at once, so it writes no end."""
    fake = cluster("sge", slots=8)
    folder.treadle("run", "--profile", "lab", "--as-job", "--config", "pause=60")
    fake.wait_for(lambda jobs: [job.state for job in jobs].count("running") == 3, PATIENCE)
    until(lambda: "running align" in folder.treadle("status").stdout)
    owner = f".treadle/runs/{folder.runs()[-1]}/owner"
    told = json.loads(folder.read(owner))
    folder.write(owner, json.dumps({**told, "host": "elsewhere"}))
    folder.treadle("cancel")
    assert not running(fake)


def test_a_driver_that_can_never_start_is_refused_with_what_it_asks_for(folder, cluster):
    fake = cluster(max_time=3600)
    said = folder.treadle("run", "--profile", "lab", "--as-job", exits=3).stderr
    assert "slurm does not take the driver: it can never start: PartitionTimeLimit" in said
    assert "it asks for one CPU, 2G and 1-00:00:00, by the profile's 'walltime'" in said
    fake.wait_for(lambda jobs: [job.state for job in jobs] == ["cancelled"], PATIENCE)
    assert "no run is recorded" in folder.treadle("status", exits=2).stderr


def test_jobs_that_were_left_are_told_and_taken_over(folder, cluster):
    fake = cluster()
    driver = folder.start("run", "--profile", "lab", "--config", "pause=3", "--on-interrupt", "detach")
    fake.wait_for(lambda jobs: len(jobs) == 2 and all(job.state == "running" for job in jobs), PATIENCE)
    until(lambda: "running align" in folder.treadle("status").stdout)
    driver.send_signal(signal.SIGTERM)
    _, said = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 143
    assert "2 jobs left at work" in said
    assert "left 2 jobs at work; treadle run takes them over" in folder.treadle("status").stdout
    again = folder.treadle("run", "--profile", "lab", "--config", "pause=3").stderr
    assert "left jobs at work" in again
    assert "2 tasks are at work: their jobs are taken over" in again
    assert "was killed" not in again
    assert len(fake.jobs()) == 2
    assert folder.read("report.txt") == "S1\nS2\n"


def test_a_driver_that_is_a_job_asks_for_no_more_than_its_partition_has(folder, cluster):
    fake = cluster(max_time=7200)
    profile = folder.read("profiles/lab.toml")
    folder.write("profiles/lab.toml", profile + '\n[partitions.short]\ntime_limit = "2h"\n')
    folder.treadle("run", "--profile", "lab", "--as-job")
    fake.wait_for(lambda jobs: len(jobs) == 3 and all(job.state == "completed" for job in jobs), PATIENCE)


def test_a_driver_needs_a_scheduler_to_be_a_job(folder, cluster):
    cluster()
    assert "--as-job needs a scheduler" in folder.treadle("run", "--as-job", exits=2).stderr
    both = folder.treadle("run", "--profile", "lab", "--as-job", "--detach", exits=2).stderr
    assert "choose one of them" in both


def login_node(folder: Any) -> dict[str, str]:
    """The environment of a machine with a scheduler's commands."""
    command = folder.write("bin/sbatch", "#!/bin/sh\nexit 1\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    env = folder.env()
    names = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
    return {
        **{key: value for key, value in env.items() if key not in names},
        "PATH": f"{folder / 'bin'}:{env['PATH']}",
    }


MANY = """
[[values]]
name = "n"
values = [{}]
[[rules]]
name = "one"
output = ["{{n}}"]
shell = "touch {{n}}"
"""


def test_a_large_local_run_on_a_login_node_is_said(folder):
    folder.flow(MANY.format(", ".join(f'"f{number}"' for number in range(60))))
    said = folder.treadle("run", env=login_node(folder)).stderr
    assert "submits to a scheduler (slurm), and 60 tasks would run here" in said


def test_a_small_one_is_not_and_neither_is_one_that_was_asked_for(folder):
    folder.flow(MANY.format('"f1"'))
    assert "submits to" not in folder.treadle("run", env=login_node(folder)).stderr
    folder.flow(MANY.format(", ".join(f'"f{number}"' for number in range(60))))
    said = folder.treadle("run", "--backend", "local", env=login_node(folder)).stderr
    assert "submits to" not in said


PIPELINE = """
from treadle import ResourceConfig, StepSpec


def make(out):
    return 7


def boom(out):
    raise ValueError("no")


one = StepSpec(name="one", fn=make, resources=ResourceConfig(cpu=2))
bad = StepSpec(name="bad", fn=boom, resources=ResourceConfig(cpu=1))
steps = [one, StepSpec(name="two", fn=make, deps=[one]), bad]
"""


@pytest.mark.parametrize("kind", ["slurm", "sge"])
def test_steps_with_resources_go_to_the_scheduler(folder, cluster, kind):
    fake = cluster(kind)
    folder.write("pipe.py", PIPELINE)
    told = folder.treadle("run", "pipe.py", "--profile", "lab", exits=1).stderr
    assert "ValueError: no" in told
    assert sorted(job.cpus for job in fake.jobs()) == [1, 2]
    assert "2 cached" in folder.treadle("run", "pipe.py", "--profile", "lab", exits=1).stderr

"""Fake schedulers misbehave as they are told, once where they are told so, and behave again after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_world import say

from treadle.testing.pytest_plugin import fake_cluster
from treadle.testing.schedulers import FakeCluster

__all__ = ["fake_cluster"]
Start = Callable[..., FakeCluster]
KINDS = ("slurm", "pbs", "torque", "sge", "lsf")


def submit(cluster: FakeCluster, cwd: Path, name: str = "job", text: str = "true", more: str = "") -> str:
    """Submit a small script; what it printed, whatever that is."""
    kind = cluster.site.kind
    if kind == "slurm":
        command = f"sbatch --parsable -o /dev/null -J {name} {more}"
    elif kind == "sge":
        command = f"qsub -terse -j y -o /dev/null -N {name} {more}"
    elif kind == "lsf":
        command = f"bsub -o /dev/null -J {name} {more}"
    else:
        command = f"qsub -j oe -o /dev/null -N {name} {more}"
    return say(cluster, command, cwd, stdin=f"#!/bin/sh\n{text}\n").out


def state(cluster: FakeCluster, name: str = "job") -> str:
    return next(one.state for one in cluster.jobs() if one.name == name)


def squeue(cluster: FakeCluster, cwd: Path, columns: str = "%T|%r") -> list[str]:
    return say(cluster, f"squeue -h -t all -r -o '{columns}'", cwd).out.splitlines()


def sacct(cluster: FakeCluster, cwd: Path, job: str = "1", columns: str = "State,ExitCode,End") -> list[str]:
    return say(cluster, f"sacct -X -n -P -j {job} -o {columns}", cwd).out.splitlines()


@pytest.fixture
def slurm(fake_cluster: Start) -> FakeCluster:
    return fake_cluster("slurm")


@pytest.mark.parametrize("kind", KINDS)
def test_a_submission_is_refused_in_the_words_that_are_given(
    fake_cluster: Start, tmp_path: Path, kind: str
) -> None:
    cluster = fake_cluster(kind)
    cluster.script("refuse", name="bad*", words="no such thing here")
    program = {"slurm": "sbatch", "lsf": "bsub"}.get(kind, "qsub")
    flag = "-N" if program == "qsub" else "-J"
    said = say(cluster, f"{program} {flag} bad1", tmp_path, stdin="#!/bin/sh\ntrue\n")
    assert said.code != 0
    assert said.out == ""
    assert "no such thing here" in said.err
    assert cluster.jobs() == []
    assert submit(cluster, tmp_path, "good") != ""


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_lost_though_the_job_was_taken(fake_cluster: Start, tmp_path: Path, kind: str) -> None:
    cluster = fake_cluster(kind)
    cluster.script("lose_answer", nth=1)
    assert submit(cluster, tmp_path) == ""
    assert submit(cluster, tmp_path) != ""
    assert [one.state for one in cluster.wait()] == ["completed", "completed"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_on_jobs_holds_until_one_has_ended(fake_cluster: Start, tmp_path: Path, kind: str) -> None:
    cluster = fake_cluster(kind, max_submitted=1)
    assert submit(cluster, tmp_path, text="sleep 0.2") != ""
    assert submit(cluster, tmp_path, "second") == ""
    cluster.wait()
    assert submit(cluster, tmp_path, "third") != ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_job_and_one_out_of_time_and_memory_have_ended_so(
    fake_cluster: Start, tmp_path: Path, kind: str
) -> None:
    cluster = fake_cluster(kind)
    for do in ("kill", "timeout", "oom"):
        cluster.script(do, name=f"j{do}")
        assert submit(cluster, tmp_path, f"j{do}", "sleep 100") != ""
    assert {one.name: one.state for one in cluster.wait()} == {
        "jkill": "signalled",
        "jtimeout": "timeout",
        "joom": "oom",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_requeued_job_runs_again_and_only_once_more(fake_cluster: Start, tmp_path: Path, kind: str) -> None:
    cluster = fake_cluster(kind)
    cluster.script("requeue", after=0.1)
    submit(cluster, tmp_path, text=f"echo run >> {tmp_path}/runs; sleep 0.3")
    (job,) = cluster.wait()
    assert (job.state, job.starts) == ("completed", 2)
    assert (tmp_path / "runs").read_text() == "run\nrun\n"


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_job_is_known_to_nobody(fake_cluster: Start, tmp_path: Path, kind: str) -> None:
    cluster = fake_cluster(kind)
    cluster.script("lose")
    job = submit(cluster, tmp_path, text=f"touch {tmp_path}/ran")
    assert job != ""
    shown = {
        "slurm": "squeue -h -t all; sacct -n -P -j 1",
        "sge": "qstat; qacct -j 1",
        "lsf": "bjobs -a; bacct -l 1",
    }.get(kind, "qstat -x -f; qstat -f 1")
    assert "job" not in say(cluster, shown, tmp_path).out
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_controller_that_is_down_answers_nothing_and_jobs_go_on(
    fake_cluster: Start, tmp_path: Path, kind: str
) -> None:
    cluster = fake_cluster(kind)
    submit(cluster, tmp_path)
    cluster.down()
    show = {"slurm": "squeue", "lsf": "bjobs"}.get(kind, "qstat")
    said = say(cluster, show, tmp_path)
    assert (said.code != 0, said.out) == (True, "")
    assert submit(cluster, tmp_path, "second") == ""
    assert [one.state for one in cluster.wait()] == ["completed"]
    cluster.up()
    assert say(cluster, show, tmp_path).code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_queue_shows_can_be_a_word_that_nobody_knows(
    fake_cluster: Start, tmp_path: Path, kind: str
) -> None:
    cluster = fake_cluster(kind)
    cluster.script("show", words="XYZZY")
    submit(cluster, tmp_path, text="sleep 100")
    cluster.wait_for(lambda jobs: jobs[0].pid > 0)
    show = {
        "slurm": "squeue -h -o %T",
        "sge": "qstat -xml",
        "lsf": "bjobs -noheader -o stat",
    }.get(kind, "qstat -f")
    cluster.advance(0)
    assert "XYZZY" in say(cluster, show, tmp_path).out


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_of_other_people_stand_there_with_odd_names(
    fake_cluster: Start, tmp_path: Path, kind: str
) -> None:
    cluster = fake_cluster(kind, others=4)
    show = {"slurm": "squeue -h -o '%j'", "sge": "qstat -u '*'", "lsf": "bjobs -u all -o job_name"}.get(
        kind, "qstat"
    )
    assert "a|b" in say(cluster, show, tmp_path).out
    submit(cluster, tmp_path)
    assert [one.state for one in cluster.wait() if one.user == cluster.site.user] == ["completed"]


def test_a_rule_hits_the_nth_or_the_first_few(slurm: FakeCluster, tmp_path: Path) -> None:
    slurm.script("refuse", name="a*", nth=2)
    slurm.script("limit", name="b*", times=1)
    taken = [submit(slurm, tmp_path, name) != "" for name in ("a1", "a2", "a3", "b1", "b2")]
    assert taken == [True, False, True, False, True]
    slurm.script("refuse")
    slurm.behave()
    assert submit(slurm, tmp_path) != ""


def test_a_rule_hits_one_element_of_an_array(slurm: FakeCluster, tmp_path: Path) -> None:
    slurm.script("kill", index=2)
    submit(slurm, tmp_path, text="sleep 0.3", more="--array=1-3")
    assert [one.state for one in slurm.wait()] == ["completed", "signalled", "completed"]


def test_banners_stand_before_the_id(slurm: FakeCluster, tmp_path: Path) -> None:
    slurm.script("banner", words="Welcome to this site\nMaintenance on Monday")
    assert submit(slurm, tmp_path) == "Welcome to this site\nMaintenance on Monday\n1\n"


def test_a_command_hangs_and_answers_then(slurm: FakeCluster, tmp_path: Path) -> None:
    slurm.script("hang", command="squeue", seconds=0.4, times=1)
    begin = time.monotonic()
    assert say(slurm, "squeue -h", tmp_path).code == 0
    assert time.monotonic() - begin >= 0.4
    assert say(slurm, "sinfo", tmp_path).code == 0


def test_a_command_says_what_it_is_told_and_does_nothing(slurm: FakeCluster, tmp_path: Path) -> None:
    slurm.script("say", command="squeue", words="not what you think", code=7)
    said = say(slurm, "squeue", tmp_path)
    assert (said.code, said.out) == (7, "not what you think\n")


def test_jobs_wait_for_their_time_by_the_cluster_s_clock(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", speed=0)
    cluster.script("delay", seconds=500)
    submit(cluster, tmp_path)
    assert squeue(cluster, tmp_path) == ["PENDING|Priority"]
    cluster.advance(499)
    assert state(cluster) == "pending"
    cluster.advance(2)
    cluster.wait()


@pytest.mark.parametrize(
    ("do", "words", "shown"),
    [
        ("pend", "PartitionTimeLimit", "PENDING|PartitionTimeLimit"),
        ("pend", "", "PENDING|DependencyNeverSatisfied"),
        ("hold", "", "PENDING|JobHeldUser"),
        ("error", "", "PENDING|JobHeldAdmin"),
    ],
)
def test_jobs_wait_for_the_reason_that_is_given(
    slurm: FakeCluster, tmp_path: Path, do: str, words: str, shown: str
) -> None:
    slurm.script(do, words=words)
    submit(slurm, tmp_path)
    assert squeue(slurm, tmp_path) == [shown]
    assert slurm.each("release") == 1
    slurm.wait()


def test_an_error_state_of_grid_engine_lasts_until_it_is_cleared(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("sge")
    cluster.script("error", words="cannot create log folder")
    submit(cluster, tmp_path)
    assert "<state>Eqw</state>" in say(cluster, "qstat -xml", tmp_path).out
    assert "cannot create log folder" in say(cluster, "qstat -j 1", tmp_path).out
    assert say(cluster, "qmod -cj 1", tmp_path).code == 1
    cluster.wait()


def test_a_suspended_job_goes_on(slurm: FakeCluster, tmp_path: Path) -> None:
    slurm.script("suspend", seconds=0.3)
    submit(slurm, tmp_path, text="sleep 0.1")
    slurm.wait_for(lambda jobs: jobs[0].state == "suspended")
    assert squeue(slurm, tmp_path) == ["SUSPENDED|None"]
    slurm.wait()
    assert state(slurm) == "completed"


@pytest.mark.parametrize(
    ("do", "again", "end"),
    [
        ("node_fail", "--requeue", "completed"),
        ("node_fail", "--no-requeue", "node_fail"),
        ("preempt", "--requeue", "completed"),
        ("preempt", "--no-requeue", "preempted"),
    ],
)
def test_jobs_come_back_after_a_lost_node_only_where_they_may(
    slurm: FakeCluster, tmp_path: Path, do: str, again: str, end: str
) -> None:
    slurm.script(do, after=0.1)
    submit(slurm, tmp_path, text="sleep 0.2", more=again)
    (job,) = slurm.wait()
    assert (job.state, job.starts) == (end, 2 if end == "completed" else 1)


def test_a_node_that_is_down_takes_no_jobs_and_an_excluded_one_neither(
    fake_cluster: Start, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm", nodes=2)
    cluster.node_down("node1")
    submit(cluster, tmp_path)
    submit(cluster, tmp_path, more="-x node2")
    cluster.wait_for(lambda jobs: jobs[0].ended > 0)
    assert [(one.node, one.state) for one in cluster.jobs()] == [("node2", "completed"), ("", "pending")]
    assert "down" in say(cluster, "sinfo -N", tmp_path).out
    cluster.node_up("node1")
    cluster.wait()


def test_a_job_that_vanishes_is_gone_from_queue_and_accounting(slurm: FakeCluster, tmp_path: Path) -> None:
    slurm.script("vanish")
    submit(slurm, tmp_path, text="sleep 100")
    slurm.wait()
    assert (squeue(slurm, tmp_path), sacct(slurm, tmp_path)) == ([], [])


def test_the_queue_forgets_after_its_time_or_at_once(slurm: FakeCluster, tmp_path: Path) -> None:
    slurm.script("forget", name="b")
    submit(slurm, tmp_path, "a")
    submit(slurm, tmp_path, "b")
    slurm.wait()
    assert squeue(slurm, tmp_path, "%j") == ["a"]
    slurm.advance(301)
    assert squeue(slurm, tmp_path, "%j") == []
    assert [line.split("|")[0] for line in sacct(slurm, tmp_path, "1,2")] == ["COMPLETED", "COMPLETED"]


def test_accounting_lags_lies_and_is_silent(slurm: FakeCluster, tmp_path: Path) -> None:
    slurm.script("lag", name="late", seconds=100)
    slurm.script("lie", name="liar", words="FAILED", seconds=100)
    slurm.script("no_record", name="none")
    for name in ("late", "liar", "none"):
        submit(slurm, tmp_path, name, "exit 5")
    slurm.wait()
    assert sacct(slurm, tmp_path, "1") == ["PENDING|0:0|Unknown"]
    assert sacct(slurm, tmp_path, "2") == ["FAILED|0:0|Unknown"]
    assert sacct(slurm, tmp_path, "3") == []
    slurm.advance(101)
    for job in "12":
        (row,) = sacct(slurm, tmp_path, job)
        assert row.startswith("FAILED|5:0|20")


def test_accounting_knows_nothing_of_a_new_job_while_it_lags(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", lag=5, speed=0)
    submit(cluster, tmp_path, text="sleep 100")
    assert sacct(cluster, tmp_path) == []
    cluster.advance(6)
    assert sacct(cluster, tmp_path) == ["RUNNING|0:0|Unknown"]


def test_out_of_memory_can_stand_there_though_the_job_ended_well(slurm: FakeCluster, tmp_path: Path) -> None:
    slurm.script("oom_unseen")
    submit(slurm, tmp_path, text=f"touch {tmp_path}/done")
    (job,) = slurm.wait()
    assert (tmp_path / "done").exists()
    assert (job.state, job.exit_code) == ("oom", 0)
    assert squeue(slurm, tmp_path) == ["OUT_OF_MEMORY|OutOfMemory"]


def test_a_time_limit_ends_a_job_and_a_fast_clock_brings_it_sooner(
    fake_cluster: Start, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm", speed=600)
    out = tmp_path / "out"
    say(cluster, f"sbatch -t 1 -o {out} --wrap 'sleep 100'", tmp_path)
    (job,) = cluster.wait()
    assert (job.state, job.limit) == ("timeout", 60)
    assert "DUE TO TIME LIMIT" in out.read_text()


def test_memory_is_held_to_what_was_asked(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", enforce_memory=True)
    eat = "import time; x = bytearray(200 << 20); time.sleep(60)"
    submit(cluster, tmp_path, "fat", f"exec python3 -c '{eat}'", "--mem=50M")
    submit(cluster, tmp_path, "thin", "sleep 0.2", "--mem=50M")
    assert [one.state for one in cluster.wait()] == ["oom", "completed"]


def test_a_signal_before_the_limit_goes_to_the_script(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", speed=60)
    text = f"trap 'echo told > {tmp_path}/told; exit 4' TERM\nwhile :; do sleep 0.02; done"
    submit(cluster, tmp_path, text=text, more="-t 2 --signal=B:TERM@60")
    (job,) = cluster.wait()
    assert (job.state, job.exit_code) == ("failed", 4)
    assert (tmp_path / "told").exists()


def test_the_clock_is_skewed_where_it_should_be(fake_cluster: Start, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", skew=-7200)
    submit(cluster, tmp_path)
    (job,) = cluster.wait()
    assert -7300 < job.started - time.time() < -7100

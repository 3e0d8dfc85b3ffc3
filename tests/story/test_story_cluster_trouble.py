"""A scheduler on a bad day: answers that are lost, late, wrong or not there; a run comes through, once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster_runs import Place, fake_site
from treadle.records.event import EndReason
from treadle.testing.schedulers import FakeCluster
from trouble_runs import FLOW, ONCE, lay_out, whole
from waiting import until

Cluster = Callable[..., FakeCluster]
KINDS = ("slurm", "pbs", "torque", "sge", "lsf")
# What submits, and what tells of the queue.
SUBMIT = {"slurm": "sbatch", "pbs": "qsub", "torque": "qsub", "sge": "qsub", "lsf": "bsub"}
QUEUE = {"slurm": "squeue", "pbs": "qstat", "torque": "qstat", "sge": "qstat", "lsf": "bjobs"}


def single(place: Place, text: str = "", *, seconds: float = 0.5) -> Place:
    """A workflow of one rule."""
    shell = f"echo it >> starts; sleep {seconds}; touch {{output}}"
    rule = f"[[rules]]\nname = 'it'\noutput = ['it.txt']\n{text}\nshell = '{shell}'\n"
    place.write("main.oxoflow", f"[workflow]\nname = 'single'\nstrict_shell = true\n{rule}")
    return place


def notices(place: Place) -> set[str]:
    return {event["code"] for event in place.events() if event["event"] == "noticed"}


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_is_lost_is_no_job_that_is_lost(
    kind: str, fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster(kind)
    cluster.script("lose_answer", nth=1)
    place = lay_out(Place(tmp_path, fake_site(cluster)))
    place.treadle("run")
    whole(place)


def test_a_banner_before_the_answer_does_no_harm(fake_cluster: Cluster, tmp_path: Path) -> None:
    for kind in KINDS:
        cluster = fake_cluster(kind)
        cluster.script("banner", words="*** 12 users, maintenance on 2026-12-01 ***\nJob 77\n123")
        place = lay_out(Place(tmp_path / kind, fake_site(cluster)))
        place.treadle("run")
        whole(place)


@pytest.mark.parametrize("kind", KINDS)
def test_commands_that_hang_are_given_up_and_called_again(
    kind: str, fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster(kind)
    cluster.script("hang", command=QUEUE[kind], seconds=30, times=1)
    cluster.script("hang", command=SUBMIT[kind], seconds=30, nth=2)
    place = lay_out(Place(tmp_path, fake_site(cluster), command_timeout=1))
    place.treadle("run", seconds=60)
    whole(place)


def test_accounting_that_is_late_wrong_or_absent_fails_no_job(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", keep=0.0, lag=1.0)
    cluster.script("lie", words="COMPLETED", seconds=1)
    cluster.script("no_record", nth=2)
    place = lay_out(Place(tmp_path, fake_site(cluster), lost_after=4))
    place.treadle("run")
    whole(place)


@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_that_forgets_at_once_loses_no_job(kind: str, fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster(kind, keep=0.0, accounting=False)
    # Grid Engine, LSF and Torque do not say that they keep no accounts: they know nothing of any job.
    place = lay_out(Place(tmp_path, fake_site(cluster), lost_after=2))
    place.treadle("run")
    whole(place)


@pytest.mark.parametrize("kind", KINDS)
def test_a_controller_that_is_away_for_a_while_fails_no_job(
    kind: str, fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster(kind)
    place = lay_out(Place(tmp_path, fake_site(cluster)))
    run = place.start("run")
    until(lambda: place.starts().get("one.a"), "the first task")
    cluster.down()
    until(lambda: "backend_down" in notices(place), "a word about it")
    cluster.up()
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, out + err
    assert "backend_up" in notices(place)
    whole(place)


def test_a_limit_on_jobs_is_waited_for(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", max_submitted=1)
    place = lay_out(Place(tmp_path, fake_site(cluster)))
    place.treadle("run")
    whole(place)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_fails_its_task_in_the_schedulers_words(
    kind: str, fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster(kind)
    said = (
        "sbatch: error: Batch job submission failed: Invalid account" if kind == "slurm" else "Unknown queue"
    )
    cluster.script("refuse", words=said, code=1)
    place = single(Place(tmp_path, fake_site(cluster)))
    said_to_people = place.treadle("run", exits=1)
    (job,) = place.jobs()
    assert job.reason is EndReason.NEVER_STARTED
    assert said.rpartition(": ")[2] in said_to_people


@pytest.mark.parametrize(
    ("do", "reason"),
    [
        ("oom", EndReason.OOM),
        ("timeout", EndReason.TIME),
        ("node_fail", EndReason.NODE),
        ("preempt", EndReason.PREEMPTED),
        ("vanish", EndReason.LOST),
        ("oom_unseen", EndReason.OOM),
    ],
)
def test_an_end_from_outside_has_its_reason(
    do: str, reason: EndReason, fake_cluster: Cluster, tmp_path: Path
) -> None:
    # As long as the queue shows a failed node, it may requeue; and what failed once is excluded.
    cluster = fake_cluster("slurm", keep=0.5, nodes=10)
    cluster.script(do, **({} if do == "oom_unseen" else {"after": 0.2}))
    # A busy machine may be slow to answer: only what is nowhere is to be given up soon.
    place = single(Place(tmp_path, fake_site(cluster), lost_after=1 if do == "vanish" else 60))
    place.treadle("run", exits=1)
    assert {job.reason for job in place.jobs()} == {reason}  # what is not its own fault is tried again
    assert not (place / "it.txt").exists(), "what it made is set aside"


def test_a_job_that_is_requeued_goes_on_where_its_rule_may_be_started_again(
    fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm")
    cluster.script("requeue", after=1.5, times=1)
    place = single(Place(tmp_path, fake_site(cluster)), "restartable = true", seconds=3)
    place.treadle("run")
    assert [(job.state, job.attempt) for job in place.jobs()] == [("succeeded", 1)]
    assert place.starts() == {"it": 2}


def test_a_job_that_is_requeued_is_not_begun_twice_else(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm")
    cluster.script("requeue", after=1.5, times=1)
    place = single(Place(tmp_path, fake_site(cluster)), seconds=3)
    place.treadle("run", exits=1)
    assert [job.state for job in place.jobs()] == ["failed"]
    assert place.starts() == {"it": 1}


def test_a_reason_that_cannot_heal_is_said_and_fails_the_task(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm")
    cluster.script("pend", words="PartitionTimeLimit")
    place = single(Place(tmp_path, fake_site(cluster)))
    said = place.treadle("run", exits=1)
    assert "PartitionTimeLimit" in said
    assert [job.reason for job in place.jobs()] == [EndReason.NEVER_STARTED]
    until(lambda: not alive(cluster), "the end of the job")


def test_a_retry_after_too_little_memory_asks_for_more(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm")
    cluster.script("oom", after=0.1, times=1)
    text = "retries = 1\nretry_delay = '0s'\nmemory = '1G'\nretry_memory = 'x2'"
    place = single(Place(tmp_path, fake_site(cluster)), text)
    place.treadle("run")
    assert [job.reason for job in place.jobs()] == [EndReason.OOM, EndReason.OK]
    assert [job.memory >> 20 for job in cluster.jobs()] == [1024, 2048]


def test_two_runs_in_two_folders_keep_to_their_own_jobs(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", others=20)
    places = [lay_out(Place(tmp_path / name, fake_site(cluster))) for name in ("x", "y")]
    runs = [place.start("run") for place in places]
    for run in runs:
        out, err = run.communicate(timeout=60)
        assert run.returncode == 0, out + err
    for place in places:
        whole(place)


def alive(cluster: FakeCluster) -> list[str]:
    """Our jobs that wait or run."""
    over = ("completed", "failed", "cancelled", "timeout", "oom", "node_fail", "preempted")
    return [job.job for job in cluster.jobs() if job.state not in over and job.user == cluster.site.user]


def test_a_queue_that_cannot_be_read_for_poll_timeout_cancels_what_is_in_flight(
    fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm")
    place = single(Place(tmp_path, fake_site(cluster), poll_timeout=1), seconds=600)
    driver = place.start("run")
    until(lambda: [job for job in cluster.jobs() if job.state == "running"], "it runs")
    cluster.script("down", command="squeue")
    _, told = driver.communicate(timeout=120)
    assert driver.returncode == 3, told
    assert "the queue of slurm could not be read for" in told
    until(lambda: not [job for job in cluster.jobs() if job.state in ("running", "pending")], "it is gone")
    cluster.behave()
    single(place, seconds=0)
    place.treadle("run")
    assert place.starts() == {"it": 2}


def waiting(place: Place) -> Place:
    """Two tasks that wait until they may end."""
    place.write("main.oxoflow", FLOW.replace("sleep SECONDS", "until test -e go; do sleep 0.05; done"))
    for name in "ab":
        place.write(f"in/{name}.txt", f"{name}\n")
    return place


def begun(place: Place) -> subprocess.Popen[str]:
    run = place.start("run")
    until(lambda: len(place.starts()) == 2, "two tasks at work")
    until(lambda: len({one["job"] for one in seen(place) if one.get("job")}) == 2, "their ids")
    return run


def seen(place: Place, state: str = "") -> list[dict[str, Any]]:
    """What the journal of the latest run says of jobs (in that state)."""
    return [one for one in place.events() if one["event"] == "job_seen" and state in ("", one["state"])]


def gave_up(run: subprocess.Popen[str]) -> str:
    out, err = run.communicate(timeout=120)
    assert run.returncode == 3, out + err
    return err


def test_a_scheduler_that_stays_away_is_given_up_and_its_jobs_are_left_to_the_next_run(
    fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm")
    place = waiting(Place(tmp_path, fake_site(cluster), outage_limit=0.5))
    run = begun(place)
    cluster.down()
    said = gave_up(run)
    assert "slurm has not answered for" in said
    assert "2 of its jobs could not be told to end" in said
    told = seen(place, "ending")
    assert sorted(event["task"] for event in told) == ["one/sample=a", "one/sample=b"]
    assert all(event["reason"].startswith("not heard: scancel: error:") for event in told)
    assert place.events()[-1]["event"] == "run_detached"
    assert len(alive(cluster)) == 2
    cluster.up()
    place.write("go", "")
    place.treadle("run")
    whole(place)


def test_a_scheduler_that_is_back_when_it_is_given_up_ends_its_jobs(
    fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm", kill_wait=0.5)
    place = waiting(Place(tmp_path, fake_site(cluster), outage_limit=0.5))
    run = begun(place)
    cluster.script("down", command="squeue", times=2)
    assert "slurm has not answered for" in gave_up(run)
    assert not alive(cluster)
    assert {job.state for job in place.jobs()} == {"cancelled"}
    assert place.events()[-1]["event"] == "run_ended"
    place.write("go", "")
    place.treadle("run")
    assert place.starts() == {**ONCE, "one.a": 2, "one.b": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_that_were_told_to_end_unseen_are_run_anew_by_the_next_run(
    kind: str, fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster(kind, kill_wait=0.5)
    place = waiting(Place(tmp_path, fake_site(cluster), outage_limit=0.5))
    run = begun(place)
    cluster.script("down", command=QUEUE[kind])
    assert "2 of its jobs were told to end, which was not seen yet" in gave_up(run)
    assert [event.get("reason", "") for event in seen(place, "ending")] == ["", ""]
    until(lambda: not alive(cluster), "their end")
    cluster.behave()
    place.write("go", "")
    place.treadle("run")
    assert place.starts() == {**ONCE, "one.a": 2, "one.b": 2}

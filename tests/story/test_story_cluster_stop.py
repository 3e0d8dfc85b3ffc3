"""Ctrl-C, `treadle cancel`, drivers that go away: what becomes of the jobs, and who takes them up again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_runs import Place, fake_site
from treadle.testing.schedulers import FakeCluster
from waiting import until

Cluster = Callable[..., FakeCluster]
KINDS = ("slurm", "pbs", "torque", "sge", "lsf")
# Four tasks of an array, of which two can run at a time; each waits until it may end.
FLOW = """
[workflow]
name = "stop"
strict_shell = true

[[rules]]
name = "wait"
input = ["in/{sample}.txt"]
output = ["out/{sample}.txt"]
shell = "echo {sample} >> starts; until test -e go; do sleep 0.05; done; cat {input} > {output}"

[[rules]]
name = "all"
input = ["out/{sample}.txt"]
output = ["all.txt"]
shell = "echo all >> starts; cat {input} > {output}"
"""
SAMPLES = "abcd"
ONCE = {**dict.fromkeys(SAMPLES, 1), "all": 1}


def lay_out(path: Path, cluster: FakeCluster) -> Place:
    place = Place(path, fake_site(cluster))
    place.write("main.oxoflow", FLOW)
    for name in SAMPLES:
        place.write(f"in/{name}.txt", f"{name}\n")
    return place


def begin(place: Place, *args: str) -> subprocess.Popen[str]:
    """Start a run, and wait until two tasks are at work and the others wait in the queue."""
    run = place.start("run", *args)
    until(lambda: len(place.starts()) >= 2 or run.poll() is not None, "two tasks at work")
    until(lambda: len(ids(place)) == len(SAMPLES), "what the scheduler calls them")
    return run


def ids(place: Place) -> set[str]:
    """What the journals say the scheduler calls the tasks."""
    seen = [event for run in place.runs() for event in place.events(run) if event["event"] == "job_seen"]
    return {event["job"] for event in seen if event.get("job")}


def end(run: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = run.communicate(timeout=60)
    assert "Traceback" not in err, err
    return run.returncode, out + err


def alive(cluster: FakeCluster) -> list[str]:
    """Jobs that wait or run."""
    states = ("pending", "running", "suspended", "ending")
    return [f"{job.job} {job.state}" for job in cluster.jobs() if job.state in states]


def goes_on(place: Place, *, once: bool) -> None:
    """Run again to the end."""
    place.write("go", "")
    place.treadle("run")
    assert place.read("all.txt") == "a\nb\nc\nd\n"
    if once:
        assert place.starts() == ONCE


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_cancels_every_job(kind: str, fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster(kind, slots=2, kill_wait=0.5)
    place = lay_out(tmp_path, cluster)
    run = begin(place)
    run.send_signal(signal.SIGINT)
    code, said = end(run)
    assert code == 130, said
    assert not alive(cluster)
    assert {job.state for job in place.jobs()} == {"cancelled"}
    goes_on(place, once=False)


@pytest.mark.parametrize("kind", KINDS)
def test_cancel_removes_what_a_killed_driver_left(kind: str, fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster(kind, slots=2, kill_wait=0.5)
    place = lay_out(tmp_path, cluster)
    run = begin(place)
    run.kill()
    run.communicate()
    assert len(alive(cluster)) == len(SAMPLES)
    assert "4 jobs" in place.treadle("cancel")
    assert not alive(cluster)
    goes_on(place, once=False)


def test_cancel_ends_a_driver_with_its_jobs(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", slots=2, kill_wait=0.5)
    place = lay_out(tmp_path, cluster)
    run = begin(place)
    place.treadle("cancel")
    assert end(run)[0] != 0
    assert not alive(cluster)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_driver_leaves_its_jobs_to_the_next_run(
    kind: str, fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster(kind, slots=2)
    place = lay_out(tmp_path, cluster)
    run = begin(place)
    run.kill()
    run.communicate()
    goes_on(place, once=True)
    assert not alive(cluster)


def test_an_interrupt_may_leave_the_jobs_to_the_next_run(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", slots=2)
    place = lay_out(tmp_path, cluster)
    run = begin(place, "--on-interrupt", "detach")
    run.send_signal(signal.SIGINT)
    code, said = end(run)
    assert code == 130, said
    assert len(alive(cluster)) == len(SAMPLES)
    goes_on(place, once=True)


def test_a_terminal_that_goes_away_leaves_the_jobs_to_the_next_run(
    fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm", slots=2)
    place = lay_out(tmp_path, cluster)
    run = begin(place)
    run.send_signal(signal.SIGHUP)
    end(run)
    assert len(alive(cluster)) == len(SAMPLES)
    goes_on(place, once=True)


def test_jobs_that_end_while_no_driver_is_there_are_not_run_again(
    fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm", slots=2, keep=0.0)
    place = lay_out(tmp_path, cluster)
    run = begin(place)
    run.kill()
    run.communicate()
    place.write("go", "")
    cluster.wait()
    goes_on(place, once=True)


def test_a_run_in_the_background_is_watched_killed_and_taken_up_again(
    fake_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm", slots=2)
    place = lay_out(tmp_path, cluster)
    begun = json.JSONDecoder().raw_decode(place.treadle("run", "--detach", "--json"))[0]
    until(lambda: len(place.starts()) >= 2, "two tasks at work")
    until(lambda: "2 tasks wait in the queue" in place.treadle("status", exits=None), "two in the queue")
    os.kill(begun["pid"], signal.SIGKILL)
    until(lambda: not Path(f"/proc/{begun['pid']}/fd").exists() or _is_dead(begun["pid"]), "its end")
    goes_on(place, once=True)


def test_a_run_in_the_background_comes_to_its_end(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", slots=4)
    place = lay_out(tmp_path, cluster)
    begun = json.JSONDecoder().raw_decode(place.treadle("run", "--detach", "--json"))[0]
    place.write("go", "")
    until(lambda: place.events()[-1]["event"] == "run_ended", "the end of the run")
    assert place.starts() == ONCE
    assert "done" in Path(begun["log"]).read_text()


def _is_dead(pid: int) -> bool:
    """It is gone, or a zombie that its parent has not yet seen."""
    try:
        return ") Z" in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True

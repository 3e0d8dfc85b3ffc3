"""Whole runs on real SLURM and Grid Engine when something happens: drivers killed, the controller away, a
node down, a job requeued, a thousand elements."""

from __future__ import annotations

import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cluster_runs import Place, real_site
from schedulers.start import Scheduler
from treadle.records.event import EndReason
from trouble_runs import lay_out, whole
from waiting import until

pytestmark = pytest.mark.real
EVENTS = (3, 4, 6, 7, 8, 9, 10, 11, 13, 14)


def laid_out(path: Path, scheduler: Scheduler) -> Place:
    """A folder with the workflow of two rules."""
    return lay_out(Place(path, real_site(scheduler)), seconds=0.5)


def single(path: Path, scheduler: Scheduler, text: str = "") -> Place:
    """A workflow of one rule, whose task waits until `go` is there."""
    place = Place(path, real_site(scheduler))
    shell = "echo it >> starts; until test -e go; do sleep 0.1; done; touch {output}"
    rule = f"[[rules]]\nname = 'it'\noutput = ['it.txt']\n{text}\nshell = '{shell}'\n"
    place.write("main.oxoflow", f"[workflow]\nname = 'single'\nstrict_shell = true\n{rule}")
    return place


def begin(place: Place, task: str) -> subprocess.Popen[str]:
    """Start a run, and wait until a task is at work."""
    run = place.start("run")
    until(lambda: place.starts().get(task) or run.poll() is not None, f"{task} at work")
    return run


def end(run: subprocess.Popen[str], code: int = 0) -> str:
    out, err = run.communicate(timeout=120)
    assert "Traceback" not in err, err
    assert run.returncode == code, out + err
    return out + err


def killed_at(place: Place, events: int) -> None:
    """Kill a run when its journal has so many events, and run again."""
    run = place.start("run")
    until(lambda: run.poll() is not None or (place.runs() and len(place.events()) >= events), "its events")
    run.kill()
    run.communicate()
    place.treadle("run")
    whole(place)


def test_slurm_a_driver_killed_at_ten_points_loses_nothing_and_repeats_nothing(
    slurm: Scheduler, tmp_path: Path
) -> None:
    places = [laid_out(tmp_path / str(events), slurm) for events in EVENTS]
    with ThreadPoolExecutor(5) as pool:
        for done in [pool.submit(killed_at, place, at) for place, at in zip(places, EVENTS, strict=True)]:
            done.result()


def test_sge_a_killed_driver_loses_nothing_and_repeats_nothing(sge: Scheduler, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        for done in [
            pool.submit(killed_at, laid_out(tmp_path / str(events), sge), events) for events in (4, 7, 9)
        ]:
            done.result()


def test_slurm_a_controller_that_is_stopped_and_started_fails_no_job(
    slurm: Scheduler, tmp_path: Path
) -> None:
    place = laid_out(tmp_path, slurm)
    run = begin(place, "one.a")
    slurm.stop("slurmctld")
    try:
        until(lambda: "backend_down" in {one.get("code") for one in place.events()}, "a word about it")
    finally:
        slurm.start("slurmctld")
    end(run)
    whole(place)


def test_slurm_a_node_that_is_set_down_is_avoided_by_the_next_try(
    slurm_without_accounting: Scheduler, tmp_path: Path
) -> None:
    """Once the queue has forgotten the job: as long as it shows NODE_FAIL, it may requeue."""
    slurm = slurm_without_accounting
    place = single(tmp_path, slurm)
    run = begin(place, "it")
    node = slurm.run("squeue", "-h", "-t", "running", "-o", "%N").stdout.split()[0]
    update = ("scontrol", "update", f"nodename={node}")
    assert slurm.run(*update, "state=down", "reason=test").returncode == 0
    try:
        until(lambda: place.starts() == {"it": 2}, "the next try", seconds=120)
        place.write("go", "")
        end(run)
    finally:
        slurm.run(*update, "state=resume")
    lost, done = place.jobs()
    assert (lost.reason, lost.host, done.reason) == (EndReason.NODE, node, EndReason.OK)
    assert done.host != node


def test_slurm_a_job_that_is_requeued_is_begun_again_where_its_rule_allows_it(
    slurm: Scheduler, tmp_path: Path
) -> None:
    place = single(tmp_path, slurm, "restartable = true")
    run = begin(place, "it")
    job = until(lambda: [one["job"] for one in place.events() if one.get("job", "").isdigit()], "its id")[0]
    assert slurm.run("scontrol", "requeue", job).returncode == 0
    place.write("go", "")
    end(run)
    assert [(one.state, one.attempt) for one in place.jobs()] == [("succeeded", 1)]
    assert place.starts() == {"it": 2}


@pytest.mark.parametrize("kind", ["slurm", "sge"])
def test_ctrl_c_leaves_no_job(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    scheduler: Scheduler = request.getfixturevalue(kind)
    place = single(tmp_path, scheduler)
    run = begin(place, "it")
    run.send_signal(signal.SIGINT)
    end(run, 130)
    until(
        lambda: not _left(scheduler), "a queue without the job"
    )  # SLURM shows it as COMPLETING for a moment
    assert [job.state for job in place.jobs()] == ["cancelled"]


@pytest.mark.parametrize("kind", ["slurm", "sge"])
def test_cancel_removes_what_a_killed_driver_left(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    scheduler: Scheduler = request.getfixturevalue(kind)
    place = single(tmp_path, scheduler)
    run = begin(place, "it")
    run.kill()
    run.communicate()
    place.treadle("cancel")
    until(
        lambda: not _left(scheduler), "a queue without the job"
    )  # SLURM shows it as COMPLETING for a moment
    place.write("go", "")
    place.treadle("run")
    assert place.starts() == {"it": 2}


def _left(scheduler: Scheduler) -> str:
    """What the queue shows that has not ended."""
    argv = ("squeue", "-h", "-o", "%i %T") if scheduler.kind == "slurm" else ("qstat",)
    return scheduler.run(*argv).stdout


def test_slurm_a_thousand_elements_are_one_array(slurm: Scheduler, tmp_path: Path) -> None:
    place = Place(tmp_path, real_site(slurm, max_submitted=1000))
    place.write(
        "main.oxoflow",
        '[workflow]\nname = "many"\n[[tables]]\nname = "samples"\nfile = "samples.json"\n'
        '[[rules]]\nname = "one"\noutput = ["out/{sample}"]\nshell = "echo > {output}"\n',
    )
    place.write("samples.json", "[" + ",".join(f'{{"sample": "{number}"}}' for number in range(1000)) + "]")
    place.treadle("run", seconds=300)
    assert len(list((tmp_path / "out").iterdir())) == 1000
    assert len(place.job_folders()) == 1


def test_sge_ctrl_c_does_not_wait_for_files_that_nobody_writes(sge: Scheduler, tmp_path: Path) -> None:
    """Grid Engine kills at once, so the job leaves no word; accounting tells how it ended."""
    place = single(tmp_path, sge)
    place.write(".config/treadle/there.toml", real_site(sge, latency_wait=600).profile())
    run = begin(place, "it")
    run.send_signal(signal.SIGINT)
    end(run, 130)  # which does not wait for ten minutes
    assert [job.state for job in place.jobs()] == ["cancelled"]

"""What checkpoints find is alike on every fake scheduler, also over a death of the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_runs import HERE, Place, fake_site
from discovered_runs import ALL, WHOLE, cut, lay_out, lives, started
from treadle.testing.schedulers import FakeCluster
from waiting import until

KINDS = ("slurm", "pbs", "torque", "sge", "lsf")


@pytest.mark.parametrize("kind", ["here", *KINDS])
def test_checkpoints_find_work_on_every_scheduler_as_on_this_machine(
    kind: str, fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    lives(Place(tmp_path, HERE if kind == "here" else fake_site(fake_cluster(kind, slots=8))))


@pytest.mark.parametrize("kind", ["slurm", "sge"])
def test_a_checkpoint_whose_driver_died_brings_its_work_in_the_next_run(
    kind: str, fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    place = lay_out(Place(tmp_path, fake_site(fake_cluster(kind, slots=8))))
    look = "echo look >> starts && while test -e wait; do sleep 0.05; done && cp"
    place.write("main.oxoflow", place.read("main.oxoflow").replace("echo look >> starts && cp", look))
    place.write("wait", "")
    run = place.start("run")
    until(lambda: "look" in place.starts() or run.poll() is not None, "the checkpoint at work")
    run.kill()
    run.communicate()
    again = place.start("run")
    until(lambda: len(place.runs()) == 2 or again.poll() is not None, "the second run")
    (place / "wait").unlink()
    out, err = again.communicate(timeout=60)
    assert again.returncode == 0, out + err
    assert started(place) == dict.fromkeys(ALL, 1)
    assert place.read("all.txt") == WHOLE
    assert place.will_run()[0] == set()


def test_a_job_of_what_was_found_is_not_run_twice_when_its_checkpoint_runs_again(
    fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    place = lay_out(Place(tmp_path, fake_site(fake_cluster("slurm", slots=8))))
    work = "echo work.{sample}.{chunk} >> starts && while test -e wait; do sleep 0.05; done && cp"
    text = place.read("main.oxoflow").replace("echo work.{sample}.{chunk} >> starts && cp", work)
    place.write("main.oxoflow", text)
    place.write("wait", "")
    run = place.start("run")
    until(lambda: "work.A.1" in place.starts() or run.poll() is not None, "a task that was found")
    run.kill()
    run.communicate()
    cut(place, "A", "1", "3")
    again = place.start("run")
    until(lambda: len(place.runs()) == 2 or again.poll() is not None, "the second run")
    (place / "wait").unlink()
    out, err = again.communicate(timeout=60)
    assert again.returncode == 0, out + err
    starts = place.starts()
    assert {task: number for task, number in starts.items() if number > 1} == {"cut.A": 2}
    assert starts["work.A.3"] == 1
    assert place.read("all.txt") == "A\nB\nC\nA\n1\nA\n3\nB\n2\nC\n1\n"
    assert place.will_run()[0] == set()

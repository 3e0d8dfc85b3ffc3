"""Packs: many short tasks of a rule in one job, each with an end, a log and a retry of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_runs import Place, fake_site
from treadle.testing.schedulers import FakeCluster
from waiting import until

Cluster = Callable[..., FakeCluster]
FLOW = """
[workflow]
name = "packs"
strict_shell = true

[[rules]]
name = "short"
input = ["in/{sample}.txt"]
output = ["out/{sample}.txt"]
pack = 3
retries = 1
retry_delay = "0s"
shell = "echo {sample} >> starts; echo log of {sample}; test ! -e bad/{sample}; cat {input} > {output}"
resources = { time_limit = "10m" }

[[rules]]
name = "all"
input = ["out/{sample}.txt"]
output = ["all.txt"]
shell = "cat {input} > {output}"
"""


WAITING = FLOW.replace("; cat", "; until test -e go; do sleep 0.05; done; cat")


def lay_out(path: Path, fake: FakeCluster) -> Place:
    place = Place(path, fake_site(fake))
    place.write("main.oxoflow", FLOW)
    for name in "abcde":
        place.write(f"in/{name}.txt", f"{name}\n")
    return place


def scripts(place: Place) -> list[str]:
    return [(folder / "job.sh").read_text() for folder in place.job_folders()]


def test_what_is_shown_is_what_is_sent(tmp_path: Path, fake_cluster: Cluster) -> None:
    place = lay_out(tmp_path, fake_cluster("slurm"))
    shown = place.treadle("plan", "--show", "submit")
    assert "#SBATCH --array=1-2" in shown
    assert "#SBATCH --time=0-00:30:00" in shown
    place.treadle("run")
    assert "#SBATCH --array=1-2" in scripts(place)[0]
    assert "#SBATCH --time=0-00:30:00" in scripts(place)[0]
    assert place.read("all.txt") == "a\nb\nc\nd\ne\n"
    assert place.starts() == dict.fromkeys("abcde", 1)
    assert place.will_run() == (set(), set())


def test_a_failed_one_is_tried_again_alone(tmp_path: Path, fake_cluster: Cluster) -> None:
    fake = fake_cluster("slurm")
    place = lay_out(tmp_path, fake)
    place.write("bad/b", "")
    place.treadle("run", "--keep-going", exits=1)
    assert place.starts() == {**dict.fromkeys("abcde", 1), "b": 2}
    told = {(job.task, job.attempt): (job.state, job.exit_code) for job in place.jobs()}
    assert told[("short/sample=b", 1)] == ("failed", 1)
    assert told[("short/sample=b", 2)] == ("failed", 1)
    assert told[("short/sample=c", 1)] == ("succeeded", 0)
    assert "log of c" in place.treadle("logs", "short/sample=c")
    (place / "bad/b").unlink()
    place.treadle("run")
    assert place.starts() == {**dict.fromkeys("abcde", 1), "b": 3}
    assert place.read("all.txt") == "a\nb\nc\nd\ne\n"


def test_packs_of_a_killed_driver_are_taken_over(tmp_path: Path, fake_cluster: Cluster) -> None:
    place = lay_out(tmp_path, fake_cluster("slurm"))
    place.write("main.oxoflow", WAITING)
    run = place.start("run", start_new_session=True)
    until(lambda: len(place.starts()) == 2 or run.poll() is not None, "two at work")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    place.write("go", "")
    said = place.treadle("plan")
    assert "in flight" in said
    place.treadle("run")
    assert place.starts() == dict.fromkeys("abcde", 1)
    assert place.read("all.txt") == "a\nb\nc\nd\ne\n"


def test_a_changed_command_ends_what_is_left_of_a_pack_and_runs_it_anew(
    tmp_path: Path, fake_cluster: Cluster
) -> None:
    place = lay_out(tmp_path, fake_cluster("slurm"))
    place.write("main.oxoflow", WAITING)
    run = place.start("run")
    until(lambda: len(place.starts()) == 2 or run.poll() is not None, "two at work")
    run.kill()
    run.communicate()
    place.write("go", "")
    place.write("main.oxoflow", WAITING.replace("; cat {input}", "; cat {input} {input}"))
    place.treadle("run")
    assert place.read("all.txt") == "".join(f"{name}\n{name}\n" for name in "abcde")


def test_a_pack_by_time_without_a_time_limit_is_said(tmp_path: Path, fake_cluster: Cluster) -> None:
    place = lay_out(tmp_path, fake_cluster("slurm"))
    place.write(
        "main.oxoflow",
        FLOW.replace("pack = 3", 'pack = "30m"').replace('resources = { time_limit = "10m" }', ""),
    )
    assert "'short' has a pack by time and no 'time_limit'" in place.treadle("run")
    place.write("main.oxoflow", FLOW.replace("pack = 3", 'pack = "30m"'))
    assert "#SBATCH --array=1-2" in place.treadle("plan", "--show", "submit", "--force")


def test_a_pack_has_no_effect_on_this_machine(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("main.oxoflow", FLOW)
    for name in "abcde":
        place.write(f"in/{name}.txt", f"{name}\n")
    place.treadle("run")
    assert place.starts() == dict.fromkeys("abcde", 1)


@pytest.mark.parametrize("events", range(3, 16, 3))
def test_a_driver_killed_at_any_event_repeats_nothing_of_a_pack(
    events: int, tmp_path: Path, fake_cluster: Cluster
) -> None:
    place = lay_out(tmp_path, fake_cluster("slurm"))
    run = place.start("run")
    until(lambda: run.poll() is not None or (place.runs() and len(place.events()) >= events), "its events")
    run.kill()
    run.communicate()
    place.treadle("run")
    assert place.starts() == dict.fromkeys("abcde", 1)
    assert place.read("all.txt") == "a\nb\nc\nd\ne\n"

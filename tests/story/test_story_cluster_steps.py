"""Rules and Python steps in one plan, on this machine and on every fake scheduler; also over a kill."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from cluster_runs import HERE, Place, Site, fake_site
from treadle.records.job import JobRecord
from treadle.testing.schedulers import FakeCluster
from waiting import until

KINDS = ("slurm", "pbs", "torque", "sge", "lsf")
STEPS = """
import os, pathlib, time
from treadle import ResourceConfig, StepSpec

small = ResourceConfig(cpu=1)

def begin(name):
    with open("starts", "a") as file:
        file.write(name + "\\n")

def length(out):
    begin("count")
    while os.path.exists("wait"):
        time.sleep(0.05)
    pathlib.Path(out).write_text(str(len(pathlib.Path("clean/all.txt").read_text())))

def part(n):
    def made(out):
        begin(f"part{n}")
        pathlib.Path(out).write_text(str(n))
    return made

def model(out, ctx):
    begin("model")
    os.mkdir(out)
    found = [pathlib.Path(ctx.path(one)).read_text() for one in (count, *parts)]
    pathlib.Path(out, "weights.txt").write_text(" ".join(found))

count = StepSpec("count", fn=length, inputs=["clean/all.txt"], resources=small)
parts = [StepSpec("part", fn=part(n), hash_attrs={"n": n}, resources=small) for n in range(3)]
steps = [StepSpec("model", fn=model, deps=[count, *parts], resources=small)]
"""
FLOW = """
[workflow]
name = "mixed"
strict_shell = true

[[steps]]
module = "steps.py"

[[rules]]
name = "clean"
input = ["raw.txt"]
output = ["clean/all.txt"]
shell = "echo clean >> starts; sort {input} > {output}"

[[rules]]
name = "use"
input = ["{step.model}/weights.txt"]
output = ["out.txt"]
shell = "echo use >> starts; cat {input} > {output}"
"""
ONCE = {"clean": 1, "use": 1, "count": 1, "part0": 1, "part1": 1, "part2": 1, "model": 1}
FORCED = ("main.oxoflow", "use", "--force")
Life = list[tuple[set[str], list[JobRecord], str]]


def lay_out(path: Path, site: Site) -> Place:
    place = Place(path, site)
    place.write("steps.py", STEPS)
    place.write("main.oxoflow", FLOW)
    place.write("raw.txt", "b\na\n")
    return place


def live(place: Place) -> Life:
    """Run from nothing, after a change of an input, after a change that equal outputs cut off, and forced."""
    told: Life = []
    for raw, args in (
        ("b\na\n", ()),
        ("c\nb\na\n", ()),
        ("a\nb\nc\n", ()),
        ("a\nb\nc\n", ("use", "--force")),
    ):
        place.write("raw.txt", raw)
        previewed, _ = place.will_run(*args)
        before = place.runs()
        place.treadle("run", *args)
        new = [run for run in place.runs() if run not in before]
        told.append((previewed, place.jobs(new[-1]) if new else [], place.read("out.txt")))
    return told


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Life]:
    return cache(lambda: live(lay_out(tmp_path_factory.mktemp("here"), HERE)))


@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_rules_live_on_a_scheduler_as_on_this_machine(
    kind: str, here: Callable[[], Life], fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    cluster = fake_cluster(kind, slots=8)
    assert live(lay_out(tmp_path, fake_site(cluster))) == here()
    assert len(cluster.jobs()) >= len(ONCE), "steps were jobs, too"


@pytest.mark.parametrize("kind", ["slurm", "sge"])
@pytest.mark.parametrize(
    "inputs",
    ["", ', inputs=["raw.txt"]'],
)
def test_a_killed_driver_leaves_steps_to_the_next_run(
    inputs: str, kind: str, fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    cluster = fake_cluster(kind, slots=8)
    place = lay_out(tmp_path, fake_site(cluster))
    place.write("steps.py", STEPS.replace(', inputs=["clean/all.txt"]', inputs).replace("clean/all", "raw"))
    place.write("wait", "")
    run = place.start("run")
    until(lambda: len(place.starts()) == len(ONCE) - 2 or run.poll() is not None, "a step at work")
    run.kill()
    run.communicate()
    (place / "wait").unlink()
    cluster.wait()
    place.treadle("run")
    assert place.read("out.txt") == "4 0 1 2"
    assert place.starts() == ONCE


def killed_at_work(place: Place) -> None:
    """Kill a run whose step with an input is at work."""
    place.write("steps.py", STEPS.replace("clean/all", "raw"))
    place.write("wait", "")
    run = place.start("run")
    until(lambda: "count" in place.starts() or run.poll() is not None, "the step at work")
    until(lambda: any(event["event"] == "job_seen" for event in place.events()), "what it is called")
    run.kill()
    run.communicate()


def test_a_step_with_inputs_that_is_at_work_is_taken_over(
    fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    place = lay_out(tmp_path, fake_site(fake_cluster("slurm", slots=8)))
    killed_at_work(place)
    answers = {task["id"].partition("_")[0]: task for task in place.plan()["tasks"]}
    assert [reason["reason"] for reason in answers["@count"]["reasons"]] == ["job_in_flight"]
    run = place.start("run")
    until(lambda: len(place.runs()) == 2 and place.events(), "the next run")
    (place / "wait").unlink()
    _, said = run.communicate(timeout=60)
    assert run.returncode == 0, said
    assert place.starts() == ONCE
    assert place.will_run() == (set(), set())


def test_a_step_at_work_whose_code_changed_is_ended_and_made_anew(
    fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    place = lay_out(tmp_path, fake_site(fake_cluster("slurm", slots=8)))
    killed_at_work(place)
    changed = (
        place.read("steps.py").replace("str(len(", "str(10 + len(").replace('exists("wait")', 'exists("w")')
    )
    place.write("steps.py", changed)
    place.treadle("run")
    assert place.read("out.txt") == "14 0 1 2"

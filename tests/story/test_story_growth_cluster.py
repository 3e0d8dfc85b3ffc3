"""Steps that grow where steps are jobs: alike on every fake scheduler, also over a death of the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_runs import HERE, Place, Site, fake_site
from treadle.testing.schedulers import FakeCluster
from waiting import until

KINDS = ("slurm", "pbs", "torque", "sge", "lsf")
PIPELINE = """
import os, pathlib, time
from treadle import ResourceConfig, StepSpec

small = ResourceConfig(cpu=1)

def begin(name):
    with open("starts", "a") as file:
        file.write(name + "\\n")

def found(out):
    begin("look")
    while os.path.exists("wait"):
        time.sleep(0.05)
    return pathlib.Path("names").read_text().split()

def part(name):
    def made(out):
        begin(name)
        pathlib.Path(out).write_text(name)
    return StepSpec("part", fn=made, hash_attrs={"name": name}, resources=small)

def more(names):
    parts = [part(name) for name in names]
    def gather(out, ctx):
        begin("all")
        pathlib.Path(out).write_text(" ".join(pathlib.Path(ctx.path(one)).read_text() for one in parts))
    return [*parts, StepSpec("all", fn=gather, deps=parts, resources=small, override_output_path="all")]

look = StepSpec("look", fn=found, grow=more, resources=smallINPUTS)
steps = [look]
"""
ALL = {"look": 1, "a": 1, "b": 1, "all": 1}
MADE = ".treadle/artifacts/all"


def lay_out(path: Path, site: Site, inputs: str = "") -> Place:
    place = Place(path, site)
    place.write("pipeline.py", PIPELINE.replace("INPUTS", inputs))
    place.write("names", "a b")
    return place


def previewed(place: Place) -> set[str]:
    return {task["rule"] for task in place.plan("pipeline.py")["tasks"] if task["will_run"]}


@pytest.mark.parametrize("kind", ["here", *KINDS])
def test_steps_grow_on_every_scheduler_as_on_this_machine(
    kind: str, fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    cluster = None if kind == "here" else fake_cluster(kind, slots=8)
    place = lay_out(tmp_path, HERE if cluster is None else fake_site(cluster))
    assert previewed(place) == {"@look"}
    place.treadle("run", "pipeline.py")
    assert place.starts() == ALL
    assert place.read(MADE) == "a b"
    assert previewed(place) == set()
    if cluster is not None:
        assert len(cluster.jobs()) == len(ALL)


@pytest.mark.parametrize("inputs", ["", ', inputs=["kind"]'], ids=["no inputs", "inputs"])
@pytest.mark.parametrize("kind", ["slurm", "sge"])
def test_a_step_whose_driver_died_grows_in_the_next_run(
    kind: str, inputs: str, fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    cluster = fake_cluster(kind, slots=8)
    place = lay_out(tmp_path, fake_site(cluster), inputs)
    place.write("kind", "")
    place.write("wait", "")
    run = place.start("run", "pipeline.py")
    until(lambda: place.starts() or run.poll() is not None, "the step at work")
    run.kill()
    run.communicate()
    again = place.start("run", "pipeline.py")
    until(lambda: len(place.runs()) == 2 or again.poll() is not None, "the second run")
    (place / "wait").unlink()
    out, err = again.communicate(timeout=60)
    assert again.returncode == 0, out + err
    assert place.starts() == ALL
    assert place.read(MADE) == "a b"
    assert previewed(place) == set()


FLOW = """
[workflow]
name = "mixed"
strict_shell = true

[[steps]]
module = "pipeline.py"

[[rules]]
name = "use"
input = ["{step.all}"]
output = ["out.txt"]
shell = "echo use >> starts; cat {input} > {output}"
"""


@pytest.mark.parametrize("killed", [False, True], ids=["at one go", "killed in between"])
@pytest.mark.parametrize("kind", ["here", "slurm", "sge"])
def test_a_rule_reads_what_has_grown_on_every_scheduler(
    kind: str, killed: bool, fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    site = HERE if kind == "here" else fake_site(fake_cluster(kind, slots=8))
    place = lay_out(tmp_path, site)
    place.write("main.oxoflow", FLOW)
    if killed:
        place.write("wait", "")
        run = place.start("run")
        until(lambda: place.starts() or run.poll() is not None, "the step at work")
        run.kill()
        run.communicate()
        (place / "wait").unlink()
    told = {task["rule"] for task in place.plan()["tasks"] if task["will_run"]}
    assert "use" in told
    assert killed or told == {"@look", "use"}  # a job goes on without its driver, and may be done by now
    place.treadle("run")
    assert place.read("out.txt") == "a b"
    again = place.starts().pop("look")
    assert again == 1 or (killed and again == 2)
    assert {name: times for name, times in place.starts().items() if name != "look"} == {
        "a": 1,
        "b": 1,
        "all": 1,
        "use": 1,
    }
    assert not any(task["will_run"] for task in place.plan()["tasks"])

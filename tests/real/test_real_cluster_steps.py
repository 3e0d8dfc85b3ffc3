"""Python steps on a real SLURM, alone and with rules; drivers in the background, or in jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_runs import Place, real_site
from schedulers.start import Scheduler
from waiting import until

pytestmark = pytest.mark.real
PIPELINE = """
import os, pathlib
from treadle import ResourceConfig, StepSpec

small = ResourceConfig(cpu=1)

def part(n):
    def made(out):
        with open("starts", "a") as file:
            file.write(f"part{n}\\n")
        pathlib.Path(out).write_text(f"{n} in {os.environ.get('SLURM_JOB_ID', 'no job')}")
    return made

def model(out, ctx):
    found = [pathlib.Path(ctx.path(one)).read_text().split()[0] for one in parts]
    pathlib.Path(out).write_text(" ".join(found))
    return {"parts": len(found)}

parts = [StepSpec("part", fn=part(n), hash_attrs={"n": n}, resources=small) for n in range(3)]
steps = [StepSpec("model", fn=model, deps=parts, resources=small)]
"""
SCRIPT = """
import pathlib, sys
from treadle import ClusterClient, StepRunner, use_client
import pipeline

with use_client(ClusterClient("there")):
    StepRunner().run(pipeline.steps)
"""
MIXED = """
[workflow]
name = "mixed"
strict_shell = true

[[steps]]
module = "counting.py"

[[rules]]
name = "clean"
input = ["raw.txt"]
output = ["clean.txt"]
shell = "echo clean >> starts; sort {input} > {output}"

[[rules]]
name = "use"
input = ["{step.count}"]
output = ["out.txt"]
shell = "echo use >> starts; cat {input} > {output}"
"""
COUNTING = """
import os, pathlib, time
from treadle import ResourceConfig, StepSpec

def length(out):
    with open("starts", "a") as file:
        file.write("count\\n")
    while os.path.exists("wait"):
        time.sleep(0.05)
    pathlib.Path(out).write_text(str(len(pathlib.Path("clean.txt").read_text())))

steps = [StepSpec("count", fn=length, inputs=["clean.txt"], resources=ResourceConfig(cpu=1))]
"""
CHAIN = """
[workflow]
name = "chain"
strict_shell = true

[[values]]
name = "n"
values = ["1", "2"]

[[rules]]
name = "one"
output = ["one/{n}.txt"]
shell = "echo one{n} >> starts; echo {n} > {output}"

[[rules]]
name = "all"
input = ["one/{n}.txt"]
output = ["all.txt"]
shell = "echo all >> starts; cat {input} > {output}"
"""


def made_in_jobs(place: Place) -> None:
    """The parts were made once, each in a job of SLURM."""
    assert place.starts() == {f"part{n}": 1 for n in range(3)}
    found = [path.read_text() for path in place.path.rglob("part_*") if path.suffix == "" and path.is_file()]
    assert sorted(text.split()[0] for text in found) == ["0", "1", "2"]
    assert not [text for text in found if "no job" in text]


def mixed(path: Path, slurm: Scheduler) -> Place:
    place = Place(path, real_site(slurm))
    place.write("main.oxoflow", MIXED)
    place.write("counting.py", COUNTING)
    place.write("raw.txt", "b\na\n")
    return place


def test_slurm_a_pipeline_of_steps_runs_in_jobs(slurm: Scheduler, tmp_path: Path) -> None:
    place = Place(tmp_path, real_site(slurm))
    place.write("pipeline.py", PIPELINE)
    place.treadle("run", "pipeline.py", seconds=120)
    made_in_jobs(place)
    assert "nothing to do" in place.treadle("plan", "pipeline.py")
    place.treadle("run", "pipeline.py")
    made_in_jobs(place)


def test_slurm_a_script_sends_its_steps_by_a_client(slurm: Scheduler, tmp_path: Path) -> None:
    place = Place(tmp_path, real_site(slurm))
    place.write("pipeline.py", PIPELINE)
    place.write("script.py", SCRIPT)
    argv = [sys.executable, "script.py"]
    done = subprocess.run(argv, cwd=tmp_path, env=place.env(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    made_in_jobs(place)


def test_slurm_rules_and_steps_are_one_plan(slurm: Scheduler, tmp_path: Path) -> None:
    place = mixed(tmp_path, slurm)
    place.treadle("run", seconds=120)
    assert place.read("out.txt") == "4"
    assert place.will_run() == (set(), set())
    place.write("raw.txt", "c\nb\na\n")
    place.treadle("run", seconds=120)
    assert place.read("out.txt") == "6"
    assert place.starts() == {"clean": 2, "count": 2, "use": 2}


def test_slurm_a_step_that_reads_files_is_taken_over(slurm: Scheduler, tmp_path: Path) -> None:
    place = mixed(tmp_path, slurm)
    place.write("wait", "")
    run = place.start("run")
    until(lambda: "count" in place.starts() or run.poll() is not None, "the step at work")
    run.kill()
    run.communicate()
    (place / "wait").unlink()
    place.treadle("run", seconds=120)
    assert place.read("out.txt") == "4"
    assert place.starts() == {"clean": 1, "count": 1, "use": 1}


def chain(path: Path, slurm: Scheduler) -> Place:
    place = Place(path, real_site(slurm), walltime="10m")
    place.write("main.oxoflow", CHAIN)
    return place


@pytest.mark.parametrize("how", ["--detach", "--as-job"])
def test_slurm_a_driver_that_is_left_alone_carries_all_of_it_out(
    how: str, slurm: Scheduler, tmp_path: Path
) -> None:
    place = chain(tmp_path, slurm)
    place.treadle("run", how)
    until(
        lambda: place.runs() and [one for one in place.events() if one["event"] == "run_ended"],
        "its end",
        120,
    )
    assert place.read("all.txt") == "1\n2\n"
    assert place.starts() == {"one1": 1, "one2": 1, "all": 1}
    told = json.loads(place.treadle("status", "--json"))
    assert told["exit_code"] == 0
    assert place.will_run() == (set(), set())

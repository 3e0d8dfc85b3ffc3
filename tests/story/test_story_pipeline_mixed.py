"""Rules and steps in one plan: edges both ways, edits, a kill in between, and errors of names and files."""

from __future__ import annotations

import json
import signal
import time

import pytest
from story_folder import Folder

STEPS = """
import os, pathlib, time
from treadle import StepSpec

def length(out):
    wait = pathlib.Path("wait")
    pathlib.Path("started").touch()
    while wait.exists():
        time.sleep(0.02)
    pathlib.Path(out).write_text(str(len(pathlib.Path("clean/all.txt").read_text())))

def model(out):
    os.mkdir(out)
    pathlib.Path(out, "weights.txt").write_text("w1")

count = StepSpec("count", fn=length, inputs=["clean/all.txt"])
base = StepSpec("base", fn=lambda out: pathlib.Path(out).write_text("base") and None)
steps = [StepSpec("model", fn=model, deps=[count, base])]
"""
FLOW = """
[[steps]]
module = "steps.py"

[[rules]]
name = "clean"
input = ["raw.txt"]
output = ["clean/all.txt"]
shell = "sort {input} > {output}"

[[rules]]
name = "use"
input = ["{step.model}/weights.txt"]
output = ["out.txt"]
params = { base = "{step.base}" }
shell = "cat {input} {params.base} > {output}; wc -c < {step.count} >> {output}"
"""


@pytest.fixture
def mixed(folder: Folder) -> Folder:
    folder.write("steps.py", STEPS)
    folder.write("raw.txt", "b\na\n")
    folder.flow(FLOW)
    return folder


def names(tasks: set[str]) -> set[str]:
    return {task.rpartition("_")[0] if task.startswith("@") else task for task in tasks}


ALL = {"clean", "use", "@count", "@base", "@model"}


def test_rules_and_steps_run_in_one_plan_and_are_up_to_date_after_it(mixed: Folder) -> None:
    assert names(mixed.run_as_previewed()) == ALL
    assert mixed.read("out.txt").startswith("w1base")
    assert mixed.run_as_previewed() == set()


def test_edges_go_both_ways(mixed: Folder) -> None:
    tasks = {next(iter(names({task["id"]}))): task for task in mixed.plan()["tasks"]}
    assert tasks["@count"]["needs"] == ["clean"]
    assert names(set(tasks["use"]["needs"])) == {"@model", "@count", "@base"}
    assert tasks["use"]["inputs"][0].endswith("/weights.txt")


def test_a_source_that_changes_runs_the_steps_that_read_what_is_made_of_it(mixed: Folder) -> None:
    mixed.treadle("run")
    mixed.write("raw.txt", "b\na\nc\n")
    assert names(mixed.run_as_previewed()) == {"clean", "@count", "@model", "use"}


def test_what_comes_out_the_same_cuts_off_what_follows(mixed: Folder) -> None:
    mixed.treadle("run")
    mixed.write("raw.txt", "a\nb\n")
    previewed = {task["id"]: task["may_cut_off"] for task in mixed.plan()["tasks"] if task["will_run"]}
    assert names(set(previewed)) == {"clean", "@count", "@model", "use"}
    assert not previewed["clean"]
    mixed.treadle("run")
    assert names(mixed.attempted()) == {"clean"}
    assert mixed.will_run() == set()


def test_previews_hold_over_edits_of_rules_and_of_steps(mixed: Folder) -> None:
    mixed.treadle("run")
    mixed.write("steps.py", STEPS.replace('StepSpec("base"', 'StepSpec("base", version="2"'))
    assert names(mixed.run_as_previewed()) == {"@base", "@model", "use"}
    mixed.flow(FLOW.replace("wc -c", "wc -l"))
    assert names(mixed.run_as_previewed()) == {"use"}
    mixed.write("steps.py", STEPS.replace('StepSpec("model"', 'StepSpec("model", hash_attrs={"n": 1}'))
    assert names(mixed.run_as_previewed()) == {"@model", "use"}  # `base` is as it was before, and still there
    assert names(mixed.run_as_previewed("count", "--force")) >= {"@count"}


def test_targets_may_be_rules_and_steps(mixed: Folder) -> None:
    assert names(mixed.will_run("clean")) == {"clean"}
    assert names(mixed.will_run("base")) == {"@base"}
    assert names(mixed.will_run("count")) == {"clean", "@count"}
    assert names(mixed.will_run("out.txt")) == ALL
    mixed.treadle("run")
    assert "its artifact is complete" in mixed.treadle("why", "base").stdout


def test_a_kill_in_between_loses_nothing(mixed: Folder) -> None:
    mixed.write("wait", "")
    process = mixed.start("run")
    mixed.until("started")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (mixed / "wait").unlink()
    previewed = names(mixed.will_run())
    assert "clean" not in previewed
    assert {"@count", "@model", "use"} <= previewed
    mixed.treadle("run")
    assert names(mixed.attempted()) == previewed
    assert mixed.read("out.txt").startswith("w1base")
    assert mixed.will_run() == set()


def test_a_mixed_run_holds_the_folder_and_a_pipeline_beside_it_does_not_mind(mixed: Folder) -> None:
    mixed.write("beside.py", 'from treadle import StepSpec\nsteps = [StepSpec("x", fn=lambda out: None)]\n')
    mixed.write("wait", "")
    process = mixed.start("run")
    mixed.until("started")
    assert str(process.pid) in mixed.treadle("run", exits=3).stderr
    assert "1 done" in mixed.treadle("run", "beside.py").stderr
    (mixed / "wait").unlink()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 0, told


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{step.model}", "{step.modle}", "did you mean 'model'?"),
        ("{step.count}", "{step.cuont}", "did you mean 'count'?"),
        ('module = "steps.py"', 'module = "stepps.py"', "did you mean 'steps.py'?"),
        ('module = "steps.py"', 'module = "steps.py"\nname = "nope"', "nope is no step of steps.py"),
        ('module = "steps.py"', 'module = "steps.py"\nparams = { n = 3 }', "there is no parameter 'n'"),
        ('module = "steps.py"', 'module = "steps.py"\nmodul = "x"', "did you mean 'module'?"),
        ('output = ["out.txt"]', 'output = ["{step.base}/out.txt"]', "cannot stand in a path"),
        ('output = ["out.txt"]', 'output = [".treadle/artifacts/x"]', ".treadle"),
    ],
)
def test_what_is_wrong_is_told_with_a_way_out(mixed: Folder, old: str, new: str, says: str) -> None:
    mixed.flow(FLOW.replace(old, new))
    told = mixed.treadle("plan", exits=2).stderr
    assert says in told
    assert "This is a bug" not in told


def test_errors_of_a_file_of_steps_are_its_own(mixed: Folder) -> None:
    mixed.write("steps.py", STEPS + "\n1 / 0\n")
    told = mixed.treadle("plan", exits=2).stderr
    assert "steps.py:" in told
    assert "ZeroDivisionError" in told


def test_an_artifact_at_a_url_is_refused_where_a_rule_reads_it(mixed: Folder) -> None:
    told = mixed.treadle("plan", "--prefix", "s3://bucket/x", exits=2).stderr
    assert "which no rule can read" in told


def test_steps_of_two_files_and_two_names_of_one(folder: Folder) -> None:
    text = (
        "from treadle import StepSpec\n"
        'write = lambda out: open(out, "w").write("x") and None\n'
        'steps = [StepSpec("same", hash_attrs={"n": NUMBER}, fn=write)]\n'
    )
    folder.write("one.py", text.replace("NUMBER", "1"))
    folder.write("two.py", text.replace("NUMBER", "2"))
    flow = """
[[steps]]
module = "one.py"
[[steps]]
module = "two.py"
prefix = "elsewhere"
[[rules]]
name = "r"
output = ["o"]
shell = "echo {step.same} > o"
"""
    folder.flow(flow)
    told = folder.treadle("plan", exits=2).stderr
    assert "2 steps are named 'same'" in told
    name = told.partition("{step.same_")[2].partition("}")[0]
    folder.flow(flow.replace("{step.same}", f"{{step.same_{name}}}"))
    assert len(folder.run_as_previewed()) == 3
    assert f"same_{name}" in folder.read("o")
    assert any(path.name.startswith("same_") for path in (folder / "elsewhere").iterdir())


def test_parameters_and_config_reach_the_function_of_a_file(folder: Folder) -> None:
    folder.write(
        "p.py",
        "from treadle import StepSpec\n"
        "def steps(n: int):\n"
        '    return [StepSpec(f"s{i}", fn=lambda out: None) for i in range(n)]\n',
    )
    folder.flow('[config]\nn = 2\n[[steps]]\nmodule = "p.py"\nparams = { n = "{config.n}" }\n')
    assert len(folder.plan()["tasks"]) == 2
    assert len(folder.plan("main.oxoflow", "n=3")["tasks"]) == 3


def test_a_step_that_a_rule_names_is_in_the_plan_though_what_builds_on_it_is_complete(mixed: Folder) -> None:
    mixed.treadle("run")
    base = mixed.treadle("path", "base").stdout.strip()
    mixed.treadle("clean", "--artifacts", "-y", "base")
    assert names(mixed.will_run()) == {"@base", "use"}
    mixed.treadle("run")
    assert names(mixed.attempted()) == {"@base"}  # it came out the same
    assert json.loads(mixed.treadle("path", "--json", "base").stdout)["steps"][0]["path"] == base


def test_a_rule_that_skips_does_not_stop_the_steps(folder: Folder) -> None:
    folder.write(
        "p.py", 'from treadle import StepSpec\nsteps = [StepSpec("a", fn=lambda out: None, inputs=["x"])]\n'
    )
    folder.flow(
        """
[[steps]]
module = "p.py"
[[rules]]
name = "r"
output = ["x"]
when = "false"
shell = "touch x"
"""
    )
    plan = {task["id"]: task["verdict"] for task in folder.plan()["tasks"]}
    assert plan["r"] == "skipped"
    assert next(verdict for task, verdict in plan.items() if task.startswith("@a")) == "skipped"


def test_a_workflow_of_steps_alone_runs(folder: Folder) -> None:
    folder.write("p.py", 'from treadle import StepSpec\nsteps = [StepSpec("a", fn=lambda out: None)]\n')
    folder.flow('[[steps]]\nmodule = "p.py"\n')
    began = time.monotonic()
    assert len(folder.run_as_previewed()) == 1
    assert folder.run_as_previewed() == set()
    assert time.monotonic() - began < 60

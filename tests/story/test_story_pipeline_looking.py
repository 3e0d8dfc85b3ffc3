"""Looking at a pipeline never runs it: plan, why, graph, path, status, and files that run themselves."""

from __future__ import annotations

import json

import pytest
from story_folder import Folder

PIPELINE = """
import pathlib
from treadle import StepSpec

def mark(text):
    def fn(out):
        pathlib.Path("ran").open("a").write(text + "\\n")
        pathlib.Path(out).write_text(text)
    return fn

tokenize = StepSpec(name="tokenize", fn=mark("tokens"), hash_attrs={"vocab": "v1"})
build_vocab = StepSpec(name="build_vocab", deps=[tokenize], fn=mark("vocab"), hash_attrs={"size": 1000})
train = StepSpec(name="train", deps=[tokenize, build_vocab], fn=mark("model"), hash_attrs={"lr": 3e-4})
steps = [train]
"""
LOOKS = [
    ("plan", "pipeline.py"),
    ("plan", "--json", "pipeline.py"),
    ("plan", "--tasks", "pipeline.py:train"),
    ("why", "pipeline.py:train"),
    ("why", "pipeline.py", "tokenize"),
    ("graph", "pipeline.py"),
    ("path", "pipeline.py"),
    ("check", "pipeline.py"),
]


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_a_look_runs_nothing_and_writes_nothing(folder: Folder, look: tuple[str, ...]) -> None:
    folder.write("pipeline.py", PIPELINE)
    folder.treadle(*look)
    assert not (folder / "ran").exists()
    assert not (folder / ".treadle").exists()


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_a_file_that_runs_its_steps_without_a_guard_is_only_looked_at(
    folder: Folder, look: tuple[str, ...]
) -> None:
    folder.write("pipeline.py", f"{PIPELINE}\nfrom treadle import StepRunner\nStepRunner().run(steps)\n")
    folder.treadle(*look)
    assert not (folder / "ran").exists()
    assert not (folder / ".treadle").exists()


def test_what_a_file_gives_to_its_runner_is_what_is_meant(folder: Folder) -> None:
    text = PIPELINE.replace("steps = [train]", "from treadle import StepRunner\nStepRunner().run([tokenize])")
    folder.write("pipeline.py", text)
    assert [task["rule"] for task in folder.plan("pipeline.py")["tasks"]] == ["@tokenize"]
    folder.treadle("run", "pipeline.py")
    assert folder.read("ran") == "tokens\n"


def test_a_file_that_uses_the_report_of_its_run_is_told_what_to_do(folder: Folder) -> None:
    text = f"{PIPELINE}\nfrom treadle import StepRunner\nprint(StepRunner().run(steps)['train'].path)\n"
    folder.write("pipeline.py", text)
    told = folder.treadle("plan", "pipeline.py", exits=2).stderr
    assert "KeyError" in told
    assert "__main__" in told


def test_the_plan_has_a_line_for_each_step_with_its_reasons(folder: Folder) -> None:
    folder.write("pipeline.py", PIPELINE)
    lines = folder.treadle("plan", "pipeline.py").stdout.splitlines()
    assert [line.split()[2].rpartition("_")[0] for line in lines] == ["@tokenize", "@build_vocab", "@train"]
    assert all(line.startswith("will run") and "never ran" in line for line in lines)
    folder.treadle("run", "pipeline.py")
    done = folder.treadle("plan", "pipeline.py")
    assert done.stdout.startswith("cached ")
    assert "nothing to do: 1 step cached" in done.stderr


def test_the_plan_as_json_shows_what_is_called(folder: Folder) -> None:
    folder.write("pipeline.py", PIPELINE)
    plan = folder.plan("pipeline.py")
    train = plan["tasks"][-1]
    assert plan["name"] == "pipeline.py"
    assert train["call"]["step"] == "train"
    assert train["call"]["attrs"] == {"lr": 3e-4}
    assert train["call"]["path"] == f".treadle/artifacts/{train['id'][1:]}"
    assert "command" not in train
    assert train["needs"] == sorted(task["id"] for task in plan["tasks"][:2])


def test_why_shows_the_nearest_older_artifact_and_what_differs(folder: Folder) -> None:
    folder.write("pipeline.py", PIPELINE)
    folder.treadle("run", "pipeline.py")
    folder.write("pipeline.py", PIPELINE.replace("3e-4", "1e-4"))
    told = folder.treadle("why", "pipeline.py:train").stdout
    assert "will run" in told
    assert "lr: 0.0003 -> 0.0001" in told
    assert folder.treadle("why", "pipeline.py", "train").stdout == told
    found = json.loads(folder.treadle("why", "--json", "pipeline.py:train").stdout)["tasks"][0]
    assert found["nearest"]["changes"] == [{"field": "lr", "old": "0.0003", "new": "0.0001"}]


def test_why_names_the_steps_below_that_are_others(folder: Folder) -> None:
    folder.write("pipeline.py", PIPELINE)
    folder.treadle("run", "pipeline.py")
    folder.write("pipeline.py", PIPELINE.replace('"v1"', '"v2"'))
    assert "built on tokenize: " in folder.treadle("why", "pipeline.py", "train").stdout
    assert 'vocab: "v1" -> "v2"' in folder.treadle("why", "pipeline.py", "tokenize").stdout


MADE = """
from treadle import step

@step
def tokens(vocab):
    return vocab

@step
def train(data, other=None, lr=0.1):
    return lr

first, second = tokens("v1"), tokens("w")
steps = [train(first, second)]
"""


def test_why_tells_once_that_a_step_among_the_arguments_is_another(folder: Folder) -> None:
    folder.write("pipeline.py", MADE)
    folder.treadle("run", "pipeline.py")
    folder.write("pipeline.py", MADE.replace('"v1"', '"v2"'))
    told = folder.treadle("why", "pipeline.py", "train").stdout
    assert "$step" not in told
    assert told.count("tokens") == told.count("built on tokens: ") == 1


def test_why_tells_that_steps_among_the_arguments_changed_places(folder: Folder) -> None:
    folder.write("pipeline.py", MADE)
    folder.treadle("run", "pipeline.py")
    folder.write("pipeline.py", MADE.replace("train(first, second)", "train(second, first)"))
    told = folder.treadle("why", "pipeline.py", "train").stdout
    assert "$step" not in told
    assert 'data: "tokens_' in told
    assert 'other: "tokens_' in told
    assert "built on" not in told


def test_why_tells_that_an_argument_became_a_step(folder: Folder) -> None:
    folder.write("pipeline.py", MADE)
    folder.treadle("run", "pipeline.py")
    folder.write("pipeline.py", MADE.replace("train(first, second)", "train(first, 3)"))
    told = folder.treadle("why", "pipeline.py", "train").stdout
    assert 'other: "tokens_' in told
    assert '" -> 3' in told


def test_a_cached_step_says_so(folder: Folder) -> None:
    folder.write("pipeline.py", PIPELINE)
    folder.treadle("run", "pipeline.py")
    assert "its artifact is complete" in folder.treadle("why", "pipeline.py", "tokenize").stdout


def test_a_cached_step_with_inputs_tells_of_these_and_of_no_command(folder: Folder) -> None:
    folder.write("in.txt", "x")
    folder.write("pipeline.py", PIPELINE.replace('size": 1000}', 'size": 1000}, inputs=["in.txt"]'))
    folder.treadle("run", "pipeline.py")
    told = folder.treadle("why", "pipeline.py", "build_vocab").stdout
    assert "its artifact is complete, and its inputs are as its last success left them" in told
    assert "command" not in told


def test_path_prints_where_an_artifact_stands(folder: Folder) -> None:
    folder.write("pipeline.py", PIPELINE)
    path = folder.treadle("path", "pipeline.py:train").stdout.strip()
    folder.treadle("run", "pipeline.py")
    assert folder.read(path) == "model"
    assert path.startswith(f"{folder.path}/.treadle/artifacts/train_")


def test_a_prefix_may_be_an_option_a_variable_or_a_url(folder: Folder) -> None:
    folder.write("pipeline.py", PIPELINE)
    name = folder.treadle("path", "pipeline.py:train").stdout.strip().rpartition("/")[2]
    assert (
        folder.treadle("path", "pipeline.py:train", "--prefix", "out").stdout == f"{folder.path}/out/{name}\n"
    )
    env = folder.env(TREADLE_PREFIX="s3://bucket/x/")
    assert folder.treadle("path", "pipeline.py:train", env=env).stdout == f"s3://bucket/x/{name}\n"
    assert folder.treadle("path", "pipeline.py:train", "--prefix", "/o", env=env).stdout == f"/o/{name}\n"


def test_code_that_changed_is_told_loudly_and_serves_the_old(folder: Folder) -> None:
    text = (
        'from treadle import StepSpec\nsteps = [StepSpec("a", fn=lambda out: open(out, "w").write("old"))]\n'
    )
    folder.write("pipeline.py", text)
    folder.treadle("run", "pipeline.py")
    folder.write("pipeline.py", text.replace("old", "new"))
    for command in ("plan", "run"):
        told = folder.treadle(command, "pipeline.py").stderr
        assert "served as other code made it: @a_" in told
        assert "--force" in told
    path = folder.treadle("path", "pipeline.py").stdout.strip()
    assert folder.read(path) == "old"
    folder.treadle("run", "--force", "pipeline.py")
    assert folder.read(path) == "new"


def test_a_stream_is_looked_at_as_far_as_a_look_goes(folder: Folder) -> None:
    folder.write(
        "pipeline.py",
        """
from itertools import count
from treadle import StepSpec

def steps():
    for i in count():
        yield StepSpec(f"s{i}", fn=print)
""",
    )
    plan = folder.plan("pipeline.py")
    assert len(plan["tasks"]) == 10_000
    assert plan["warnings"][0]["code"] == "stream-cut"

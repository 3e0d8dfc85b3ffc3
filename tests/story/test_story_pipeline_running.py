"""Pipelines run: their parameters, their failures, their streams, their growth, and what they print."""

from __future__ import annotations

import json
import pathlib

from story_folder import Folder
from story_pipeline import DIAMOND, artifact, pipeline


def test_a_run_ends_with_what_was_done_and_the_next_finds_it(folder: Folder) -> None:
    pipeline(folder, DIAMOND)
    first = folder.treadle("run", "pipeline.py")
    assert "4 steps of 4 will run" in first.stderr
    assert "4 done in" in first.stderr
    second = folder.treadle("run", "pipeline.py")
    assert "nothing to do: 1 step cached" in second.stderr
    assert len(folder.runs()) == 1
    assert "4 tasks: 4 done" in folder.treadle("status", "pipeline.py").stdout


def test_what_is_previewed_is_what_runs(folder: Folder) -> None:
    pipeline(folder, DIAMOND)
    assert len(folder.run_as_previewed("pipeline.py")) == 4
    assert folder.run_as_previewed("pipeline.py") == set()
    assert len(folder.run_as_previewed("pipeline.py", "b", "--force")) == 1
    assert len(folder.run_as_previewed("pipeline.py", "--force")) == 4
    pipeline(folder, DIAMOND.replace('StepSpec("b"', 'StepSpec("b", version="2"'))
    assert {task.rpartition("_")[0] for task in folder.run_as_previewed("pipeline.py")} == {"@b", "@d"}


def test_targets_are_names_patterns_paths_and_names_with_hash(folder: Folder) -> None:
    pipeline(folder, DIAMOND)
    path = folder.treadle("path", "pipeline.py", "b").stdout.strip()
    name = path.rpartition("/")[2]
    for target in ("b", name, f"@{name}", path, f".treadle/artifacts/{name}", "b_*", "@b*"):
        assert {one.rpartition("_")[0] for one in folder.will_run("pipeline.py", target)} == {"@a", "@b"}
    told = folder.treadle("run", "pipeline.py", "bb", "a", exits=2).stderr
    assert "bb is no step of pipeline.py" in told


def test_parameters_are_set_and_typed(folder: Folder) -> None:
    pipeline(
        folder,
        """
def steps(n: int, tag="x"):
    for i in range(n):
        yield StepSpec(f"s{i}", fn=lambda out: None, hash_attrs={"tag": tag})
""",
    )
    assert len(folder.plan("pipeline.py", "n=3")["tasks"]) == 3
    assert len(folder.plan("pipeline.py", "--n", "2")["tasks"]) == 2
    assert len(folder.plan("pipeline.py", "--config", "n=4")["tasks"]) == 4
    assert "needs a value for 'n'" in folder.treadle("plan", "pipeline.py", exits=2).stderr
    assert "'n' is a whole number" in folder.treadle("plan", "pipeline.py", "n=x", exits=2).stderr
    assert "did you mean 'tag'?" in folder.treadle("plan", "pipeline.py", "n=1", "tga=y", exits=2).stderr


FAILS = """
def bad(out):
    raise ValueError("no such layer")

a = StepSpec("bad", fn=bad)
steps = [StepSpec("after", fn=lambda out: None, deps=[a]), StepSpec("beside", fn=lambda out: None)]
"""


def test_a_failure_is_told_with_its_lines_and_the_rest_goes_on(folder: Folder) -> None:
    pipeline(folder, FAILS)
    told = folder.treadle("run", "pipeline.py", exits=1).stderr
    assert "ValueError: no such layer" in told
    assert f'File "{folder.path}/pipeline.py", line 5, in bad' in told
    assert "perform.py" not in told
    assert "1 done, 1 failed, 1 blocked" in told
    assert "try: treadle exec pipeline.py @bad_" in told
    assert (
        "its last attempt failed: ValueError: no such layer" in folder.treadle("plan", "pipeline.py").stdout
    )
    found = json.loads(folder.treadle("status", "--json").stdout)
    assert found["counts"]["failed"] == 1


def test_a_failure_may_end_the_run_where_that_is_asked(folder: Folder) -> None:
    text = FAILS.replace(
        "lambda out: None)]", "lambda out: None, deps=[StepSpec('x', fn=lambda out: time.sleep(.5))])]"
    )
    pipeline(folder, text)
    told = folder.treadle("run", "--no-keep-going", "--max-concurrent", "2", "pipeline.py", exits=1).stderr
    assert "done @beside" not in told


def test_a_step_in_a_process_has_a_log_and_one_in_a_thread_says_where_it_prints(folder: Folder) -> None:
    pipeline(
        folder,
        """
def talk(out):
    print("hello from", os.getpid())
    raise SystemExit(3)

steps = [StepSpec("far", fn=talk, isolation="process"), StepSpec("near", fn=lambda out: print("near by"))]
""",
    )
    run = folder.treadle("run", "pipeline.py", exits=1)
    assert "near by" in run.stdout
    assert "line 6, in talk" in run.stderr
    assert "worker.py" not in run.stderr
    assert "hello from" not in run.stdout
    assert "hello from" in folder.treadle("logs", "pipeline.py", "far").stdout
    near = folder.treadle("logs", "near")
    assert near.stdout == ""
    assert "has no log" in near.stderr


def test_the_json_of_a_run_is_not_disturbed_by_what_steps_print(folder: Folder) -> None:
    pipeline(
        folder, 'steps = [StepSpec("a", fn=lambda out: (print("noise"), os.write(1, b"more"), None)[2])]\n'
    )
    run = folder.treadle("run", "--json", "pipeline.py")
    assert json.loads(run.stdout)["counts"]["succeeded"] == 1
    assert "noise" in run.stderr
    assert "more" in run.stderr


STREAM = """
def steps(n: int = 30, fails: bool = False):
    for i in range(n):
        yield StepSpec(f"s{i}", fn=lambda out, i=i: pathlib.Path(out).write_text(str(i)) and None)
    if fails:
        raise ValueError("no more of them")
"""


def test_a_stream_is_run_as_it_comes(folder: Folder) -> None:
    pipeline(folder, STREAM)
    run = folder.treadle("run", "pipeline.py")
    assert "yields its steps one by one" in run.stderr
    assert "30 done" in run.stderr
    assert "40 done" not in folder.treadle("run", "pipeline.py", "n=40").stderr
    assert artifact(folder, "pipeline.py", "s39", "n=40") == "39"


def test_an_error_of_a_stream_is_told_when_what_runs_has_ended(folder: Folder) -> None:
    pipeline(folder, STREAM)
    run = folder.treadle("run", "pipeline.py", "fails=yes", exits=2)
    assert "30 done" in run.stderr
    assert "pipeline.py:8: ValueError: no more of them" in run.stderr


def test_targets_choose_from_a_stream(folder: Folder) -> None:
    pipeline(folder, STREAM)
    assert "1 done" in folder.treadle("run", "pipeline.py", "s7").stderr
    assert (
        "nosuch is no step of pipeline.py" in folder.treadle("run", "pipeline.py", "nosuch", exits=2).stderr
    )


def test_steps_grow_further_ones_and_the_next_preview_knows_them(folder: Folder) -> None:
    pipeline(
        folder,
        """
def more(count):
    return [StepSpec(f"part{i}", fn=lambda out: None) for i in range(count)]

steps = [StepSpec("split", fn=lambda out: 3, grow=more)]
""",
    )
    assert "4 done" in folder.treadle("run", "pipeline.py").stderr
    assert {task["rule"] for task in folder.plan("pipeline.py")["tasks"]} == {
        "@split", "@part0", "@part1", "@part2",
    }  # fmt: skip
    assert "nothing to do: 4 steps cached" in folder.treadle("run", "pipeline.py").stderr


def test_looking_tells_of_growth(folder: Folder) -> None:
    pipeline(
        folder,
        """
def more(count):
    return [StepSpec(f"part{i}", fn=lambda out: None, grow=once) for i in range(count)]

def once(value):
    return StepSpec("late", fn=lambda out: None)

steps = [StepSpec("split", fn=lambda out: 2, grow=more)]
""",
    )
    assert "grows further steps, known once it has run" in folder.treadle("plan", "pipeline.py").stderr
    assert "grows further steps, known once it has run" in folder.treadle("why", "pipeline.py:split").stdout
    told = folder.plan("pipeline.py")["discovered"]
    assert (told["found"], [one.rpartition("_")[0] for one in told["growing"]]) == ({}, ["@split"])
    drawn = json.loads(folder.treadle("graph", "--json", "pipeline.py").stdout)
    assert (drawn["edges"], drawn["perhaps"]) == ([["@split", "grown by @split"]], ["grown by @split"])
    unknown = folder.treadle("why", "pipeline.py:part1", exits=2).stderr
    assert "grows can be named once it has run" in unknown
    folder.treadle("run", "pipeline.py")
    assert "rounds: more work came" in folder.treadle("status").stdout
    after = folder.treadle("plan", "pipeline.py").stderr
    assert "grow further" not in after
    assert "as recorded: 2 steps" in after
    found = folder.plan("pipeline.py")["discovered"]["found"]
    assert {one.rpartition("_")[0]: told for one, told in found.items()} == {
        "@split": {"depth": 1, "steps": 2},
        "@part0": {"depth": 2, "steps": 1},
    }
    drawn = json.loads(folder.treadle("graph", "--json", "pipeline.py").stdout)["edges"]
    assert sorted(drawn) == [["@part0", "@late"], ["@split", "@part0"], ["@split", "@part1"]]
    told = folder.treadle("why", "pipeline.py", "part1", "late").stdout.splitlines()
    assert [line.partition("_")[0].strip() for line in told if "grown" in line] == [
        "grown by @split",
        "grown by @part0",
    ]
    (task,) = json.loads(folder.treadle("why", "--json", "pipeline.py:late").stdout)["tasks"]
    assert [one.rpartition("_")[0] for one in task["born"]] == ["@part0"]
    path = pathlib.Path(folder.treadle("path", "pipeline.py:part1").stdout.strip())
    assert path.name.startswith("part1_")
    folder.treadle("exec", "pipeline.py:part1")
    folder.treadle("clean", "--artifacts", "-y", "pipeline.py", "part1")
    assert {task.rpartition("_")[0] for task in folder.will_run("pipeline.py")} == {"@part1"}
    assert "1 done" in folder.treadle("run", "pipeline.py", "part1").stderr


def test_exec_calls_one_step_in_front_and_publishes_nothing(folder: Folder) -> None:
    pipeline(
        folder,
        """
first = StepSpec("first", fn=lambda out: pathlib.Path(out).write_text("1") and None)
def second(out, ctx):
    print("read", pathlib.Path(ctx.path(first)).read_text(), os.environ["COLOUR"])
    pathlib.Path(out).write_text("2")
    return {"score": 2}
steps = [StepSpec("second", fn=second, deps=[first], env_vars={"COLOUR": "red"})]
""",
    )
    told = folder.treadle("exec", "pipeline.py", "second", exits=2).stderr
    assert "builds on first_" in told
    assert "treadle run pipeline.py first_" in told
    folder.treadle("run", "pipeline.py", "first")
    before = folder.snapshot()
    tried = folder.treadle("exec", "pipeline.py", "second")
    assert tried.stdout == "read 1 red\n"
    assert "{'score': 2}" in tried.stderr
    made = tried.stderr.partition("it made ")[2].split()[0]
    assert pathlib.Path(made).read_text() == "2"
    assert folder.snapshot() == before
    assert {task.rpartition("_")[0] for task in folder.will_run("pipeline.py")} == {"@second"}


def test_exec_shows_what_a_step_raises_and_ends_with_1(folder: Folder) -> None:
    pipeline(folder, FAILS)
    tried = folder.treadle("exec", "pipeline.py", "bad", exits=1)
    assert "ValueError: no such layer" in tried.stderr
    assert "is a Python step" in folder.treadle("exec", "--print", "pipeline.py", "bad", exits=2).stderr


def test_a_step_may_run_steps_of_its_own(folder: Folder) -> None:
    pipeline(
        folder,
        """
def outer(out):
    inner = StepSpec("inner", fn=lambda path: pathlib.Path(path).write_text("i") and None)
    return StepRunner(prefix="inner").run([inner])["inner"].state

steps = [StepSpec("outer", fn=outer)]
""",
    )
    assert "1 done" in folder.treadle("run", "pipeline.py").stderr
    assert any(path.name.startswith("inner_") for path in (folder / "inner").iterdir())

"""What runs of steps say: refusals, reasons, and the way out."""

from __future__ import annotations

import os
import pathlib
import time
from typing import Any

import pytest
from story_folder import Folder
from story_steps import Calls, put

from treadle import OptionError, PlanError, ResourceConfig, StepError, StepRunner, StepSpec


def test_disk_space_that_there_is_not_is_refused_before_anything_runs(tmp_path: pathlib.Path) -> None:
    calls = Calls()
    first = StepSpec("first", fn=calls.put("first"))
    large = StepSpec("large", fn=calls.put("large"), deps=[first], resources=ResourceConfig(disk_gb=10**7))
    with pytest.raises(StepError, match=r"step 'large' asks for .* GB are free for .*large_"):
        StepRunner(workdir=tmp_path).run([large])
    assert not calls.names
    assert not (tmp_path / ".treadle").exists()


def alone(folder: pathlib.Path, name: str) -> StepSpec:
    """A step that fails when another one of the group is at work at the same time."""
    place = str(folder / "at-work")

    def work(out: str) -> None:
        os.mkdir(place)
        time.sleep(0.05)
        os.rmdir(place)

    return StepSpec(name, fn=work, resources=ResourceConfig(cpu=0.1, groups={"db": 1}))


def test_groups_of_a_runner_bound_how_many_steps_run_at_a_time(tmp_path: pathlib.Path) -> None:
    """In a list, in a stream, and among those that grow."""
    runner = StepRunner(workdir=tmp_path, groups={"db": 1})
    assert runner.run([alone(tmp_path, f"a{i}") for i in range(3)]).ok
    assert runner.run(alone(tmp_path, f"b{i}") for i in range(3)).ok
    grown = StepSpec("root", fn=lambda out: 3, grow=lambda n: [alone(tmp_path, f"c{i}") for i in range(n)])
    assert runner.run([grown]).counts == {"succeeded": 4}


def test_a_group_that_a_run_does_not_have_is_refused_with_the_way_to_name_it(tmp_path: pathlib.Path) -> None:
    with pytest.raises(PlanError) as caught:
        StepRunner(workdir=tmp_path).run([alone(tmp_path, "a")])
    (one,) = caught.value.diagnostics
    assert "which this run does not have" in one.message
    assert 'StepRunner(groups={"db": 2})' in one.hint
    many = StepSpec("many", fn=put("x"), resources=ResourceConfig(groups={"db": 3}))
    with pytest.raises(PlanError, match=r"which has 2[\s\S]*StepRunner\(groups=...\)"):
        StepRunner(workdir=tmp_path, groups={"db": 2}).run([many])


@pytest.mark.parametrize("groups", [["db"], {"db": 0}, {"db": True}, {3: 1}, {"db": "2"}])
def test_groups_that_are_no_counts_are_refused(groups: Any) -> None:
    with pytest.raises(OptionError, match="groups"):
        StepRunner(groups=groups)


def test_groups_of_the_files_runner_hold_for_the_command_too(folder: Folder) -> None:
    folder.write(
        "pipeline.py",
        "from treadle import ResourceConfig, StepRunner, StepSpec\n"
        "asked = ResourceConfig(groups={'db': 1})\n"
        "steps = [StepSpec('a', fn=lambda out: open(out, 'w').close(), resources=asked)]\n"
        "StepRunner(groups={'db': 1}).run(steps)\n",
    )
    assert "1 done" in folder.treadle("run", "pipeline.py").stderr


def test_the_hint_at_an_unknown_step_lists_the_tasks_of_its_file(folder: Folder) -> None:
    folder.write("my pipeline.py", "from treadle import StepSpec\nsteps = [StepSpec('train', fn=print)]\n")
    for command in ("plan", "why", "exec", "path"):
        told = folder.treadle(command, "my pipeline.py", "qqqqq", exits=2).stderr
        assert "treadle plan --tasks 'my pipeline.py' lists what there is" in told
    listed = folder.treadle("plan", "--tasks", "my pipeline.py").stdout
    assert "@train_" in listed


def test_the_hint_at_an_unknown_target_of_a_script_names_some_steps(tmp_path: pathlib.Path) -> None:
    steps = [StepSpec(name, fn=put("x")) for name in ("train", "score")]
    with pytest.raises(OptionError) as caught:
        StepRunner(workdir=tmp_path).run(steps, targets=["qqqqq"])
    assert caught.value.diagnostics[0].hint == "there are: train, score"

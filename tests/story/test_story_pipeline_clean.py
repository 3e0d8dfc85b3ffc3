"""Pipelines leave artifacts: `clean` deletes what no step names any more, and nothing else."""

from __future__ import annotations

import pathlib

from story_folder import Folder
from story_pipeline import DIAMOND, pipeline


def test_clean_deletes_what_no_step_names_any_more(folder: Folder) -> None:
    pipeline(folder, DIAMOND)
    folder.treadle("run", "pipeline.py")
    old = folder.treadle("path", "pipeline.py", "b", "d").stdout.split()
    pipeline(folder, DIAMOND.replace('StepSpec("b"', 'StepSpec("b", version="2"'))
    folder.treadle("run", "pipeline.py")
    listed = folder.treadle("clean", "--artifacts", "--unreachable", "-n", "pipeline.py").stdout.split()
    assert sorted(listed) == sorted(old)
    assert (
        "nobody is here to be asked"
        in folder.treadle("clean", "--artifacts", "--unreachable", "pipeline.py", exits=2).stderr
    )
    folder.treadle("clean", "--artifacts", "--unreachable", "-y", "pipeline.py")
    assert not any(pathlib.Path(path).exists() for path in old)
    assert folder.will_run("pipeline.py") == set()
    folder.treadle("clean", "--artifacts", "-y", "pipeline.py", "b")
    assert {task.rpartition("_")[0] for task in folder.will_run("pipeline.py", "b")} == {"@b"}


def test_clean_says_that_what_other_parameters_made_counts_as_unreachable(folder: Folder) -> None:
    step = "StepSpec('s', hash_attrs={'lr': lr}, fn=lambda out: 1)"
    pipeline(folder, f"def steps(lr: float = 0.1):\n    yield {step}\n")
    folder.treadle("run", "pipeline.py")
    folder.treadle("run", "pipeline.py", "lr=0.2")
    words = ("clean", "--artifacts", "--unreachable", "pipeline.py")
    told = folder.treadle(*words, exits=2).stderr
    assert "with the defaults of their parameters: what was made with others counts as unreachable" in told
    assert "with lr=0.2, and else the defaults: what was" in folder.treadle(*words, "-n", "lr=0.2").stderr
    assert "unreachable" not in folder.treadle(*words, "-y", "lr=0.3").stderr


def test_clean_keeps_what_another_named_pipeline_reaches_and_development_versions(folder: Folder) -> None:
    pipeline(folder, DIAMOND)
    pipeline(folder, 'steps = [StepSpec("mine", fn=lambda out: None)]\n', "other.py")
    pipeline(folder, 'steps = [StepSpec("draft", version="dev", fn=lambda out: None)]\n', "draft.py")
    for file in ("pipeline.py", "other.py", "draft.py"):
        folder.treadle("run", file)
    found = folder.treadle("clean", "--artifacts", "--unreachable", "-n", "pipeline.py", "other.py")
    assert found.stdout == ""
    assert "of a development version" in found.stderr
    alone = folder.treadle("clean", "--artifacts", "--unreachable", "-n", "pipeline.py").stdout
    assert "/mine_" in alone


def test_clean_does_not_guess_what_a_step_will_grow(folder: Folder) -> None:
    pipeline(folder, 'steps = [StepSpec("split", fn=lambda out: 1, grow=lambda n: [])]\n')
    told = folder.treadle("clean", "--artifacts", "--unreachable", "-n", "pipeline.py", exits=2).stderr
    assert "grows further steps" in told


def test_touch_and_evict_are_for_rules(folder: Folder) -> None:
    pipeline(folder, DIAMOND)
    folder.treadle("run", "pipeline.py")
    assert "steps have artifacts" in folder.treadle("touch", "pipeline.py", exits=2).stderr
    assert "steps have artifacts" in folder.treadle("evict", "pipeline.py", "a", exits=2).stderr
    assert "--artifacts" in folder.treadle("clean", "pipeline.py", exits=2).stderr

"""The example of a pipeline runs as it stands, and does what its first lines say."""

from __future__ import annotations

import pathlib
import shutil

from story_folder import Folder

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "steps"


def test_the_example_runs_and_is_cached_and_follows_its_parameter_and_its_texts(folder: Folder) -> None:
    shutil.copytree(
        EXAMPLE, folder.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".treadle", "__pyc*")
    )
    assert len(folder.run_as_previewed("pipeline.py")) == 10
    best = pathlib.Path(folder.treadle("path", "pipeline.py:best").stdout.strip()).read_text()
    assert [line.partition(":")[0] for line in best.splitlines()] == [
        *(f"order {n}" for n in range(1, 5)), "best",
    ]  # fmt: skip
    assert folder.run_as_previewed("pipeline.py") == set()
    assert len(folder.run_as_previewed("pipeline.py", "most=6")) == 5
    folder.write("texts/sonnet18.txt", "another text altogether")
    assert len(folder.run_as_previewed("pipeline.py")) == 10

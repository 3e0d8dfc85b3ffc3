"""Files and folders that are none, or lead nowhere, or in a circle."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from story_bad_input import refused, rule


def _link_to_itself(folder: Any) -> None:
    os.symlink("main.oxoflow", folder / "main.oxoflow")


def _folder(folder: Any) -> None:
    (folder / "main.oxoflow").mkdir()


def _pipe(folder: Any) -> None:
    os.mkfifo(folder / "main.oxoflow")


def _unreadable(folder: Any) -> None:
    folder.flow(rule("a"))
    (folder / "main.oxoflow").chmod(0)
    if os.access(folder / "main.oxoflow", os.R_OK):
        pytest.skip("whoever runs this may read everything")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_link_to_itself, "Too many levels of symbolic links"),
        (_folder, "is a folder, not a workflow file"),
        (_pipe, "it is a pipe or a device, not a file"),
        (_unreadable, "Permission denied"),
    ],
)
def test_a_workflow_file_that_cannot_be_read(folder, make: Callable[[Any], None], words):
    make(folder)
    (error,), _ = refused(folder)
    assert words in error["message"]
    assert "main.oxoflow" in error["message"]


def test_links_that_lead_nowhere_are_told_as_links(folder):
    folder.flow(rule("a", 'input = ["loop.txt", "data/gone.txt"]\n'))
    (folder / "data").mkdir()
    os.symlink("loop.txt", folder / "loop.txt")
    os.symlink("/nowhere/gone.txt", folder / "data" / "gone.txt")
    errors, _ = refused(folder)
    assert [error["hint"].partition(":")[0] for error in errors] == [
        "it is a symbolic link that leads nowhere"
    ] * 2


def test_folders_that_link_upwards_are_searched_once(folder):
    folder.flow(rule("a", 'input = ["data/**/*.fq"]\n'))
    folder.write("data/S1.fq", "")
    os.symlink("..", folder / "data" / "up")
    assert [task["inputs"] for task in folder.plan()["tasks"]] == [["data/S1.fq"]]

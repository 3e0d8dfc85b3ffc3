"""Pipelines in Python, written into a work folder, and what they make."""

from __future__ import annotations

import pathlib

from story_folder import Folder

HEAD = "import os, pathlib, sys, time\nfrom treadle import StepSpec, StepRunner, ResourceConfig\n"
DIAMOND = """
def write(text):
    return lambda out: pathlib.Path(out).write_text(text) and None

a = StepSpec("a", fn=write("a"))
b = StepSpec("b", fn=write("b"), deps=[a])
c = StepSpec("c", fn=write("c"), deps=[a])
steps = [StepSpec("d", fn=write("d"), deps=[b, c])]
"""


def pipeline(folder: Folder, text: str, name: str = "pipeline.py") -> None:
    """Write the file of a pipeline, with its imports."""
    folder.write(name, HEAD + text)


def artifact(folder: Folder, *words: str) -> str:
    """The content of the artifact that `treadle path` names."""
    return pathlib.Path(folder.treadle("path", *words).stdout.strip()).read_text()

"""A step that writes a folder."""

import pathlib

from treadle import StepSpec


def write(path: str) -> None:
    folder = pathlib.Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "words.txt").write_text("words\n")


steps = [StepSpec(name="words", fn=write)]

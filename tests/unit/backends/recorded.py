"""Recorded answers of real schedulers, out of `tests/fixtures/schedulers/`."""

from __future__ import annotations

import re
from pathlib import Path

from treadle.backends.cluster.dialect import Said

FOLDER = Path(__file__).parents[2] / "fixtures" / "schedulers"
_BLOCK = re.compile(r"^\$ (.*)\n((?:(?!\$ |\[exit |```).*\n)*)\[exit ([0-9]+)", re.MULTILINE)


def recorded(version: str, command: str, nth: int = 0) -> Said:
    """The answer to exactly this command; `nth` where it was given several times."""
    text = (FOLDER / f"{version}.md").read_text()
    answers = [found for found in _BLOCK.finditer(text) if found[1] == command]
    lines = answers[nth][2].splitlines(keepends=True)
    err = [line.removeprefix("[stderr] ") for line in lines if line.startswith("[stderr] ")]
    out = [line for line in lines if not line.startswith("[stderr] ")]
    return Said(int(answers[nth][3]), "".join(out), "".join(err))


def answers(version: str) -> list[Said]:
    """All of them, whatever the command."""
    text = (FOLDER / f"{version}.md").read_text()
    return [recorded(version, found[1]) for found in _BLOCK.finditer(text)]

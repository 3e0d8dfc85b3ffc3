"""Everything that the engine notes has a sentence."""

from __future__ import annotations

import ast
import pathlib

import pytest

import treadle
from treadle.cli.words import notice
from treadle.records.event import Noticed

ENGINE = pathlib.Path(treadle.__file__).parent / "engine"
VALUES = {
    "threads": "2",
    "tasks": "3",
    "path": "out/a.txt",
    "aside": "out/a.txt.failed",
    "problem": "cannot write",
    "message": "it is gone",
}


def codes() -> list[str]:
    """The codes that the engine gives to notes, as they stand in its text."""
    found = set()
    for file in sorted(ENGINE.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                first = node.args[0] if node.args else None
                if node.func.attr in ("noticed", "_note", "note") and isinstance(first, ast.Constant):
                    found.add(str(first.value))
    return sorted(found)


def test_the_engine_notes_something() -> None:
    assert {"capped", "disk_waiting", "set_aside"} <= set(codes())


@pytest.mark.parametrize("code", codes())
def test_every_note_of_the_engine_has_words_of_its_own(code: str) -> None:
    said = notice(Noticed(time=0.0, code=code, task="a/sample=S1", values=VALUES))
    assert not said.startswith(f"note: {code.replace('_', ' ')} ")
    assert "{" not in said


def test_a_request_that_was_cut_is_told_with_what_there_is() -> None:
    cut = {"memory": str(3 * 1024**3 // 2), "tasks": "1"}
    said = notice(Noticed(time=0.0, code="capped", task="big", values=cut))
    assert said == "warning: big asks for more than there is: 1.5G of memory is all that one task can get"

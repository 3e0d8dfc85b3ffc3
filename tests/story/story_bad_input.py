"""Words for messy input: a workflow file, what must be said about it, and that nothing else happens."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

HEAD = '[workflow]\nname = "messy"\nstrict_shell = true\n'  # three lines: what follows begins at line 4
COMMAND = 'shell = "touch {output}"\n'


def rule(name: str, body: str = "", *, command: str = COMMAND) -> str:
    """A rule of three lines and `body`; it makes `<name>.txt` unless the body names an output."""
    output = "" if "output" in body else f'output = ["{name}.txt"]\n'
    return f'[[rules]]\nname = "{name}"\n{output}{body}{command}'


class Case(NamedTuple):
    """A workflow file and what must be said about it: `told` are (place, words), in this order."""

    text: str | bytes
    told: list[tuple[str, str]]
    head: str = HEAD
    files: tuple[tuple[str, str | bytes], ...] = ()
    args: tuple[str, ...] = ()


def refused(folder: Any, *args: str) -> tuple[list[dict[str, Any]], str]:
    """Run it with `--json`; the errors as objects and what was said, when nothing else happened."""
    before = sorted(os.listdir(folder.path))
    done = folder.treadle("run", "--json", *args, exits=2)
    assert sorted(os.listdir(folder.path)) == before, "nothing is run, and nothing written"
    found = json.loads(done.stdout)
    assert found["schema"] == 1
    assert found["exit_code"] == 2
    for error in found["errors"]:
        assert error["code"] == error["code"].lower()
        assert error["severity"] == "error"
        assert len(error["message"]) < 1500, "long texts are cut"
    said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(said) == len(found["errors"]), "the same for people and for programs"
    return found["errors"], done.stderr


def is_told(folder: Any, case: Case) -> None:
    """What is wrong is told where it stands, by as many errors as are expected, and nothing else happens."""
    content = case.text if isinstance(case.text, bytes) else (case.head + case.text).encode()
    (folder / "main.oxoflow").write_bytes(content)
    for file, text in case.files:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    errors, said = refused(folder, *case.args)
    told = [block for block in said.split("error: ") if block]
    assert len(told) == len(case.told), said
    for block, (place, words) in zip(told, case.told):
        assert place in block.splitlines()[0], said
        assert words in block, said
    assert all(any(error["place"].values()) or not place for error, (place, _) in zip(errors, case.told))
    assert "hunter2secret" not in said + json.dumps(errors)

"""Every code that `check` can give is explained, and the workflow of its page gives it."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from treadle.api.check import check
from treadle.base.errors import UserError
from treadle.base.place import Diagnostic
from treadle.cli import check_command
from treadle.cli.codes import GROUPS, Explained, explained
from treadle.cli.main import main
from treadle.cli.options import request_of, subcommand_parser

PAGE = Path(__file__).parents[3] / "docs" / "messages.md"
CODES = explained()
SHOWN = [one for one in CODES.values() if one.flow]

# No short text shows them: bytes that are no text, what is too large, other files, other machines.
NOT_SHOWN = {
    *("cannot-fetch", "unknown-ref", "pin-not-asked"),
    "too-many-includes",
    *("no-file", "cannot-read", "not-utf8", "nul-character", "too-deep", "too-long", "not-text"),
    *("no-value", "bad-file-name", "beyond-site", "cut-by-site"),
    *("bad-path", "duplicate-task", "two-spellings", "gather-skipped"),
}
# Of other commands than `check`, and of runs.
ELSEWHERE = {
    *("cannot-format", "protected-output", "no-tool", "environment-not-there", "group-too-small"),
    *("gpus-not-there", "nodes-not-there", "started-task-changed"),
    *("bad-manifest", "not-extended", "too-deep-discovery"),
}


def found(one: Explained, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Diagnostic]:
    for name, text in {"main.oxoflow": one.workflow(), **one.files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(folder / "nobody"))
    parser = subcommand_parser("check", "codes")
    check_command.configure(parser)
    try:
        told = check(request_of(parser.parse(shlex.split(one.args))))
    except UserError as error:
        return list(error.diagnostics)
    return [*told.errors, *told.warnings]


@pytest.mark.parametrize("one", SHOWN, ids=lambda one: one.code)
def test_the_workflow_of_a_page_gives_its_code(
    one: Explained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = found(one, tmp_path, monkeypatch)
    assert one.code in [each.code for each in told], told
    assert {str(each.severity) for each in told if each.code == one.code} == {one.kind}
    assert one.kind == "warning" or {each.code for each in told if each.severity == "error"} == {one.code}


def test_codes_that_no_text_shows_are_few_and_known() -> None:
    assert {one.code for one in CODES.values() if not one.flow} == NOT_SHOWN


@pytest.mark.parametrize("group", GROUPS)
def test_every_code_of_check_is_explained(group: str) -> None:
    part = re.search(rf"^## {re.escape(GROUPS[group])}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    assert part is not None
    cells = re.findall(r"^\| (`[^|]*) \|", part[1], re.M)
    listed = set(re.findall(r"`([a-z0-9-]+)`", "\n".join(cells)))
    assert listed - ELSEWHERE == {one.code for one in CODES.values() if one.group == group}


def test_the_pages_are_as_the_texts_that_ship() -> None:
    folder = PAGE.parent / "codes"
    spec = importlib.util.spec_from_file_location("make_codes", PAGE.parent / "make_codes.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert {file.name: file.read_text() for file in folder.iterdir()} == made.pages(), "make docs"


def test_a_code_is_explained_at_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "unknown-key"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("unknown-key\n\n")
    assert "outptu" in told
    assert main(["check", "--explain", "unknown-kye"]) == 2
    assert "did you mean 'unknown-key'?" in capsys.readouterr().err

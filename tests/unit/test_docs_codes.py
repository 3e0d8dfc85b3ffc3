"""docs/messages.md lists every code that an error or a warning can have, and no other.

Codes are found in the text of the package: every string there that looks like one is taken for one unless
it stands in `NO_CODES`, so that a new code cannot be forgotten, wherever it is written down.
"""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import treadle

PACKAGE = pathlib.Path(treadle.__file__).parent
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "messages.md"

KEBAB = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+\Z")
# At the place of a code; those of notes about a run have underscores.
CODE = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z")
# Strings that look like a code and are none: names of encodings, of a command, a group, of threads; of git.
NO_CODES = {
    *("utf-8", "utf-8-sig", "dry-run", "auto-discovered"),
    *("conda-meta", "treadle-aside", "treadle-attempt", "treadle-heart", "treadle-jobs", "treadle-leases"),
    *("treadle-plan", "treadle-pull", "treadle-step", "treadle-store"),
    *("ls-remote", "ls-files", "rev-parse", "update-index", "write-tree"),
}
# Rooms that speak to schedulers, whose options look like codes: what stands where a code is wanted counts.
OPTION_ROOMS = ("backends/cluster", "testing/schedulers")
# Codes that are put together, by the text that does it.
COMPOSED = {
    "f'shared-{kind}'": {"shared-log", "shared-benchmark"},
    "f'{kind}-in-output'": {"log-in-output", "benchmark-in-output"},
    "f'unknown-{root}'": {"unknown-input", "unknown-output"},
}
# What makes a finding, its code first; and what takes it by name.
MAKERS = {
    *("error", "warn", "note", "problem", "_error", "_problem", "_smell", "Diagnostic"),
    *("UnfitError", "ConditionError"),
}


def trees() -> Iterator[tuple[ast.Module, bool]]:
    """Every module, and whether a string that looks like a code is one there, wherever it stands."""
    for file in sorted(PACKAGE.rglob("*.py")):
        speaks_options = file.parent.relative_to(PACKAGE).as_posix().startswith(OPTION_ROOMS)
        yield ast.parse(file.read_text(), str(file)), not speaks_options


def at_code_places(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions that stand where a code is wanted."""
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                if name in MAKERS and node.args:
                    yield node.args[0]
                yield from (one.value for one in node.keywords if one.arg == "code")
            case ast.AnnAssign(target=ast.Name(id="code"), value=ast.expr() as value):
                yield value
            case ast.Assign(targets=[ast.Name(id="code")], value=value):
                yield value


def codes() -> set[str]:
    """Every code that the package can give."""
    found: set[str] = set()
    for tree, anywhere in trees():
        for node in ast.walk(tree) if anywhere else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and KEBAB.match(node.value):
                found.add(node.value)
        for place in at_code_places(tree):
            if isinstance(place, ast.Constant) and CODE.match(str(place.value)):
                found.add(str(place.value))
            elif isinstance(place, ast.JoinedStr):
                text = ast.unparse(place)
                if re.fullmatch(r"f'[a-z{}-]+'", text):
                    assert text in COMPOSED, f"say in this test which codes {text} stands for"
                    found |= COMPOSED[text]
    return found - NO_CODES


def listed() -> list[str]:
    """The codes in the tables of the page, in order."""
    first_cells = re.findall(r"^\| (`[^|]*) \|", PAGE.read_text(), re.M)
    return re.findall(r"`([a-z0-9-]+)`", "\n".join(first_cells))


def test_the_page_lists_every_code() -> None:
    assert codes() - set(listed()) == set()


def test_the_page_lists_no_code_that_cannot_be_given() -> None:
    assert set(listed()) - codes() == set()


def test_the_page_lists_each_code_once() -> None:
    assert sorted(set(listed())) == sorted(listed())


def test_every_string_that_is_excepted_is_there() -> None:
    text = "\n".join(file.read_text() for file in PACKAGE.rglob("*.py"))
    assert {word for word in NO_CODES if f'"{word}"' not in text} == set()

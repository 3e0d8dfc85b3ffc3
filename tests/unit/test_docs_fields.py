"""docs/format.md has a row for every table and field that a workflow file may hold, with its state."""

from __future__ import annotations

import pathlib
import re

import pytest

from treadle.rules.toml import fields
from treadle.rules.toml.fields import Field, State

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "format.md").read_text()
WORDS = {
    State.WORKS: "",
    State.REPORT: "kept",
    State.NO_EFFECT: "no effect",
    State.SCHEDULER: "scheduler",
    State.INSTEAD: "instead",
}
# The part of the page, and the fields that have their rows there.
PARTS = {
    "workflow": fields.WORKFLOW,
    "defaults": fields.DEFAULTS,
    "config": fields.DECLARED,
    "rules": {
        name: one for name, one in fields.RULE.items() if name not in ("resources", "threads", "memory")
    },
    "resources": fields.RESOURCES,
}
TITLES = {"workflow": "[workflow]", "defaults": "[defaults]", "config": "[config]", "rules": "[[rules]]"}


def part(name: str) -> str:
    """The page from one heading of the second level to the next."""
    found = re.search(rf"^## {re.escape(TITLES.get(name, name))}\n(.*?)(?=^## )", PAGE, re.M | re.S)
    assert found, f"there is no part {name}"
    return found[1]


def rows(text: str) -> dict[str, str]:
    """Field -> state, from rows of three cells; a row may name several fields."""
    found: dict[str, str] = {}
    for line in re.findall(r"^\| (`.*)\|$", text, re.M):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        for name in re.findall(r"`\[{0,2}([a-z_]+)\]{0,2}`", cells[0]):
            assert name not in found, f"{name} has two rows"
            found[name] = cells[2]
    return found


@pytest.mark.parametrize("name", PARTS)
def test_every_field_has_a_row_that_says_its_state(name: str) -> None:
    wanted = {field: WORDS[one.state] for field, one in PARTS[name].items()}
    assert rows(part(name)) == wanted


def test_every_table_has_a_row_that_says_its_state() -> None:
    wanted = {name: WORDS[top.state] for name, top in fields.TOP.items()}
    assert rows(part("Tables")) == wanted


@pytest.mark.parametrize(
    "found",
    [
        *(fields.PAIR, fields.SAMPLE_GROUP, fields.VALUE_LIST, fields.FREE_TABLE, fields.GPU_SPEC),
        *(fields.FAN_IN, fields.INCLUDE, fields.EXECUTION_GROUP, fields.BUDGET),
    ],
)
def test_fields_of_small_tables_are_named(found: dict[str, Field]) -> None:
    assert [name for name in found if not re.search(rf"\b{name}\b", PAGE)] == []


def test_every_field_of_references_is_told_of() -> None:
    assert set(re.findall(r"`([a-z_]+)`", part("[[references]]"))).issuperset(fields.REFERENCE)


def test_every_field_of_scatter_and_transform_is_told_of() -> None:
    told = set(re.findall(r"`([a-z_]+)`", part("Scatter and transform")))
    for table in (fields.SCATTER, fields.TRANSFORM, fields.SPLIT, fields.COMBINE):
        assert told.issuperset(table)

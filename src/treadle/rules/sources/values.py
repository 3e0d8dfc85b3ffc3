"""Values of the author's own: `[[values]]`, one wildcard each, and `[[tables]]`, one wildcard a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.rules.schema import Source
from treadle.rules.sources.cells import Columns, check_values, paths_among, usable
from treadle.rules.sources.rows import (
    PAIR_ALIASES,
    PAIR_COLUMNS,
    SAMPLE_COLUMNS,
    Constraints,
    PlaceOf,
    proper_columns,
    texts,
    wildcards,
)
from treadle.rules.sources.sheets import read_sheet
from treadle.rules.text.placeholder import spelled
from treadle.rules.toml.fields import FREE_TABLE, VALUE_LIST
from treadle.rules.toml.kinds import scalar, table, take
from treadle.rules.toml.section import Section, clip

_ENGINES_OWN = frozenset((*PAIR_COLUMNS, *PAIR_ALIASES, *SAMPLE_COLUMNS))


def value_list(section: Section, constraints: Constraints) -> Source | None:
    """One `[[values]]` table: a wildcard and its values, each once, in the author's order.

    Those of `values_from` are filled in when the config is known.
    """
    got = take(section, VALUE_LIST, "a list of values")
    for key in ("name", "values"):
        if key not in section.table and not (key == "values" and "values_from" in section.table):
            section.error("missing-key", f"'{key}' is missing in this [[values]]")
    if "values" in section.table and "values_from" in section.table:
        message = "'values' has no effect here: 'values_from' says where they come from"
        section.warn("no-effect", message, "values")
    if got.get("values") == []:
        section.error("empty", "this list has no values", "values")
    name, values = got.get("name", ""), texts(section, got.get("values", ()), ("values",))
    if why := name and usable(name, _ENGINES_OWN):
        section.error("reserved-name", f"'{clip(name)}' cannot be a wildcard: it {why}", "name")
    if not name or why:
        return None
    given = got.get("values_from", "").removeprefix("config.")
    once = list(dict.fromkeys(values))
    if len(once) < len(values):
        section.warn("duplicate-value", "some values stand here more than once; each counts once", "values")
    check_values({name: once}, lambda _at: section.place("values"), constraints, section.findings)
    rows = tuple((value,) for value in once)
    label = f"values.{name}"
    place = section.place("values_from") if given else section.place()
    return Source(kind="values", label=label, columns=(name,), rows=rows, given=given, place=place)


def free_table(section: Section, folder: str) -> Source | None:
    """One `[[tables]]` table: every column is a wildcard, and its values may be paths."""
    got = take(section, FREE_TABLE, "a table of values")
    if "name" not in section.table:
        section.error("missing-key", "this [[tables]] has no name")
    if ("file" in section.table) == ("rows" in section.table):
        section.error("missing-key", "a table has either 'file' or 'rows'")
        return None
    read = _from_sheet(section, got["file"], folder) if "file" in got else _inline(section, got)
    if read is None:
        return None
    columns, place = read
    check_values(columns, place, {}, section.findings, free=True)
    return Source(
        kind="table",
        label=f"tables.{clip(got.get('name', ''))}",
        columns=tuple(columns),
        rows=tuple(zip(*columns.values())),
        free=paths_among(columns),
        place=section.place(),
    )


def _from_sheet(section: Section, file: str, folder: str) -> tuple[Columns, PlaceOf] | None:
    sheet = read_sheet(file, folder, section.findings, section.place("file"))
    if sheet is None:
        return None
    columns = proper_columns(sheet, {}, (), section.findings)
    return wildcards(sheet, columns, (), (), section.findings), sheet.place


def _inline(section: Section, got: Mapping[str, Any]) -> tuple[Columns, PlaceOf]:
    rows = [
        _inline_row(section.inner(value, "rows", at))
        for at, value in enumerate(got.get("rows", ()))
        if table(section, value, "a table of column = value", ("rows", at)) is not None
    ]
    names = dict.fromkeys(column for row in rows for column in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return columns, lambda at: section.place("rows", at)


def _inline_row(section: Section) -> dict[str, str | None]:
    row: dict[str, str | None] = {}
    for key, value in section.table.items():
        if why := usable(key):
            section.error("bad-name", f"'{clip(key)}' cannot be a wildcard: it {why}", key)
        elif (one := scalar(section, value, (key,), "a text or a number")) is not None:
            row[key] = spelled(one) or None
    return row

"""Values of the author's own: `[[values]]`, one wildcard each, and `[[tables]]`, one wildcard a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.rules.cells import Row, check_values, paths_among, usable
from treadle.rules.fields import FREE_TABLE, VALUE_LIST
from treadle.rules.kinds import scalar, table, take
from treadle.rules.placeholder import spelled
from treadle.rules.schema import Source
from treadle.rules.section import Section, clip
from treadle.rules.sheets import read_sheet
from treadle.rules.source_rows import (
    PAIR_ALIASES,
    PAIR_COLUMNS,
    SAMPLE_COLUMNS,
    Constraints,
    one_text,
    proper_columns,
    texts,
    usable_columns,
)

_ENGINES_OWN = frozenset((*PAIR_COLUMNS, *PAIR_ALIASES, *SAMPLE_COLUMNS))


def value_list(section: Section, constraints: Constraints) -> Source | None:
    """One `[[values]]` table: a wildcard and its values, each once, in the author's order."""
    got = take(section, VALUE_LIST, "a list of values")
    for key in VALUE_LIST:
        if key not in section.table:
            section.error("missing-key", f"'{key}' is missing in this [[values]]")
    if got.get("values") == []:
        section.error("empty", "this list has no values", "values")
    name, values = got.get("name", ""), texts(section, got.get("values", ()), ("values",))
    if why := name and usable(name, _ENGINES_OWN):
        section.error("reserved-name", f"'{clip(name)}' cannot be a wildcard: it {why}", "name")
    if not name or why:
        return None
    rows: list[Row] = [{name: value} for value in dict.fromkeys(values)]
    if len(rows) < len(values):
        section.warn("duplicate-value", "some values stand here more than once; each counts once", "values")
    check_values(rows, lambda _at: section.place("values"), [name], constraints, section.findings)
    return Source(
        kind="values",
        label=f"values.{name}",
        columns=(name,),
        rows=tuple((row[name],) for row in rows),
        place=section.place(),
    )


def free_table(section: Section, folder: str) -> Source | None:
    """One `[[tables]]` table: every column is a wildcard, and its values may be paths."""
    got = take(section, FREE_TABLE, "a table of values")
    if "name" not in section.table:
        section.error("missing-key", "this [[tables]] has no name")
    if ("file" in section.table) == ("rows" in section.table):
        section.error("missing-key", "a table has either 'file' or 'rows'")
        return None
    rows = _sheet_rows(section, got["file"], folder) if "file" in got else _inline_rows(section, got)
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    where = "file" if "file" in got else "rows"
    check_values(rows, lambda _at: section.place(where), columns, {}, section.findings, free=True)
    return Source(
        kind="table",
        label=f"tables.{clip(got.get('name', ''))}",
        columns=columns,
        rows=tuple([tuple([row.get(column) for column in columns]) for row in rows]),
        free=paths_among(rows, columns),
        place=section.place(),
    )


def _sheet_rows(section: Section, file: str, folder: str) -> list[Row]:
    sheet = read_sheet(file, folder, section.findings, section.place("file"))
    if sheet is None:
        return []
    columns = proper_columns(sheet, {}, (), section.findings)
    kept = usable_columns(sheet, columns, (), (), section.findings)
    named = [(n, columns[n]) for n in kept]
    if all(cell is None or isinstance(cell, str) for row in sheet.rows for cell in row):
        return [{column: row[n] for n, column in named} for row in sheet.rows]  # type: ignore[misc]
    return [
        {column: one_text(sheet, at, column, row[n], section.findings) for n, column in named}
        for at, row in enumerate(sheet.rows)
    ]


def _inline_rows(section: Section, got: Mapping[str, Any]) -> list[Row]:
    rows: list[Row] = []
    for at, value in enumerate(got.get("rows", ())):
        if table(section, value, "a table of column = value", ("rows", at)) is not None:
            rows.append(_inline_row(section.inner(value, "rows", at)))
    return rows


def _inline_row(section: Section) -> Row:
    row: dict[str, str | None] = {}
    for key, value in section.table.items():
        if why := usable(key):
            section.error("bad-name", f"'{clip(key)}' cannot be a wildcard: it {why}", key)
        elif (one := scalar(section, value, (key,), "a text or a number")) is not None:
            row[key] = spelled(one) or None
    return row

"""Samples in named groups: `[[sample_groups]]` and group sheets as one source of values."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.rules.schema import Source
from treadle.rules.sources.rows import (
    SAMPLE_COLUMNS,
    Constraints,
    Rows,
    metadata,
    proper_columns,
    texts,
    wildcards,
)
from treadle.rules.sources.sheets import Cell, Sheet
from treadle.rules.toml.fields import SAMPLE_GROUP
from treadle.rules.toml.kinds import take
from treadle.rules.toml.section import Findings, Section

# A sheet may have one row for a group or one for a sample: the column is named accordingly.
_ALIASES = {"group": "name", "sample": "samples"}
_OWN = ("name", "samples")


def samples(
    sections: Iterable[Section], sheets: Iterable[Sheet], constraints: Constraints, findings: Findings
) -> Source | None:
    """All sample groups as one source: `sample`, `group`, and the metadata of the groups."""
    rows = Rows("samples", SAMPLE_COLUMNS, findings)
    for section in sections:
        _inline(section, rows)
    for sheet in sheets:
        _from_sheet(sheet, rows)
    return rows.source("sample_groups", SAMPLE_COLUMNS, constraints)


def _inline(section: Section, rows: Rows) -> None:
    got = take(section, SAMPLE_GROUP, "a sample group")
    for key in _OWN:
        if key not in section.table and key not in got.get("metadata", {}):
            section.error("missing-key", f"this sample group has no '{key}'")
        elif got.get(key) == "":
            section.error("empty", "this sample group has an empty name", key)
    more = {"group": got.get("name") or None, **metadata(section, got, SAMPLE_COLUMNS)}
    names: list[str | None] = list(texts(section, got.get("samples", ()), ("samples",)))
    columns = {"sample": names, **{column: [cell] * len(names) for column, cell in more.items()}}
    place = section.place("samples")
    rows.add(columns, len(names), lambda _at: place)


def _from_sheet(sheet: Sheet, rows: Rows) -> None:
    """One row for each sample of a cell. A sheet without groups (`--samples @names.txt`) gives none."""
    findings = rows.findings
    columns = proper_columns(sheet, _ALIASES, ("samples",), findings)
    if not columns:
        return
    given = columns.pop("samples")
    kept = wildcards(sheet, columns, _OWN, SAMPLE_COLUMNS, findings)
    names: list[str | None] = []
    rows_of: list[int] = []  # the row of the sheet that each name comes from
    for at, cell in enumerate(given):
        found = _names(cell)
        names += found
        rows_of += [at] * len(found)
        if not found or (kept.get("name") and kept["name"][at] is None):
            what = "name" if found else "samples"
            findings.error("missing-key", f"this row has no {what}", sheet.place(at))
    spread = {column: [cells[at] for at in rows_of] for column, cells in kept.items()}
    groups = spread.pop("name", [None] * len(names))
    rows.add({"sample": names, "group": groups, **spread}, len(names), lambda at: sheet.place(rows_of[at]))


def _names(cell: Cell) -> list[str]:
    if isinstance(cell, str) and "," not in cell:
        return [cell]
    parts = cell.split(",") if isinstance(cell, str) else cell or ()
    return [part.strip() for part in parts if part.strip()]

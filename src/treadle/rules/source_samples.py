"""Samples in named groups: `[[sample_groups]]` and group sheets as one source of values."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.rules.fields import SAMPLE_GROUP
from treadle.rules.kinds import take
from treadle.rules.schema import Source
from treadle.rules.section import Findings, Section
from treadle.rules.sheets import Sheet
from treadle.rules.source_rows import (
    SAMPLE_COLUMNS,
    Constraints,
    Rows,
    metadata,
    one_text,
    proper_columns,
    texts,
    usable_columns,
)

# A sheet may have one row for a group or one for a sample: the column is named accordingly.
_ALIASES = {"group": "name", "sample": "samples"}


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
    for key in ("name", "samples"):
        if key not in section.table and key not in got.get("metadata", {}):
            section.error("missing-key", f"this sample group has no '{key}'")
        elif got.get(key) == "":
            section.error("empty", "this sample group has an empty name", key)
    more = metadata(section, got, SAMPLE_COLUMNS)
    place = section.place("samples")
    for sample in texts(section, got.get("samples", ()), ("samples",)):
        rows.add({"sample": sample, "group": got.get("name") or None, **more}, place)


def _from_sheet(sheet: Sheet, rows: Rows) -> None:
    """One row for each sample of a cell. A sheet without groups (`--samples @names.txt`) gives none."""
    columns = proper_columns(sheet, _ALIASES, ("samples",), rows.findings)
    kept = usable_columns(sheet, columns, ("name", "samples"), SAMPLE_COLUMNS, rows.findings)
    at_samples = columns.index("samples") if columns else 0
    others = [(n, columns[n]) for n in kept if n != at_samples]
    for at, cells in enumerate(sheet.rows if columns else ()):
        given, place = cells[at_samples], sheet.place(at)
        names = given if isinstance(given, tuple) else (given or "").split(",")
        names = [name.strip() for name in names if name.strip()]
        shared = {column: one_text(sheet, at, column, cells[n], rows.findings) for n, column in others}
        group = shared.pop("name", None)
        if not names or ("name" in columns and not group):
            what = "name" if names else "samples"
            rows.findings.error("missing-key", f"this row has no {what}", place)
        for name in names:
            rows.add({"sample": name, "group": group, **shared}, place)

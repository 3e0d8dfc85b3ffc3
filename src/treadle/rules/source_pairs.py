"""Pairs of an experiment and its control: `[[pairs]]` and pair sheets as one source of values."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.base.place import Place
from treadle.rules.cells import Row
from treadle.rules.fields import PAIR
from treadle.rules.kinds import take
from treadle.rules.schema import Source
from treadle.rules.section import Findings, Section
from treadle.rules.sheets import Sheet
from treadle.rules.source_rows import (
    PAIR_ALIASES,
    PAIR_COLUMNS,
    SAMPLE_COLUMNS,
    Constraints,
    Rows,
    metadata,
    one_text,
    proper_columns,
    usable_columns,
)

_NEEDED = ("pair_id", "experiment")


def pairs(
    sections: Iterable[Section], sheets: Iterable[Sheet], constraints: Constraints, findings: Findings
) -> Source | None:
    """All pairs as one source: `pair_id`, both sides, the type, metadata; then the older names of these."""
    rows = Rows("pairs", ("pair_id",), findings)
    for section in sections:
        row = _inline(section)
        if _complete(row, section.place(), findings):
            rows.add(row, section.place())
    for sheet in sheets:
        _from_sheet(sheet, rows)
    return rows.source("pairs", PAIR_COLUMNS, constraints, aliases=PAIR_ALIASES)


def _inline(section: Section) -> dict[str, str | None]:
    got = take(section, PAIR, "a pair")
    row: dict[str, str | None] = {column: got.get(column) or None for column in PAIR_COLUMNS}
    for alias, column in PAIR_ALIASES.items():
        if alias in got and row[column] not in (None, got[alias]):
            section.error("said-twice", f"'{alias}' and '{column}' mean the same, but differ here", alias)
        elif alias in got:
            row[column] = got[alias] or None
    return row | metadata(section, got, (*PAIR_COLUMNS, *PAIR_ALIASES, *SAMPLE_COLUMNS))


def _complete(row: Row, place: Place, findings: Findings) -> bool:
    missing = [column for column in _NEEDED if not row[column]]
    for column in missing:
        findings.error("missing-key", f"this pair has no {column}", place)
    return not missing


def _from_sheet(sheet: Sheet, rows: Rows) -> None:
    columns = proper_columns(sheet, PAIR_ALIASES, _NEEDED, rows.findings)
    kept = usable_columns(sheet, columns, PAIR_COLUMNS, SAMPLE_COLUMNS, rows.findings)
    named = [(n, columns[n]) for n in kept]
    for at, cells in enumerate(sheet.rows if columns else ()):
        row: dict[str, str | None] = {}
        for n, column in named:
            cell = cells[n]
            row[column] = cell if cell.__class__ is str else one_text(sheet, at, column, cell, rows.findings)
        place = sheet.place(at)
        if (row["pair_id"] and row["experiment"]) or _complete(row, place, rows.findings):
            rows.add(row, place)


def samples_of_pairs(source: Source) -> Source:
    """Both sides of the pairs, each once, in order: the values of `{sample}` where there are no groups."""
    sides = [source.columns.index("experiment"), source.columns.index("control")]
    names = dict.fromkeys(row[at] for row in source.rows for at in sides if row[at])
    rows = tuple((name,) for name in names)
    return Source(
        kind="samples", label="both sides of the pairs", columns=("sample",), rows=rows, place=source.place
    )

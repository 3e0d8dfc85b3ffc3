"""Pairs of an experiment and its control: `[[pairs]]` and pair sheets as one source of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treadle.base.place import Place
from treadle.rules.schema import Source
from treadle.rules.sources.cells import usable
from treadle.rules.sources.rows import (
    PAIR_ALIASES,
    PAIR_COLUMNS,
    SAMPLE_COLUMNS,
    Constraints,
    Rows,
    metadata,
    proper_columns,
    wildcards,
)
from treadle.rules.sources.sheets import Sheet
from treadle.rules.toml.fields import PAIR
from treadle.rules.toml.kinds import take
from treadle.rules.toml.section import Findings, Section

SIDES_OF_PAIRS = "both sides of the pairs"
_NEEDED = ("pair_id", "experiment")


def pairs(
    sections: Iterable[Section], sheets: Sequence[Sheet], constraints: Constraints, findings: Findings
) -> Source | None:
    """All pairs as one source: `pair_id`, both sides, the type, metadata; then the older names of these."""
    rows = Rows("pairs", ("pair_id",), findings)
    for section in sections:
        if row := _inline(section):
            rows.add({column: [cell] for column, cell in row.items()}, 1, [section.place()].__getitem__)
    for sheet in sheets:
        columns = proper_columns(sheet, PAIR_ALIASES, _NEEDED, findings)
        kept = wildcards(sheet, columns, PAIR_COLUMNS, SAMPLE_COLUMNS, findings)
        rows.add(kept, len(sheet.lines) if kept else 0, sheet.place)
    _check_whole(rows)
    found = rows.source("pairs", PAIR_COLUMNS, constraints, aliases=PAIR_ALIASES)
    return found or next((_no_pairs(sheet) for sheet in sheets if sheet.columns), None)


def _no_pairs(sheet: Sheet) -> Source:
    """The source of a sheet that has a header alone: its wildcards are known, and nothing has values yet."""
    more = [
        column
        for column in sheet.columns
        if not usable(column, (*PAIR_COLUMNS, *PAIR_ALIASES, *SAMPLE_COLUMNS))
    ]
    columns = (*PAIR_COLUMNS, *more, *PAIR_ALIASES)
    return Source(kind="pairs", label="pairs", columns=columns, rows=(), place=Place(sheet.file))


def _inline(section: Section) -> dict[str, str | None]:
    """The row of one table; empty where a field of it is wrong, which is reported."""
    got = take(section, PAIR, "a pair")
    if any(key in section.table and key not in got for key in PAIR):
        return {}
    row: dict[str, str | None] = {column: got.get(column) or None for column in PAIR_COLUMNS}
    for alias, column in PAIR_ALIASES.items():
        if alias in got and row[column] not in (None, got[alias]):
            section.error("said-twice", f"'{alias}' and '{column}' mean the same, but differ here", alias)
        elif alias in got:
            row[column] = got[alias] or None
    return row | metadata(section, got, (*PAIR_COLUMNS, *PAIR_ALIASES, *SAMPLE_COLUMNS))


def _check_whole(rows: Rows) -> None:
    """Report every pair without an id or without an experiment."""
    for column in _NEEDED:
        for at, cell in enumerate(rows.columns.get(column, ())):
            if cell is None:
                rows.findings.error("missing-key", f"this pair has no {column}", rows.place(at))


def samples_of_pairs(source: Source) -> Source:
    """Both sides of the pairs, each once, in order: the values of `{sample}` where there are no groups."""
    sides = [source.columns.index("experiment"), source.columns.index("control")]
    names = dict.fromkeys(row[at] for row in source.rows for at in sides if row[at])
    rows = tuple((name,) for name in names)
    return Source(kind="samples", label=SIDES_OF_PAIRS, columns=("sample",), rows=rows, place=source.place)

"""The rows of a source of values as they come together, from the workflow file and from sheets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from treadle.base.place import Place
from treadle.rules.cells import Row, check_values, usable
from treadle.rules.constraint import Constraint
from treadle.rules.kinds import scalar
from treadle.rules.placeholder import spelled
from treadle.rules.schema import Source
from treadle.rules.section import Findings, Section, clip
from treadle.rules.sheets import Sheet

PAIR_COLUMNS = ("pair_id", "experiment", "control", "experiment_type")
PAIR_ALIASES = {"tumor": "experiment", "normal": "control", "tumor_type": "experiment_type"}
SAMPLE_COLUMNS = ("sample", "group")

Constraints = Mapping[str, Constraint]


class Rows:
    """Rows that are merged by the columns in `key`; each knows its place."""

    def __init__(self, kind: str, key: Sequence[str], findings: Findings) -> None:
        self.kind = kind
        self.key = key
        self.findings = findings
        self.rows: list[dict[str, str | None]] = []
        self.places: list[Place] = []
        self.columns: dict[str, None] = {}
        self._at: dict[tuple[str | None, ...], int] = {}

    def add(self, row: dict[str, str | None], place: Place) -> None:
        """Take a row. The same again is nothing new; other content under the same key is an error."""
        if self.key:
            at = self._at.setdefault(tuple([row[column] for column in self.key]), len(self.rows))
            if at < len(self.rows):
                self._again(at, row, place)
                return
        self.rows.append(row)
        self.places.append(place)
        self.columns.update(dict.fromkeys(row))

    def _again(self, at: int, row: Row, place: Place) -> None:
        if _said(self.rows[at]) != _said(row):
            what = ", ".join(f"{column} '{clip(row[column] or '')}'" for column in self.key)
            message = f"{what} was given before with other content"
            self.findings.error("said-twice", message, place, f"first at {self.places[at]}")

    def source(
        self,
        label: str,
        first: Sequence[str],
        constraints: Constraints,
        *,
        aliases: Mapping[str, str] | None = None,
    ) -> Source | None:
        """The rows as a source, the columns in `first` before the others; None where there are no rows.

        `aliases` are further columns: a name, and the column whose values it repeats.
        """
        if not self.rows:
            return None
        columns = tuple(dict.fromkeys((*first, *self.columns)))
        check_values(self.rows, self.places.__getitem__, columns, constraints, self.findings)
        aliases = aliases or {}
        read = (*columns, *aliases.values())
        rows = tuple([tuple([row.get(column) for column in read]) for row in self.rows])
        return Source(
            kind=self.kind, label=label, columns=(*columns, *aliases), rows=rows, place=self.places[0]
        )


def _said(row: Row) -> dict[str, str]:
    return {column: value for column, value in row.items() if value}


def metadata(section: Section, got: Mapping[str, Any], taken: Iterable[str]) -> dict[str, str | None]:
    """The `metadata` of a pair or group, each key a wildcard; None where it is empty."""
    inner = section.inner(got.get("metadata", {}), "metadata")
    found: dict[str, str | None] = {}
    for key, value in inner.table.items():
        if inner.strayed(key):
            continue
        if why := usable(key, taken):
            inner.error("bad-name", f"'{clip(key)}' cannot be a wildcard: it {why}", key)
        elif (one := scalar(inner, value, (key,), "a text or a number")) is not None:
            found[key] = spelled(one) or None
    return found


def texts(section: Section, values: Iterable[Any], path: tuple[str | int, ...]) -> list[str]:
    """A list of texts and numbers as texts; what is empty or no such thing is reported."""
    found = []
    for at, value in enumerate(values):
        one = scalar(section, value, (*path, at), "a text or a number")
        if one is not None and not spelled(one):
            section.error("empty", "an empty text stands where a value is wanted", *path, at)
        elif one is not None:
            found.append(spelled(one))
    return found


def proper_columns(
    sheet: Sheet, aliases: Mapping[str, str], needed: Sequence[str], findings: Findings
) -> tuple[str, ...]:
    """The columns of a sheet by their proper names; empty, and reported, where a needed one is missing."""
    place = Place(sheet.file)
    if not sheet.columns:
        findings.warn("empty-sheet", "this sheet is empty", place)
        return ()
    columns = tuple(aliases.get(column, column) for column in sheet.columns)
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        findings.error("bad-sheet", f"two columns stand for '{clip(twice)}'", place)
        return ()
    missing = [column for column in needed if column not in columns]
    for column in missing:
        hint = findings.guess(column, sheet.columns) or "a line that begins with # is a comment"
        findings.error("bad-sheet", f"this sheet has no column '{column}'", place, hint)
    if not missing and not sheet.rows:
        findings.warn("empty-sheet", "this sheet has no rows", place)
    return () if missing else columns


def usable_columns(
    sheet: Sheet, columns: Sequence[str], own: Iterable[str], taken: Iterable[str], findings: Findings
) -> list[int]:
    """Which columns become wildcards, by number; the others are named in a warning."""
    kept = []
    for at, column in enumerate(columns):
        if column in own or not (why := usable(column, taken)):
            kept.append(at)
        else:
            message = f"the column '{clip(column)}' cannot be used: it {why}"
            findings.warn("unusable-column", message, Place(sheet.file))
    return kept


def one_text(sheet: Sheet, at: int, column: str, cell: Any, findings: Findings) -> str | None:
    """A cell that must be one text; a list of JSON is reported."""
    if isinstance(cell, tuple):
        findings.error("wrong-type", "a list stands where one value is wanted", sheet.place(at, column))
        return None
    return cell  # type: ignore[no-any-return]

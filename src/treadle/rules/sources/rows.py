"""The rows of a source of values as they come together, from the workflow file and from sheets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from treadle.base.place import Place
from treadle.rules.pattern.constraint import Constraint
from treadle.rules.schema import Source
from treadle.rules.sources.cells import Columns, check_values, usable
from treadle.rules.sources.sheets import Cell, Sheet
from treadle.rules.text.placeholder import spelled
from treadle.rules.toml.kinds import scalar
from treadle.rules.toml.section import Findings, Section, clip

PAIR_COLUMNS = ("pair_id", "experiment", "control", "experiment_type")
PAIR_ALIASES = {"tumor": "experiment", "normal": "control", "tumor_type": "experiment_type"}
SAMPLE_COLUMNS = ("sample", "group")

Constraints = Mapping[str, Constraint]
PlaceOf = Callable[[int], Place]


class Rows:
    """Rows kept by column, for there may be very many; they are merged by the columns in `key`."""

    def __init__(self, kind: str, key: Sequence[str], findings: Findings) -> None:
        self.kind = kind
        self.key = key
        self.findings = findings
        self.columns: dict[str, list[str | None]] = {}
        self.size = 0
        self._starts: list[int] = []
        self._places: list[PlaceOf] = []

    def add(self, more: Columns, count: int, place: PlaceOf) -> None:
        """Take `count` rows; a column that only some of them have is None in the others."""
        for column in more:
            if column not in self.columns:
                self.columns[column] = [None] * self.size
        for column, cells in self.columns.items():
            cells += more.get(column) or [None] * count
        self._starts.append(self.size)
        self._places.append(place)
        self.size += count

    def place(self, at: int) -> Place:
        """Where row `at` stands."""
        block = bisect_right(self._starts, at) - 1
        return self._places[block](at - self._starts[block])

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
        if not self.size:
            return None
        aliases = aliases or {}
        columns = tuple(dict.fromkeys((*first, *self.columns)))
        empty: list[str | None] = [None] * self.size
        check_values(self.columns, self.place, constraints, self.findings)
        cells = (self.columns.get(column, empty) for column in (*columns, *aliases.values()))
        return Source(
            kind=self.kind,
            label=label,
            columns=(*columns, *aliases),
            rows=self._once(list(zip(*cells))),
            place=self.place(0),
        )

    def _once(self, rows: list[tuple[str | None, ...]]) -> tuple[tuple[str | None, ...], ...]:
        """Each row once. The same again is nothing new; other content under the same key is an error."""
        keys = list(zip(*(self.columns[column] for column in self.key)))
        first = dict(zip(reversed(keys), range(self.size - 1, -1, -1)))
        if len(first) == self.size:
            return tuple(rows)
        for at, key in enumerate(keys):
            if first[key] != at and key[0] and rows[first[key]] != rows[at]:
                what = ", ".join(f"{column} '{clip(value or '')}'" for column, value in zip(self.key, key))
                message = f"{what} was given before with other content"
                self.findings.error(
                    "said-twice", message, self.place(at), f"first at {self.place(first[key])}"
                )
        return tuple([rows[at] for at in sorted(first.values())])


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
) -> dict[str, Sequence[Cell]]:
    """The columns of a sheet by their proper names; none, and a finding, where a needed one is missing."""
    place = Place(sheet.file)
    if not sheet.lines:
        findings.warn("empty-sheet", "this sheet has no rows", place)
    columns = {aliases.get(column, column): cells for column, cells in sheet.columns.items()}
    if len(columns) < len(sheet.columns):
        twice = next(column for column in sheet.columns if aliases.get(column, column) in sheet.columns)
        findings.error("bad-sheet", f"two columns stand for '{clip(aliases.get(twice, twice))}'", place)
        return {}
    missing = [column for column in needed if column not in columns and (sheet.columns or sheet.lines)]
    for column in missing:
        hint = findings.guess(column, sheet.columns) or "a line that begins with # is a comment"
        findings.error("bad-sheet", f"this sheet has no column '{column}'", place, hint)
    return columns if not missing and sheet.lines else {}


def wildcards(
    sheet: Sheet,
    columns: Mapping[str, Sequence[Cell]],
    own: Iterable[str],
    taken: Iterable[str],
    findings: Findings,
) -> dict[str, Sequence[str | None]]:
    """The columns that become wildcards, each cell one text; the others are named in a warning.

    Those in `own` are taken whatever their name; those in `taken` are the engine's.
    """
    kept: dict[str, Sequence[str | None]] = {}
    for column, cells in columns.items():
        if column not in own and (why := usable(column, taken)):
            message = f"the column '{clip(column)}' cannot be used: it {why}"
            findings.warn("unusable-column", message, Place(sheet.file))
        elif sheet.json:
            kept[column] = [_one_text(sheet, at, column, cell, findings) for at, cell in enumerate(cells)]
        else:
            kept[column] = cells  # type: ignore[assignment]  # lists come from JSON alone
    return kept


def _one_text(sheet: Sheet, at: int, column: str, cell: Cell, findings: Findings) -> str | None:
    if isinstance(cell, tuple):
        findings.error("wrong-type", "a list stands where one value is wanted", sheet.place(at, column))
        return None
    return cell

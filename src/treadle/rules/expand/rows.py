"""The rows of a rule: tables joined, then what is discovered within them, then cut to the selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import product

from msgspec import Struct

from treadle.base.names import did_you_mean
from treadle.base.place import Place
from treadle.rules.expand.blueprint import Blueprint
from treadle.rules.expand.entries import Entry
from treadle.rules.expand.finder import Finder, Found
from treadle.rules.expand.join import Dropped, Table, TooManyRowsError, distinct, join, join_sources, picker
from treadle.rules.expand.values import Sources, fitting, with_own
from treadle.rules.pattern.pattern import Row
from treadle.rules.toml.section import Findings

NO_ROWS = Table((), [])
_NONE_FEWER: frozenset[Row] = frozenset()

# The paths of an entry by the values of its wildcards.
Paths = dict[Row, tuple[str, ...]]


class Rows(Struct, frozen=True):
    """All rows of a rule, one value for each of its names, in order.

    `found` holds the paths of discovered entries, by the entry's number. `origins` says where the values
    came from. `thinned`: a selection took rows away; `fewer` are the keys (cut to `fewer_names`) of which
    it took some. `lacking` tells of the first of the `valueless` rows what they lack.
    """

    rows: list[Row]
    found: dict[int, Paths] = {}
    origins: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    valueless: int = 0
    thinned: bool = False
    fewer_names: tuple[str, ...] = ()
    fewer: frozenset[Row] = frozenset()
    lacking: tuple[str, ...] = ()


class Values(Struct, frozen=True):
    """The sources of a workflow, and those cut down to the `chosen` samples (None: all are)."""

    whole: Sources
    chosen: frozenset[str] | None
    cut: Sources


def read_rows(
    blueprint: Blueprint, values: Values, finder: Finder, findings: Findings, *, unsure: bool = False
) -> Rows | None:
    """The rows of a rule; None, with findings, where there are none and should be.

    Of a rule that the config switches off nothing need be there: it has no rows then. `unsure`: something is
    wrong with a rule that may make what this one looks for, so it is no finding that nothing is there.
    """
    off = blueprint.off()
    found = _rows(blueprint, values, finder, Findings() if off else findings, unsure)
    return Rows([]) if found is None and off else found


def _rows(
    blueprint: Blueprint, values: Values, finder: Finder, findings: Findings, unsure: bool
) -> Rows | None:
    try:
        return _Reader(blueprint, values, finder, findings, unsure).rows()
    except TooManyRowsError as error:
        message = f"rule {blueprint.rule.name} would have {error.count:,} combinations of values"
        hint = "tables that share no wildcard multiply: is one of them named by mistake?"
        findings.error("too-many-rows", message, blueprint.rule.place, hint)
        return None


class _Reader:
    def __init__(
        self, blueprint: Blueprint, values: Values, finder: Finder, findings: Findings, unsure: bool
    ) -> None:
        self.blueprint = blueprint
        self.values = values
        self.finder = finder
        self.findings = findings
        self.unsure = unsure
        self.found: dict[int, Paths] = {}
        self.origins: list[str] = []
        self.thinned = False
        self.awaited = False  # a checkpoint task may bring rows

    def rows(self) -> Rows | None:
        blueprint = self.blueprint
        given = self._given()
        if given is None:
            return None
        table, fewer_names, fewer = given
        for number, entry in self._entries():
            if table.rows and self._gives(entry, table):
                found = self._discover(number, entry, table)
                if found is None:
                    return None
                if not found.rows:
                    table = NO_ROWS
                    break
                table = join(table, found)
                if not table.rows and self.awaited:
                    break
                if not table.rows:
                    self._nothing_left(table, entry.pattern.place)
                    return None
        rows = distinct(table, blueprint.names) if table.rows else []
        return Rows(
            rows,
            self.found,
            tuple(dict.fromkeys(self.origins)),
            () if self.awaited else table.dropped,  # what a checkpoint did not find is no loss
            given[0].valueless,
            self.thinned,
            fewer_names,
            fewer,
            given[0].lacking,
        )

    def _given(self) -> tuple[Table, tuple[str, ...], frozenset[Row]] | None:
        """What the tables give, cut to the selection, and the keys that lost rows by that."""
        names, values, own = self.blueprint.names, self.values, self.blueprint.own
        asked = self.blueprint.asked
        used = with_own(values.whole, own).using(names)
        for source in used:
            if not source.rows and source.awaited:
                return Table((), [], source.label), (), _NONE_FEWER
            if not source.rows:
                message = f"{source.label} has no rows, but rule {self.blueprint.rule.name} uses it"
                self.findings.error("no-values", message, source.place)
                return None
        whole = join_sources(used, names, asked)
        self.origins += [source.label for source in used]
        self.awaited = any(source.awaited for source in used)
        if not whole.rows and not whole.valueless and not self.awaited:
            self._nothing_left(whole, self.blueprint.rule.place)
            return None
        if values.chosen is None:
            return whole, (), _NONE_FEWER
        cut = join_sources(with_own(values.cut, own, selected=True).using(names), names, asked)
        self.thinned = len(cut.rows) < len(whole.rows)
        key = tuple(name for name in self.blueprint.key if name in whole.columns)
        return cut, key, _fewer(whole, cut, key) if self.thinned else _NONE_FEWER

    def _nothing_left(self, table: Table, place: Place) -> None:
        message = (
            f"the values of rule {self.blueprint.rule.name} do not fit together: {table.label} share no row"
        )
        lost = "; ".join(f"{', '.join(one.examples)} not in {one.absent}" for one in table.dropped[:2])
        self.findings.error("join-empty", message, place, lost)

    def _entries(self) -> list[tuple[int, Entry]]:
        """The inputs with their numbers, those of a fan-in last."""
        return sorted(enumerate(self.blueprint.inputs), key=lambda one: bool(one[1].variables))

    def _gives(self, entry: Entry, table: Table) -> bool:
        """Whether an input gives values to wildcards: of a fan-in, which asks for paths that may yet be
        missing, only to those that no table and no other input has."""
        wanted = set(entry.names).intersection(self.blueprint.open)
        return bool(wanted.difference(table.columns) if entry.variables else wanted)

    def _discover(self, number: int, entry: Entry, table: Table) -> Table | None:
        """What matches an input, within the rows of the tables."""
        pattern = entry.pattern
        bound = [name for name in entry.names if name in table.columns and name not in self.blueprint.open]
        paths: dict[Row, list[str]] = {}
        seen: dict[str, Row] = {}
        origins: dict[str, None] = {}
        for row, combo in product(distinct(table, bound), entry.combos):
            found = self._find(entry, dict(zip((*bound, *entry.variables), (*row, *combo))))
            origins[found.origin] = None
            for path, values in found.matches:
                if seen.setdefault(path, values) != values:
                    self._two_ways(entry, path, seen[path], values)
                    return None
                paths.setdefault(values, []).append(path)
        if not paths:
            if entry.pattern in self.finder.awaited:
                return Table(entry.names, [])
            if "disk" in origins:  # what is there has a name that was refused
                return None
            self._no_match(entry)
            return Table(entry.names, []) if self.finder.lenient else None
        self.origins += [f"{pattern.text} ({origin})" for origin in origins if origin]
        if not self._sound(entry, paths):
            return None
        chosen = self._chosen(pattern.names, paths)
        if entry.variables:
            return Table(
                entry.names, distinct(Table(pattern.names, chosen), entry.names), f"'{pattern.text}'"
            )
        self.found[number] = {values: tuple(paths[values]) for values in chosen}
        return Table(pattern.names, chosen, f"'{pattern.text}'")

    def _find(self, entry: Entry, known: Mapping[str, str]) -> Found:
        if entry.folder is not None and set(entry.folder.names) == set(entry.pattern.names):
            return self.finder.find_in(entry.folder, entry.pattern, known)
        return self.finder.find(entry.pattern, known)

    def _chosen(self, names: Sequence[str], paths: Collection[Row]) -> list[Row]:
        """The matches of chosen samples, where `{sample}` itself is discovered."""
        rows, chosen = list(paths), self.values.chosen
        if chosen is None or "sample" not in names or "sample" not in self.blueprint.open:
            return rows
        at = names.index("sample")
        kept = [row for row in rows if row[at] in chosen]
        self.thinned = self.thinned or len(kept) < len(rows)
        return kept

    def _two_ways(self, entry: Entry, path: str, one: Row, other: Row) -> None:
        names = entry.pattern.names
        first, second = (
            ", ".join(f"{name}={value}" for name, value in zip(names, row)) for row in (one, other)
        )
        message = f"'{path}' can be {entry.pattern.text} in two ways: {first}; {second}"
        differing = next(name for name, a, b in zip(names, one, other) if a != b)
        hint = f'say what {{{differing}}} may be, such as [wildcard_constraints] {differing} = "[^._/]+"'
        self.findings.error("ambiguous-match", message, entry.pattern.place, hint)

    def _no_match(self, entry: Entry) -> None:
        pattern, known = entry.pattern, self.values.whole.names
        open_names = [name for name in entry.names if name in self.blueprint.open]
        braced = ", ".join(f"{{{name}}}" for name in open_names)
        message = (
            f"no file matches '{pattern.text}', so {braced} of rule {self.blueprint.rule.name} has no values"
        )
        hint = next((near for name in open_names if (near := did_you_mean(name, sorted(known)))), "")
        if not self.unsure and not self.blueprint.off():
            self.finder.missing(message, pattern.place, hint)

    def _sound(self, entry: Entry, rows: Collection[Row]) -> bool:
        """Whether what was found may stand in other paths: no `.` and `..`, no odd parts."""
        for name, values in zip(entry.pattern.names, zip(*rows)):
            for value in values:
                if not fitting(None, value):
                    message = f"'{value}' of {{{name}}} in '{entry.pattern.text}' would lead a path astray"
                    self.findings.error("bad-value", message, entry.pattern.place, "rename the file")
                    return False
        return True


def _fewer(whole: Table, cut: Table, key: Sequence[str]) -> frozenset[Row]:
    """The keys of which the selection took some rows, not all."""
    before, after = (Counter(map(picker(one.columns, key), one.rows)) for one in (whole, cut))
    return frozenset(values for values, count in after.items() if count < before[values])

"""The sources of wildcard values as a rule meets them: which of them it uses, and what is wrong with that."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.rules.pattern.constraint import Constraint
from treadle.rules.schema import Source
from treadle.rules.sources.cells import check_values
from treadle.rules.toml.section import Findings

_MERGED = ("pairs", "samples")  # kinds of which there is one table, whatever it came from
SIDES = ("experiment", "control", "tumor", "normal")
_SHOWN = 5
_ODD_PARTS = frozenset(("", ".", ".."))


class Sources(Struct, frozen=True):
    """All sources of a workflow, in the order in which they multiply; one each of pairs and samples."""

    all: tuple[Source, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Every wildcard that has a source."""
        return frozenset(name for source in self.all for name in source.gives)

    @property
    def free(self) -> frozenset[str]:
        """Columns that hold paths: good only as a whole input."""
        return frozenset(name for source in self.all for name in source.free)

    def using(self, names: Collection[str]) -> tuple[Source, ...]:
        """The sources that have a column among `names`."""
        return tuple(source for source in self.all if any(name in names for name in source.gives))

    def mixed(self, names: Collection[str]) -> tuple[list[str], list[str]]:
        """The wildcards of pairs and those of sample groups among `names`; both: they cannot go together."""
        pairs = {name for source in self.all if source.kind == "pairs" for name in source.gives}
        samples = {name for source in self.all if source.kind == "samples" for name in source.gives}
        return sorted((pairs - samples) & set(names)), sorted((samples - pairs) & set(names))


class Own(Struct, frozen=True):
    """The values that one rule alone has: all of them, and those that are selected."""

    whole: Source
    cut: Source


def with_own(sources: Sources, own: Own | None, *, selected: bool = False) -> Sources:
    """The sources as a rule with a table of its own meets them: it hides what else has its wildcard."""
    if own is None:
        return sources
    table = own.cut if selected else own.whole
    hidden = set(table.columns)
    others = (_without(source, hidden) for source in sources.all if set(source.columns) - hidden)
    return Sources((*others, table))


def _without(source: Source, hidden: Collection[str]) -> Source:
    at = [n for n, name in enumerate(source.columns) if name not in hidden]
    if len(at) == len(source.columns):
        return source
    rows = dict.fromkeys(tuple(row[n] for n in at) for row in source.rows)
    columns = tuple(source.columns[n] for n in at)
    return replace(source, columns=columns, rows=tuple(rows), free=source.free - set(hidden))


def gathered(sources: Sequence[Source]) -> Sources:
    """The sources with all pairs in one table, and all samples in one; the others as they are."""
    found: list[Source] = []
    for source in sources:
        at = next((n for n, known in enumerate(found) if known.kind == source.kind), None)
        if source.kind in _MERGED and at is not None:
            found[at] = _merged(found[at], source)
        else:
            found.append(source)
    return Sources(tuple(found))


def _merged(one: Source, other: Source) -> Source:
    columns = tuple(dict.fromkeys((*one.columns, *other.columns)))
    rows = [row for source in (one, other) for row in _widened(source, columns)]
    label = one.label if one.label == other.label else f"{one.label} and {other.label}"
    return replace(
        one,
        label=label,
        columns=columns,
        rows=tuple(dict.fromkeys(rows)),
        free=one.free | other.free,
        under=one.under | other.under,
        awaited=one.awaited or other.awaited,
    )


def _widened(source: Source, columns: Sequence[str]) -> list[tuple[str | None, ...]]:
    if source.columns == columns:
        return list(source.rows)
    at = {name: n for n, name in enumerate(source.columns)}
    return [tuple(row[at[name]] if name in at else None for name in columns) for row in source.rows]


def check_sources(
    sources: Sequence[Source], constraints: Mapping[str, Constraint], findings: Findings
) -> None:
    """Report every value that could lead a path astray, and those that miss their constraint."""
    for source in sources:
        for at, column in enumerate(source.columns):
            _check_column(source, column, [row[at] for row in source.rows], constraints, findings)


def _check_column(
    source: Source,
    column: str,
    values: Sequence[str | None],
    constraints: Mapping[str, Constraint],
    findings: Findings,
) -> None:
    constraint = constraints.get(column)
    check_values({column: values}, lambda _: source.place, constraints, findings, free=column in source.free)
    if constraint is not None:
        misfits = list(dict.fromkeys(v for v in values if v is not None and not fitting(constraint, v)))
        if misfits:
            message = (
                f"{_few(misfits)} of {{{column}}} in {source.label} {'does' if len(misfits) == 1 else 'do'} "
            )
            message += f"not match the constraint {constraint.text}"
            findings.error("constraint-not-met", message, source.place, "mend the values or the constraint")


def fitting(constraint: Constraint | None, value: str) -> bool:
    """Whether a value matches its constraint and may be a part of a path: no `.` or `..`, no empty parts."""
    return (constraint is None or constraint.fits(value)) and _ODD_PARTS.isdisjoint(value.split("/"))


def _few(values: Sequence[str]) -> str:
    shown = ", ".join(f"'{value}'" for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN:,} more"


def sample_names(sources: Sources) -> list[str]:
    """All samples that the sources name, in their order: values of `{sample}`, and both sides of pairs."""
    names: dict[str, None] = {}
    for source in sources.all:
        wanted = SIDES if source.kind == "pairs" else ("sample",)
        places = [at for at, name in enumerate(source.columns) if name in wanted]
        names.update((value, None) for row in source.rows for at in places if (value := row[at]) is not None)
    return list(names)


def only(sources: Sources, chosen: Collection[str]) -> Sources:
    """The sources cut down to the chosen samples, and to pairs both sides of which are chosen."""
    return Sources(tuple(_only(source, chosen) for source in sources.all))


def _only(source: Source, chosen: Collection[str]) -> Source:
    wanted = SIDES if source.kind == "pairs" else ("sample",)
    places = [at for at, name in enumerate(source.columns) if name in wanted]
    if not places:
        return source
    rows = [row for row in source.rows if all(row[at] is None or row[at] in chosen for at in places)]
    return replace(source, rows=tuple(rows))

"""The samples that there are, and those of them that a selection chooses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from treadle.rules.expand.blueprint import Blueprint
from treadle.rules.expand.finder import Finder
from treadle.rules.expand.join import join_sources
from treadle.rules.expand.rows import Values
from treadle.rules.expand.trip import Expanded
from treadle.rules.expand.values import SIDES, Sources, only, sample_names, with_own
from treadle.rules.pattern.listing import Listing
from treadle.rules.selection import Selection, choose

_NAMES = ("sample", *SIDES)


def known_samples(sources: Sources, blueprints: Iterable[Blueprint], listing: Listing) -> list[str]:
    """All samples, in order: those of the tables; where no table has any, those that inputs on disk name."""
    if "sample" in sources.names:
        return sample_names(sources)
    found: set[str] = set()
    for blueprint in blueprints:
        for entry in blueprint.searching():
            if "sample" in entry.names and "sample" in blueprint.open:
                at = entry.pattern.names.index("sample")
                found.update(values[at] for _, values in listing.match(entry.pattern))
    return list(dict.fromkeys((*sample_names(sources), *sorted(found))))


def select(
    selection: Selection, sources: Sources, known: Sequence[str], ready: Callable[[], Collection[str]]
) -> Values:
    """The sources, whole and cut to the selection. Raises OptionError."""
    if not selection.narrows:
        return Values(sources, None, sources)
    chosen = choose(selection, known, ready)
    return Values(sources, chosen, only(sources, chosen))


def unselected(values: Values, known: Iterable[str]) -> frozenset[str]:
    """The samples, and the pairs, that a selection leaves out."""
    if values.chosen is None:
        return frozenset()
    return frozenset(known) - values.chosen | _pairs(values.whole) - _pairs(values.cut)


def _pairs(sources: Sources) -> frozenset[str]:
    return frozenset(
        value
        for source in sources.all
        if source.kind == "pairs"
        for row in source.rows
        if (value := row[source.columns.index("pair_id")]) is not None
    )


def complete(rules: Iterable[Expanded], sources: Sources, known: Iterable[str], finder: Finder) -> set[str]:
    """The samples all of whose inputs are there or planned: what `ready` means."""
    lacking: set[str] = set()
    for rule in rules:
        lacking |= _not_found(rule, sources)
        places = [at for at, name in enumerate(rule.blueprint.names) if name in _NAMES]
        entries = [entry for entry in rule.drafter.entries if entry.entry.names and not entry.entry.variables]
        for row in rule.rows.rows if places and entries else ():
            paths = (path for entry in entries for path in entry.of((row,)))
            if not all(finder.planned(path) or finder.listing.exists(path) for path in paths):
                lacking.update(row[at] for at in places)
    return set(known) - lacking


def _not_found(rule: Expanded, sources: Sources) -> set[str]:
    """The samples that the tables give to a rule, but for which its inputs were not found on the disk."""
    names, own = rule.blueprint.names, rule.blueprint.own
    sources = with_own(sources, own)
    lost: set[str] = set()
    if not any(origin.endswith("(disk)") for origin in rule.rows.origins):
        return lost
    for at, name in enumerate(names):
        if name in _NAMES and name not in rule.blueprint.open:
            given = {row[0] for row in join_sources(sources.using(names), (name,)).rows}
            lost |= given - {row[at] for row in rule.rows.rows}
    return lost

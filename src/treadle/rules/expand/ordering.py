"""Which rule is expanded before which: what a rule looks for may be what another one makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from treadle.plan.paths import normal
from treadle.rules.expand.blueprint import Blueprint
from treadle.rules.expand.join import TooManyRowsError, join_sources
from treadle.rules.expand.values import Sources, with_own
from treadle.rules.pattern.constraint import constraint
from treadle.rules.pattern.language import meet
from treadle.rules.pattern.pattern import Pattern, Text, Wild
from treadle.rules.toml.section import Findings

Feeds = list[tuple[int, ...]]

_ANY_PATH = constraint(".+")
_MOST_VALUES = 2_000  # that are tried one by one; with more, whatever could be made counts


class Makers:
    """The outputs of all rules, by the first folder of their paths."""

    def __init__(self, blueprints: Sequence[Blueprint]) -> None:
        self._blueprints = blueprints
        self._by_folder: dict[str, list[tuple[int, Pattern]]] = {}
        self._anywhere: list[tuple[int, Pattern]] = []
        for number, blueprint in enumerate(blueprints):
            for output in blueprint.outputs:
                folder = _first_folder(output.pattern)
                shelf = self._anywhere if folder is None else self._by_folder.setdefault(folder, [])
                shelf.append((number, output.pattern))

    def among(self, numbers: Iterable[int], pattern: Pattern) -> set[int]:
        """Those of these rules an output of which could match the pattern."""
        return {
            number
            for number in numbers
            if any(meet(pattern.parts, made.pattern.parts) for made in self._blueprints[number].outputs)
        }

    def of(self, pattern: Pattern) -> set[int]:
        """The rules an output of which could match the pattern."""
        folder = _first_folder(pattern)
        if folder is None:
            shelves: Iterable[list[tuple[int, Pattern]]] = (*self._by_folder.values(), self._anywhere)
        else:
            shelves = (self._by_folder.get(folder, []), self._anywhere)
        return {number for shelf in shelves for number, made in shelf if meet(pattern.parts, made.parts)}


def _first_folder(pattern: Pattern) -> str | None:
    """The first part of the path; None when a wildcard or glob stands in it."""
    first = pattern.segments[0]
    if not first:
        return "/"
    text = first[0]
    return text.text if len(first) == 1 and isinstance(text, Text) else None


def feeds(blueprints: Sequence[Blueprint], makers: Makers, sources: Sources) -> Feeds:
    """For each rule those whose outputs could be found by its globs or give values to its wildcards."""
    found: Feeds = []
    for blueprint in blueprints:
        numbers: set[int] = set()
        given = with_own(sources, blueprint.own)
        for entry in blueprint.searching():
            for pattern in (entry.pattern, entry.folder):
                if pattern is not None:
                    numbers |= _makers_of(pattern, makers, given)
        found.append(tuple(sorted(numbers)))
    return found


def _makers_of(pattern: Pattern, makers: Makers, sources: Sources) -> set[int]:
    """The rules that may make what matches, for the values that the tables give to its wildcards.

    Those that no value fits are no makers: a circle through them would be none.
    """
    found = makers.of(_widened(pattern, sources.free))
    names = [name for name in pattern.names if name in sources.names]
    if not names or not found:
        return found
    try:
        rows = join_sources(sources.using(names), names).rows
    except TooManyRowsError:
        return found
    if not rows or len(rows) > _MOST_VALUES:
        return found
    close: set[int] = set()
    for row in rows:
        known = {name: normal(value) for name, value in zip(names, row)}
        close |= makers.among(found - close, pattern.bind(known))
        if close == found:
            break
    return close


def _widened(pattern: Pattern, free: frozenset[str]) -> Pattern:
    """The pattern with wildcards that stand for whole paths taken as such."""
    if free.isdisjoint(pattern.names):
        return pattern
    parts = [
        Wild(part.name, _ANY_PATH) if isinstance(part, Wild) and part.name in free else part
        for part in pattern.parts
    ]
    return Pattern.of(pattern.text, tuple(parts), pattern.place)


def in_order(blueprints: Sequence[Blueprint], fed_by: Feeds, findings: Findings) -> list[int]:
    """The rules so that each comes behind those that feed it; those in a circle are left out and reported."""
    readers: list[list[int]] = [[] for _ in fed_by]
    waits = [0] * len(fed_by)
    for number, makers in enumerate(fed_by):
        waits[number] = len(makers)
        for maker in makers:
            readers[maker].append(number)
    ready = [number for number, count in enumerate(waits) if not count]
    heapify(ready)
    done: list[int] = []
    while ready:
        number = heappop(ready)
        done.append(number)
        for reader in readers[number]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, reader)
    _tell_circles(blueprints, fed_by, set(range(len(fed_by))) - set(done), findings)
    return done


def _tell_circles(
    blueprints: Sequence[Blueprint], fed_by: Feeds, stuck: set[int], findings: Findings
) -> None:
    """Report one circle after the other, until no rule is left that is part of one."""
    unseen = sorted(stuck)
    told: set[int] = set()
    for start in unseen:
        trail: dict[int, None] = {}
        number: int | None = start
        while number is not None and number not in told:
            if number in trail:
                names = list(trail)
                circle = names[names.index(number) :]
                tell_circle([blueprints[one] for one in reversed(circle)], findings)
                break
            trail[number] = None
            number = next((maker for maker in fed_by[number] if maker in stuck), None)
        told |= set(trail)


def tell_circle(circle: Sequence[Blueprint], findings: Findings) -> None:
    """Report rules each of which feeds the next, and the last the first."""
    start = min(range(len(circle)), key=lambda at: circle[at].rule.place)
    circle = [*circle[start:], *circle[:start]]
    chain = " -> ".join(blueprint.rule.name for blueprint in (*circle, circle[0]))
    entry = circle[0].searching()[0].pattern
    if len(circle) == 1:
        message = f"an output of rule {circle[0].rule.name} could feed its own input '{entry.text}': {chain}"
    else:
        message = f"rules look for what the others make, in a circle: {chain}"
    hint = "write the outputs to another folder, or say in [wildcard_constraints] what a wildcard may be"
    findings.error("discovery-circle", message, entry.place, hint)

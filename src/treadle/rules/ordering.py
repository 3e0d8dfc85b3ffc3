"""Which rule is expanded before which: what a rule looks for may be what another one makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from treadle.rules.blueprint import Blueprint
from treadle.rules.language import meet
from treadle.rules.pattern import Pattern, Text
from treadle.rules.section import Findings

Feeds = list[tuple[int, ...]]


class Makers:
    """The outputs of all rules, by the first folder of their paths."""

    def __init__(self, blueprints: Sequence[Blueprint]) -> None:
        self._by_folder: dict[str, list[tuple[int, Pattern]]] = {}
        self._anywhere: list[tuple[int, Pattern]] = []
        for number, blueprint in enumerate(blueprints):
            for output in blueprint.outputs:
                folder = _first_folder(output.pattern)
                shelf = self._anywhere if folder is None else self._by_folder.setdefault(folder, [])
                shelf.append((number, output.pattern))

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


def feeds(blueprints: Sequence[Blueprint], makers: Makers) -> Feeds:
    """For each rule those whose outputs could be found by its globs or give values to its wildcards."""
    found: Feeds = []
    for blueprint in blueprints:
        numbers: set[int] = set()
        for entry in blueprint.searching():
            numbers |= makers.of(entry.pattern)
            if entry.folder is not None:
                numbers |= makers.of(entry.folder)
        found.append(tuple(sorted(numbers)))
    return found


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

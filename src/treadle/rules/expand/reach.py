"""Which checkpoint rules may still bring a rule new tasks, or its tasks more to work on.

All by rule, before anything is expanded: which of their tasks are still to end is seen when there are tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from treadle.plan.graph import levels, topological
from treadle.rules.expand.blueprint import Blueprint
from treadle.rules.expand.found import reaches
from treadle.rules.expand.hunting import mentions
from treadle.rules.expand.ordering import Feeds, Makers
from treadle.rules.expand.values import Sources
from treadle.rules.pattern.matching import ways
from treadle.rules.pattern.pattern import Pattern, Text
from treadle.rules.pattern.tree import NOTHING
from treadle.rules.schema import Source

# By number of a checkpoint rule: the wildcards on which its tasks must agree with the task that they reach.
Links = dict[int, frozenset[str]]


class Reach(Struct, frozen=True):
    """For each rule, by its number: `new` are the checkpoint rules that may bring further tasks of it, `more`
    those that may add to what its tasks work on. `checkpoints` has what each checkpoint rule may add to, and
    `turns` how many rules come before it, one behind the other."""

    checkpoints: dict[int, tuple[str, ...]]
    turns: dict[int, int]
    new: list[Links]
    more: list[Links]

    def coming(self, blueprints: Sequence[Blueprint]) -> dict[str, tuple[str, ...]]:
        """The checkpoint rules that may bring further tasks, by the name of the rule."""
        return {
            blueprint.rule.name: tuple(blueprints[one].rule.name for one in sorted(new))
            for blueprint, new in zip(blueprints, self.new)
            if new
        }


def reach(
    blueprints: Sequence[Blueprint],
    additions: Mapping[str, Sequence[str]],
    makers: Makers,
    fed_by: Feeds,
    sources: Sources,
) -> Reach | None:
    """`additions` are by name of the checkpoint rule. None: there are no checkpoint rules."""
    checkpoints = {
        number: tuple(additions[blueprint.rule.name])
        for number, blueprint in enumerate(blueprints)
        if blueprint.rule.name in additions
    }
    if not checkpoints:
        return None
    turns = _turns(blueprints, makers)
    found = Reach(
        checkpoints,
        {number: turns[number] for number in checkpoints},
        [{} for _ in blueprints],
        [{} for _ in blueprints],
    )
    for number, blueprint in enumerate(blueprints):
        _by_sources(number, blueprint, blueprints, sources, found)
    numbers = {blueprint.rule.name: number for number, blueprint in enumerate(blueprints)}
    while any(_spread(n, one, blueprints, numbers, fed_by, found) for n, one in enumerate(blueprints)):
        pass
    return found


def _turns(blueprints: Sequence[Blueprint], makers: Makers) -> list[int]:
    """For each rule the length of the longest chain of rules before it; those in a circle come last."""
    numbers = {blueprint.rule.name: number for number, blueprint in enumerate(blueprints)}
    needs: list[tuple[int, ...]] = []
    for number, blueprint in enumerate(blueprints):
        found = {maker for entry in blueprint.inputs for maker in makers.of(entry.pattern)}
        found.update(numbers[name] for name in blueprint.rule.depends_on if name in numbers)
        needs.append(tuple(sorted(found - {number})))
    order = topological(needs, range(len(needs)))
    level, straight = levels(needs, order), frozenset(order)
    return [level[number] if number in straight else len(needs) for number in range(len(needs))]


def _by_sources(
    number: int, blueprint: Blueprint, blueprints: Sequence[Blueprint], sources: Sources, found: Reach
) -> None:
    """What comes of the sources whose wildcards the rule names, and of the lists of them in config keys."""
    own_names = set(blueprint.own.whole.columns) if blueprint.own else set()
    key, names = set(blueprint.key), set(blueprint.names) - own_names
    for checkpoint, additions in found.checkpoints.items():
        own = frozenset(blueprints[checkpoint].key)
        for source in sources.using(names):
            if reaches(additions, source):
                links = own.difference(source.gives)
                _join(found.new[number], checkpoint, links)
                if not _is_settled(source, names, key):
                    _join(found.more[number], checkpoint, links & key)
        if {"sample", "pairs"}.intersection(additions) and mentions(blueprint.rule):
            _join(found.more[number], checkpoint, frozenset())


def _is_settled(source: Source, names: set[str], key: set[str]) -> bool:
    """Whether the wildcards that make a task leave it one row of the source, whatever rows come."""
    if source.kind == "pairs" and "pair_id" in key:
        return True
    return {name for name in source.gives if name in names} <= key


def _spread(
    number: int,
    blueprint: Blueprint,
    blueprints: Sequence[Blueprint],
    numbers: Mapping[str, int],
    fed_by: Feeds,
    found: Reach,
) -> bool:
    """What comes of rules that feed this one, that it depends on, and of checkpoint rules' own tasks."""
    new, more = found.new[number], found.more[number]
    before = len(new), len(more), sum(map(len, new.values())), sum(map(len, more.values()))
    key = frozenset(blueprint.key)
    for feeder in fed_by[number]:
        for checkpoint, links in found.new[feeder].items():
            _join(new, checkpoint, links & _shared(blueprint))
            _join(more, checkpoint, links & key & _shared(blueprint))
        for checkpoint, links in found.more[feeder].items():
            _join(more, checkpoint, links & key & _shared(blueprint))
    for name in blueprint.rule.depends_on:
        for checkpoint in found.new[numbers[name]] if name in numbers else ():
            _join(more, checkpoint, frozenset())
    for links_of in (new, more):
        for checkpoint, links in list(links_of.items()):
            for other, its in found.new[checkpoint].items():
                _join(links_of, other, links & its)
    return before != (len(new), len(more), sum(map(len, new.values())), sum(map(len, more.values())))


def _shared(blueprint: Blueprint) -> frozenset[str]:
    """The wildcards that stand in all inputs whose paths are looked for."""
    searching = [frozenset(entry.names) for entry in blueprint.searching()]
    return frozenset.intersection(*searching) if searching else frozenset()


def _join(links: Links, checkpoint: int, names: frozenset[str]) -> None:
    known = links.get(checkpoint)
    links[checkpoint] = names if known is None else known & names


def awaited_patterns(blueprints: Sequence[Blueprint], makers: Makers, found: Reach) -> frozenset[Pattern]:
    """The patterns of inputs that tasks which are still to come may match: the disk is not asked for them."""
    return frozenset(
        entry.pattern
        for blueprint in blueprints
        for entry in blueprint.searching()
        if any(found.new[number] for number in makers.of(entry.pattern))
        or (entry.folder is not None and any(found.new[number] for number in makers.of(entry.folder)))
    )


class Coming:
    """The paths that tasks which are still to come may make."""

    def __init__(self, blueprints: Sequence[Blueprint], found: Reach) -> None:
        self._makers = [
            (number, output.pattern)
            for number, blueprint in enumerate(blueprints)
            if found.new[number]
            for output in blueprint.outputs
        ]
        self._alone = {pattern.spelled for _, pattern in self._makers if not pattern.names}
        self._known: dict[str, list[tuple[int, dict[str, str]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._makers)

    def makers(self, path: str) -> list[tuple[int, dict[str, str]]]:
        """The rules new tasks of which may make `path`, a folder that it lies in, or something in it, each
        with the wildcards of the task that are known by that."""
        known = self._known.get(path)
        if known is None:
            found = [(number, _concerns(pattern, path)) for number, pattern in self._makers]
            known = self._known[path] = [(number, values) for number, values in found if values is not None]
        return known

    def alone(self, path: str) -> bool:
        """Whether it is one of their outputs as it is written, without a wildcard: nobody else's."""
        return path in self._alone


def _concerns(pattern: Pattern, path: str) -> dict[str, str] | None:
    """The wildcards with which the pattern is the path, or a folder around it; none known, where it may be
    something below it; None: it is neither."""
    first = pattern.parts[0] if pattern.parts else None
    start = first.text if isinstance(first, Text) else ""
    if start.startswith(f"{path}/"):
        return {}
    if not path.startswith(start) and not (not pattern.names and path == start):
        return None
    if found := ways(pattern.parts, path, NOTHING, 1):
        return dict(found[0])
    depth = pattern.spelled.count("/") + 1
    above = "/".join(path.split("/")[:depth])
    if above != path and (found := ways(pattern.parts, above, NOTHING, 1)):
        return dict(found[0])
    return None

"""Edges by an index: who makes which path, and whom each task needs therefore."""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

from treadle.base.names import did_you_mean
from treadle.plan.findings import Findings
from treadle.plan.nodes import Nodes
from treadle.plan.paths import PathIndex, made_by
from treadle.plan.task import Draft


class Made(Struct, frozen=True):
    """The planned outputs: path -> number of its maker, and the folders around and below a path."""

    maker: dict[str, int]
    index: PathIndex

    def makers(self, path: str) -> tuple[int, ...]:
        """Who must run before `path` can be read, ascending; nobody for a source.

        Its maker; else the maker of the folder that it lies in; else, when it is a folder itself, the
        makers of all that lies in it.
        """
        own = self.maker.get(path)
        if own is not None:
            return (own,)
        folder = self.index.nearest(path)
        if folder:
            return (self.maker[folder],)
        if self.index.has_below(path):
            return tuple(sorted({self.maker[inside] for inside in self.index.below(path)}))
        return ()


class Edges(Struct, frozen=True):
    """`needs` of each node, ascending; ids of those `ordered` by `depends_on` alone; the source inputs.

    `earlier` are the needs of a node that are tasks of earlier batches: they are no nodes of this plan.
    """

    needs: list[tuple[int, ...]]
    ordered: dict[int, frozenset[str]]
    sources: frozenset[str]
    earlier: dict[int, tuple[str, ...]] = {}


def find_makers(nodes: Nodes, findings: Findings) -> Made:
    """Index every output that will be made; a path with two makers is refused and belongs to none."""
    maker: dict[str, int] = {}
    contested: dict[str, None] = {}
    for number, draft in nodes.live():
        for path in draft.outputs or made_by(draft):
            first = maker.setdefault(path, number)
            if first != number:
                contested[path] = None
                _refuse_two(nodes, first, number, path, findings)
    for path in contested:
        del maker[path]
    return Made(maker, PathIndex(maker))


def connect(nodes: Nodes, made: Made, known: Container[str], findings: Findings) -> Edges:
    """Whom each node needs: the makers of its inputs, all tasks of the rules in its `depends_on`, the maker
    of its environment, and the steps that it builds on, some of which may be `known` from earlier batches."""
    needs: list[tuple[int, ...]] = [()] * len(nodes.ids)
    ordered: dict[int, frozenset[str]] = {}
    elsewhere: dict[str, tuple[int, ...]] = {}
    after = _After(nodes)
    below = _Below(nodes, known, findings)
    makings = {nodes.ids[number]: number for number, draft in nodes.live() if draft.making is not None}
    for number, draft in nodes.live():
        its = _read(draft.inputs, made, elsewhere)
        if number in its:
            _refuse_own(nodes, number, made, findings)
            its = tuple(need for need in its if need != number)
        if draft.depends_on:
            its, ordered[number] = after.join(number, its, draft.depends_on)
        if draft.steps:
            its = below.join(number, its, draft)
        environment = draft.policy.environment
        if environment is not None and environment.making is not None:
            its = _with(its, makings.get(environment.making.task))
        needs[number] = its
    sources = frozenset(path for path, its in elsewhere.items() if not its)
    return Edges(needs, ordered, sources, below.earlier)


def _read(inputs: tuple[str, ...], made: Made, elsewhere: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The makers of the inputs; `elsewhere` remembers them for paths that are no output by themselves.

    Tasks that read one folder and nothing else share one tuple.
    """
    find = made.maker.get
    if len(inputs) == 1 and (alone := find(inputs[0])) is not None:
        return (alone,)
    its: set[int] = set()
    for path in inputs:
        own = find(path)
        if own is not None:
            its.add(own)
            continue
        makers = elsewhere.get(path)
        if makers is None:
            makers = elsewhere[path] = made.makers(path)
        if len(inputs) == 1:
            return makers
        if makers:
            its.update(makers)
    return tuple(sorted(its)) if len(its) > 1 else tuple(its)


def _with(its: tuple[int, ...], more: int | None) -> tuple[int, ...]:
    """The needs, and the task that makes the environment; it orders, but nothing of it is read."""
    return its if more is None or more in its else tuple(sorted((*its, more)))


class _After:
    """Edges from `depends_on`: a rule's name stands for all its tasks that are not skipped."""

    def __init__(self, nodes: Nodes) -> None:
        self._ids = nodes.ids
        self._tasks: dict[str, list[int]] = {}
        for number, draft in nodes.live():
            self._tasks.setdefault(draft.rule, []).append(number)
        self._known: dict[tuple[str, ...], tuple[tuple[int, ...], frozenset[int], frozenset[str]]] = {}

    def join(
        self, number: int, its: tuple[int, ...], rules: tuple[str, ...]
    ) -> tuple[tuple[int, ...], frozenset[str]]:
        """All that the node needs, and the ids of those that it needs for its `depends_on` alone.

        Tasks that need nothing else share one tuple, and those that read nothing of these share one set.
        """
        members, numbers, names = self._members(rules)
        if number not in numbers and numbers.isdisjoint(its):
            return tuple(sorted((*members, *its))) if its else members, names
        alone = numbers.difference(its, (number,))
        return tuple(sorted(alone.union(its))), frozenset(map(self._ids.__getitem__, alone))

    def _members(self, rules: tuple[str, ...]) -> tuple[tuple[int, ...], frozenset[int], frozenset[str]]:
        known = self._known.get(rules)
        if known is None:
            numbers = sorted({number for rule in rules for number in self._tasks.get(rule, ())})
            known = tuple(numbers), frozenset(numbers), frozenset(map(self._ids.__getitem__, numbers))
            self._known[rules] = known
        return known


class _Below:
    """Edges from what steps build on. `earlier`: by node, those that are tasks of earlier batches."""

    def __init__(self, nodes: Nodes, known: Container[str], findings: Findings) -> None:
        self._nodes = nodes
        self._known = known
        self._findings = findings
        self._numbers: dict[str, int] = {}
        self.earlier: dict[int, tuple[str, ...]] = {}

    def join(self, number: int, its: tuple[int, ...], draft: Draft) -> tuple[int, ...]:
        """All that the node needs."""
        if not self._numbers:
            self._numbers.update((task, at) for at, task in enumerate(self._nodes.ids))
        needs, earlier = set(its), []
        for step in draft.steps:
            below = self._numbers.get(step)
            if below is not None:
                needs.add(below)
            elif step in self._known:
                earlier.append(step)
            else:
                self._refuse(number, step, draft)
        needs.discard(number)
        if earlier:
            self.earlier[number] = tuple(earlier)
        return tuple(sorted(needs))

    def _refuse(self, number: int, step: str, draft: Draft) -> None:
        self._findings.error(
            "unknown-step",
            f"{self._nodes.ids[number]} builds on {step}, which is not in the plan",
            draft.place,
            did_you_mean(step, self._numbers),
            alike=(draft.rule, step),
        )


def _refuse_two(nodes: Nodes, first: int, second: int, path: str, findings: Findings) -> None:
    one, other = nodes.drafts[first], nodes.drafts[second]
    where = f" ({one.place})" if str(one.place) else ""
    hint = "give each an output of its own, or `when` conditions of which only one can be true"
    if one.call is not None and other.call is not None:
        hint = "give one of the steps an output path of its own"
    elif one.call is not None or other.call is not None:
        hint = "give the step another output path, or the rule another output"
    findings.error(
        "two-producers",
        f"{nodes.ids[first]}{where} and {nodes.ids[second]} both make {path}",
        other.place,
        hint,
        alike=(one.rule, other.rule),
    )


def _refuse_own(nodes: Nodes, number: int, made: Made, findings: Findings) -> None:
    """Refuse an input that is, or lies in, an output of the same task; a folder above it is fine."""
    draft = nodes.drafts[number]
    for path in draft.inputs:
        inside = [folder for folder in made.index.above(path) if made.maker[folder] == number]
        if made.maker.get(path) == number:
            message = f"{nodes.ids[number]} reads {path}, which is its own output"
        elif inside:
            message = f"{nodes.ids[number]} reads {path}, which lies in its own output {inside[0]}"
        else:
            continue
        findings.error(
            "reads-own-output",
            message,
            draft.place,
            "write the result to another path",
            alike=(draft.rule,),
        )

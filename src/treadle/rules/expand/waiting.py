"""Which drafts are not final yet, since a checkpoint task that has not ended may add to what they work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.names import task_id
from treadle.plan.task import Draft, ExecutionGroup, Skip
from treadle.rules.expand.blueprint import Blueprint
from treadle.rules.expand.finder import Finder
from treadle.rules.expand.reach import Coming, Reach
from treadle.rules.expand.trip import Expanded


class Open(Struct, frozen=True):
    """A checkpoint task that has not ended: its id, and its wildcards."""

    task: str
    wildcards: dict[str, str]


def wait(
    rules: Mapping[int, Expanded],
    blueprints: Sequence[Blueprint],
    found: Reach,
    finder: Finder,
    ended: set[str],
    sequences: Iterable[ExecutionGroup] = (),
) -> None:
    """Mark the drafts with the checkpoint tasks that they await; in place.

    What only tasks that did not come could have made is made by nobody: who reads it is skipped, and a gather
    goes without. `ended` are the checkpoint tasks whose values are known. In the `sequences` a rule awaits
    those that may bring further tasks of a rule in front of it.
    """
    waiting = _Waiting(rules, blueprints, found, finder, ended)
    waiting.in_front = _in_front(sequences, blueprints, found)
    for number, expanded in rules.items():
        waiting.mark(number, expanded)


class _Waiting:
    def __init__(
        self,
        rules: Mapping[int, Expanded],
        blueprints: Sequence[Blueprint],
        found: Reach,
        finder: Finder,
        ended: set[str],
    ) -> None:
        self.in_front: dict[int, set[int]] = {}
        self._reach = found
        self._finder = finder
        self._coming = Coming(blueprints, found)
        self._open: dict[int, list[Open]] = {}
        self._index: dict[tuple[int, tuple[str, ...]], dict[tuple[str | None, ...], list[str]]] = {}
        for number in found.checkpoints:
            drafts = rules[number].drafts if number in rules else ()
            tasks = [(task_id(one.rule, one.wildcards), one) for one in drafts if one.skip is None]
            self._open[number] = [Open(task, dict(one.wildcards)) for task, one in tasks if task not in ended]
        self._made = {
            path for one in rules.values() for d in one.drafts if d.skip is None for path in d.outputs
        }

    def mark(self, number: int, expanded: Expanded) -> None:
        if turn := self._reach.turns.get(number, 0):
            expanded.drafts[:] = [replace(draft, turn=turn) for draft in expanded.drafts]
        more = {n: links for n, links in self._reach.more[number].items() if self._open[n]}
        more.update((n, frozenset()) for n in self.in_front.get(number, ()) if self._open[n])
        looks = self._coming and bool(expanded.blueprint.inputs)
        if not more and not looks:
            return
        drafts = expanded.drafts
        for at, draft in enumerate(drafts):
            values = dict(draft.wildcards)
            awaits = {task for n, links in more.items() for task in self._agreeing(n, links, values)}
            lacked: set[str] = set()
            dead: list[str] = []
            if looks:
                for path in draft.inputs:
                    if path not in self._made:
                        self._look(path, lacked, dead)
            if awaits or lacked:
                drafts[at] = replace(
                    draft, awaits=tuple(sorted(awaits | lacked)), born=tuple(sorted(lacked)), skip=None
                )
            elif dead and draft.skip is None:
                drafts[at] = self._without(expanded, at, dead)

    def _agreeing(self, number: int, links: Set[str], values: Mapping[str, str]) -> Sequence[str]:
        """The open tasks of a checkpoint rule that agree with these values in the `links`."""
        names = tuple(sorted(links & values.keys()))
        index = self._index.get((number, names))
        if index is None:
            index = self._index[number, names] = {}
            for one in self._open[number]:
                index.setdefault(tuple([one.wildcards.get(name) for name in names]), []).append(one.task)
        return index.get(tuple([values[name] for name in names]), ())

    def _look(self, path: str, lacked: set[str], dead: list[str]) -> None:
        """Who may still make a path that no task makes as it is."""
        coming = self._coming.makers(path)
        if not coming or self._finder.lies_in_output(path):
            return
        tasks = {
            task
            for number, values in coming
            for checkpoint, links in self._reach.new[number].items()
            for task in self._agreeing(checkpoint, links & values.keys(), values)
        }
        if tasks:
            lacked |= tasks
        elif not self._finder.planned(path) and (
            self._coming.alone(path) or not self._finder.listing.exists(path)
        ):
            dead.append(path)

    def _without(self, expanded: Expanded, at: int, dead: Sequence[str]) -> Draft:
        """The draft as it is when nobody makes these paths."""
        draft = expanded.drafts[at]
        fixed = next((path for path in dead if path not in draft.gathered), None)
        if fixed is not None:
            return replace(draft, skip=Skip("upstream", fixed))
        return expanded.drafter.draft(expanded.drafter.groups[at], frozenset(dead))


def _in_front(
    sequences: Iterable[ExecutionGroup], blueprints: Sequence[Blueprint], found: Reach
) -> dict[int, set[int]]:
    """By rule, the checkpoint rules that may bring tasks of the rules in front of it in an execution group.

    Not those that stand behind it themselves, which would wait for it.
    """
    numbers = {blueprint.rule.name: number for number, blueprint in enumerate(blueprints)}
    awaited: dict[int, set[int]] = {}
    for sequence in sequences:
        rules = [numbers[name] for name in sequence.rules if name in numbers]
        before: set[int] = set()
        for at, number in enumerate(rules):
            if before:
                awaited.setdefault(number, set()).update(before.difference(rules[at:]))
            before |= found.new[number].keys()
    return awaited

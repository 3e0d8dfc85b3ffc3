"""Execution groups in the graph: between the tasks of one rule and those of the next stands one barrier.

So an order between n and m tasks costs n + m edges; and so do needs that many tasks share. Barriers are
numbered behind all tasks; they order the plan and show circles, and are gone when the plan is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from treadle.plan.nodes import Nodes
from treadle.plan.task import ExecutionGroup

Needs = list[tuple[int, ...]]

WORTH_SHARING = 8  # needs, from which on it is looked whether several tasks have the same


def with_barriers(nodes: Nodes, needs: Needs, groups: Iterable[ExecutionGroup]) -> Needs:
    """The needs of all nodes, and behind them those of the barriers; the same list where there are none."""
    groups = tuple(groups)
    if not groups:
        return needs
    members: dict[str, list[int]] = {}
    for number, draft in nodes.live():
        members.setdefault(draft.rule, []).append(number)
    found = list(needs)
    for group in groups:
        before: tuple[int, ...] = ()
        for rule, following in pairwise(group.rules):
            barrier = len(found)
            found.append((*members.get(rule, ()), *before))
            for number in members.get(following, ()):
                found[number] = (*found[number], barrier)
            before = (barrier,)
    return found


def behind_barriers(needs: Needs) -> Needs:
    """The same needs, many that several nodes share behind one barrier: so n tasks after a rule of m cost
    n + m edges, too. The same list where there are none."""
    many = {number: its for number, its in enumerate(needs) if len(its) > WORTH_SHARING}
    if not many:
        return needs
    sharing = Counter(map(id, many.values()))
    found = list(needs)
    barriers: dict[int, int] = {}
    for number, its in many.items():
        if sharing[id(its)] > 1:
            barrier = barriers.setdefault(id(its), len(found))
            if barrier == len(found):
                found.append(its)
            found[number] = (barrier,)
    return found


def without_barriers(numbers: Sequence[int], real: int) -> list[int]:
    """The numbers of tasks among those of tasks and barriers."""
    return [number for number in numbers if number < real]


def orders(groups: Iterable[ExecutionGroup], first: str, second: str) -> str:
    """The name of an execution group that runs the rule `first` before `second`; empty where none does."""
    for group in groups:
        rules = group.rules
        if first in rules and second in rules and rules.index(first) < rules.index(second):
            return group.name
    return ""

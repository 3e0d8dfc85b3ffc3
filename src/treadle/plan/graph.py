"""The graph of a plan: order, levels, cycles, closures, critical path; all linear, nothing recursive.

The first half works on numbered nodes, while a plan is being built: `needs[node]` are the nodes it
needs. The second half works on a plan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from treadle.plan.sequence import WORTH_SHARING
from treadle.plan.task import ScheduledPlan, ScheduledTask

Needs = Sequence[Sequence[int]]


def topological(needs: Needs, rank: Sequence[int]) -> list[int]:
    """Nodes, each after what it needs; among those that could come next, the lowest rank does.

    `rank` holds each of 0..n-1 once. Nodes on a cycle, and what needs them, are left out.
    """
    at = [0] * len(rank)
    for node, place in enumerate(rank):
        at[place] = node
    waiting = [len(its) for its in needs]
    feeds = _feeds(needs)
    ready = [rank[node] for node, count in enumerate(waiting) if not count]
    heapify(ready)
    order = []
    while ready:
        node = at[heappop(ready)]
        order.append(node)
        for other in feeds[node]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, rank[other])
    return order


def levels(needs: Needs, order: Iterable[int], barriers: int = 0) -> list[int]:
    """For each node the length of the longest path that leads to it: nodes of one level are independent.

    The last `barriers` nodes only stand between others: they have the level of what they wait for.
    """
    level = [0] * len(needs)
    real = len(needs) - barriers
    for node in order:
        if needs[node] or node >= real:
            level[node] = max(map(level.__getitem__, needs[node]), default=-1) + (node < real)
    return level


def cycles(needs: Needs, order: Iterable[int]) -> list[list[int]]:
    """One cycle of each tangle among the nodes that `order` left out.

    Each is the shortest through the lowest node of its tangle and starts there: every node is needed by
    the next, the last by the first. No two share a node.
    """
    left = bytearray(b"\1") * len(needs)
    for node in order:
        left[node] = 0
    rest: list[list[int]] = [
        [need for need in its if left[need]] if left[node] else [] for node, its in enumerate(needs)
    ]
    feeds = _feeds(rest)
    return sorted(_shortest(feeds, tangle) for tangle in _tangles(rest, feeds) if len(tangle) > 1)


def _feeds(needs: Needs) -> list[list[int]]:
    """The graph turned round: for each node those that need it, ascending."""
    feeds: list[list[int]] = [[] for _ in needs]
    for node, its in enumerate(needs):
        for need in its:
            feeds[need].append(node)
    return feeds


def _tangles(needs: Needs, feeds: Needs) -> Iterable[set[int]]:
    """Sets of nodes that all lead to each other: Kosaraju's strongly connected components."""
    seen = bytearray(len(needs))
    for root in reversed(_finished(needs)):
        if seen[root]:
            continue
        seen[root] = 1
        tangle, stack = {root}, [root]
        while stack:
            for other in feeds[stack.pop()]:
                if not seen[other]:
                    seen[other] = 1
                    tangle.add(other)
                    stack.append(other)
        yield tangle


def _finished(needs: Needs) -> list[int]:
    """Nodes in the order in which a depth-first walk leaves them."""
    seen = bytearray(len(needs))
    finished = []
    for root in range(len(needs)):
        if seen[root]:
            continue
        seen[root] = 1
        stack = [(root, iter(needs[root]))]
        while stack:
            node, turns = stack[-1]
            for need in turns:
                if not seen[need]:
                    seen[need] = 1
                    stack.append((need, iter(needs[need])))
                    break
            else:
                finished.append(node)
                stack.pop()
    return finished


def _shortest(feeds: Needs, tangle: set[int]) -> list[int]:
    """The shortest way from the lowest node of a tangle through `feeds` back to it."""
    start = min(tangle)
    came: dict[int, int] = {}
    queue = deque([start])
    while start not in came:
        node = queue.popleft()
        for other in feeds[node]:
            if other in tangle and other not in came:
                came[other] = node
                queue.append(other)
    way = [came[start]]
    while way[-1] != start:
        way.append(came[way[-1]])
    return way[::-1]


def upstream(plan: ScheduledPlan, tasks: Iterable[str]) -> frozenset[str]:
    """The tasks and everything in the plan that they need, over any number of steps."""
    found = set(tasks)
    for task in reversed(plan.order):
        if task in found:
            found.update(plan.tasks[task].needs)
    return frozenset(found.intersection(plan.tasks))


def downstream(plan: ScheduledPlan, tasks: Iterable[str]) -> frozenset[str]:
    """The tasks and everything that needs them, over any number of steps."""
    found = set(tasks)
    for task in plan.order:
        if task not in found and not found.isdisjoint(plan.tasks[task].needs):
            found.add(task)
    return frozenset(found)


def dependents(tasks: Iterable[ScheduledTask]) -> dict[str, Sequence[ScheduledTask]]:
    """Those of the tasks that need each task, whether or not it is among them.

    Many needs that several tasks share are followed once, and what is needed shares one tuple of these where
    it has no other dependents.
    """
    found: dict[str, list[ScheduledTask]] = {}
    together: dict[int, list[ScheduledTask]] = {}
    for task in tasks:
        if len(task.needs) > WORTH_SHARING:
            together.setdefault(id(task.needs), []).append(task)
        else:
            for need in task.needs:
                found.setdefault(need, []).append(task)
    shared: dict[str, Sequence[ScheduledTask]] = {}
    for some in map(tuple, together.values()):
        for need in some[0].needs:
            if need in found:
                found[need] += some
            elif need in shared:
                found[need] = [*shared.pop(need), *some]
            else:
                shared[need] = some
    return {**found, **shared}


def critical_path(
    plan: ScheduledPlan, tasks: Iterable[str], seconds: Mapping[str, float]
) -> tuple[list[str], float]:
    """Of these tasks, in plan order, those that must wait for each other and together take longest; how long
    they take. However many may run at a time, the rest ends no sooner.

    `seconds` tells how long tasks take; nothing where it is silent.
    """
    longest: dict[str, float] = {}
    after: dict[str, str] = {}
    for task in tasks:
        needs = [need for need in plan.tasks[task].needs if need in longest]
        after[task] = last = max(needs, key=longest.__getitem__, default="")
        longest[task] = seconds.get(task, 0.0) + longest.get(last, 0.0)
    task = max(reversed(longest), key=longest.__getitem__, default="")
    total, path = longest.get(task, 0.0), []
    while task:
        path.append(task)
        task = after[task]
    return path[::-1], total

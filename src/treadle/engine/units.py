"""Units: tasks of one group that are connected go into one job, one after the other, in the plan's order.

A unit waits until all that its tasks need from elsewhere has ended well. So no unit may wait for another
that waits for it: a path that leaves a unit must not come back. Every task gets a height that rises wherever
a path leaves a group; tasks of one group are together where they are connected at one height.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from treadle.engine.node import Node, State
from treadle.plan.task import Resources

# Whether one job can be had that does these, one after the other.
Fits = Callable[[Sequence[Resources]], bool]


class Unit:
    """Tasks that make one job. `ready` counts those of them that wait for nothing from elsewhere."""

    __slots__ = ("members", "ready")

    def __init__(self, members: list[Node]) -> None:
        self.members = members
        self.ready = 0

    @property
    def complete(self) -> bool:
        return self.ready == len(self.members)


class Divided(Struct, frozen=True):
    """A set of connected tasks of a group, led by `first`, that had to become several jobs: for a path that
    leaves and comes back, or (`long`) since one job cannot be had for all of it."""

    group: str
    first: str
    long: bool


def can_join(node: Node, *, cutoff: bool) -> bool:
    """Whether a node may be in a unit: its task is sure to run, and nothing but its needs decides when, or as
    what. Where it runs counts besides."""
    task, policy = node.task, node.task.policy
    return bool(
        policy.group
        and task.call is None
        and node.state is State.WAITING
        and not node.attempt
        and (node.must or not cutoff)
        and not (policy.allow_missing or policy.allow_missing_part or task.manifest)
    )


def units_of(
    nodes: Mapping[str, Node], joins: Callable[[Node], bool], fits: Fits
) -> tuple[list[Unit], list[Divided]]:
    """The units among nodes, which come in plan order; `joins`: a node may be in one. Cost is linear
    in edges, but for what is divided."""
    group = {task: node.task.policy.group for task, node in nodes.items() if joins(node)}
    if not group:
        return [], []
    height = _heights(nodes, group)
    leader: dict[str, str] = {}
    divided: list[Divided] = []
    for task, name in group.items():
        leader[task] = task
        for need in nodes[task].task.needs:
            if group.get(need) != name:
                continue
            if height[need] == height[task]:
                leader[_root(leader, need)] = _root(leader, task)
            else:
                divided.append(Divided(name, task, False))
    members: dict[str, list[Node]] = {}
    for task in group:
        members.setdefault(_root(leader, task), []).append(nodes[task])
    units: list[Unit] = []
    for some in members.values():
        parts = _parts(some, fits)
        if len(parts) > 1:
            divided.append(Divided(some[0].task.policy.group, some[0].task.id, True))
        units += [Unit(part) for part in parts if len(part) > 1]
    return units, divided


def _heights(nodes: Mapping[str, Node], group: Mapping[str, str]) -> dict[str, int]:
    """How often a path to a task has left a group at most; raised then to where what follows it stands, so
    that tasks which come into a group late do not part it."""
    height: dict[str, int] = {}
    below: set[str] = set()  # in a group, or behind one
    for task, node in nodes.items():
        found = 0
        if task in group:
            below.add(task)
        for need in node.task.needs:
            if need in height:
                found = max(found, height[need] + _step(group, below, need, task))
                if need in below:
                    below.add(task)
        height[task] = found
    for task in [*nodes][::-1]:
        if task in group:
            above = [
                height[one.task.id] - _step(group, below, task, one.task.id) for one in nodes[task].dependents
            ]
            if any(group.get(one.task.id) == group[task] for one in nodes[task].dependents):
                height[task] = max(height[task], min(above))
    return height


def _step(group: Mapping[str, str], below: set[str], need: str, task: str) -> int:
    """What an edge adds: nothing within a group, and nothing where no group is behind it."""
    if need in group and group[need] == group.get(task):
        return 0
    return int(need in below)


def _root(leader: dict[str, str], task: str) -> str:
    while leader[task] != task:
        leader[task] = leader[leader[task]]
        task = leader[task]
    return task


def _parts(some: list[Node], fits: Fits) -> list[list[Node]]:
    """The same, cut where a job would become too much. What fits does so without its last as well."""
    wanted = [node.resources for node in some]
    if fits(wanted):
        return [some]
    parts: list[list[Node]] = []
    at = 0
    while at < len(some):
        size = _most(wanted, at, fits)
        parts.append(some[at : at + size])
        at += size
    return parts


def _most(wanted: list[Resources], at: int, fits: Fits) -> int:
    """How many from there on one job can be had for, at least one: by doubling, then by halving."""
    low, high = 1, len(wanted) - at + 1
    while high - low > 1:
        size = min(2 * low, (low + high) // 2)
        if fits(wanted[at : at + size]):
            low = size
        else:
            high = size
    return low

"""Execution groups while a run goes on: tasks of a rule stand at a gate until those of the rules before it
have ended, however they ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treadle.engine.node import Node, State
from treadle.plan.task import ExecutionGroup

_Stage = tuple[int, int]  # number of the group, number of the rule in it


class Gates:
    """Who is at a gate, and how many tasks are open in front of it. Costs the groups of a task's rule."""

    def __init__(self, groups: Sequence[ExecutionGroup] = (), nodes: Iterable[Node] = ()) -> None:
        self._stages: dict[str, list[_Stage]] = {}
        for number, group in enumerate(groups):
            for at, rule in enumerate(group.rules):
                self._stages.setdefault(rule, []).append((number, at))
        self._open = [[0] * len(group.rules) for group in groups]
        self._first = [0] * len(groups)  # the first rule that has open tasks
        self._counted: set[str] = set()
        self._waiting: dict[_Stage, list[Node]] = {}
        if groups:
            for node in nodes:
                if type(node.state) is State:
                    self._count(node)
            for number in range(len(groups)):
                self._advance(number)

    def admit(self, node: Node) -> bool:
        """Whether a task that is ready may start; else it waits here."""
        for number, at in self._stages.get(node.task.rule, ()):
            if at > self._first[number]:
                self._waiting.setdefault((number, at), []).append(node)
                return False
        return True

    def keeps(self, rule: str) -> bool:
        """Whether tasks of a rule may have to wait here."""
        return rule in self._stages

    def ended(self, node: Node) -> list[Node]:
        """A task has ended, or sleeps: those who waited for it alone, and are to be admitted anew."""
        if node.task.id not in self._counted:
            return []
        self._counted.discard(node.task.id)
        freed: list[Node] = []
        for number, at in self._stages[node.task.rule]:
            self._open[number][at] -= 1
            if at == self._first[number] and not self._open[number][at]:
                freed += self._advance(number)
        return freed

    def back(self, node: Node) -> None:
        """A task that had ended is open again."""
        if node.task.rule in self._stages and node.task.id not in self._counted:
            self._count(node)
            for number, at in self._stages[node.task.rule]:
                self._first[number] = min(self._first[number], at)

    def _count(self, node: Node) -> None:
        for number, at in self._stages.get(node.task.rule, ()):
            self._open[number][at] += 1
            self._counted.add(node.task.id)

    def _advance(self, number: int) -> list[Node]:
        """Go on to the next rule that has open tasks; those who wait there."""
        counts, first = self._open[number], self._first[number]
        while first < len(counts) - 1 and not counts[first]:
            first += 1
        self._first[number] = first
        return self._waiting.pop((number, first), [])

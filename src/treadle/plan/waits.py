"""Needs that only order: tasks after the checkpoint tasks that found their values, or may add to them.

A checkpoint task adds nothing to what it builds on itself, and so nobody below it waits for it. Where two of
them might each add to what the other builds on, the one whose rule comes first goes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from treadle.plan.nodes import Nodes
from treadle.plan.task import Draft


class Waits(Struct, frozen=True):
    """By number of a task: the ids of what it needs for its order alone, and those of what it awaits."""

    born: dict[int, frozenset[str]] = {}
    awaits: dict[int, tuple[str, ...]] = {}


def add_waits(nodes: Nodes, needs: list[tuple[int, ...]]) -> Waits:
    """Add the needs, in place."""
    concerned = [(number, draft) for number, draft in nodes.live() if draft.born or draft.awaits]
    if not concerned:
        return Waits()
    return _Adding(nodes, needs).add(concerned)


class _Adding:
    def __init__(self, nodes: Nodes, needs: list[tuple[int, ...]]) -> None:
        self._ids = nodes.ids
        self._drafts = nodes.drafts
        self._needs = needs
        self._numbers = {nodes.ids[number]: number for number, _ in nodes.live()}
        self._alone: dict[int, set[int]] = {}  # by task, what it needs for its order alone
        self._readers: list[list[int]] = []
        self._below: dict[int, set[int]] = {}

    def add(self, concerned: Sequence[tuple[int, Draft]]) -> Waits:
        for number, draft in concerned:
            for one in draft.born:
                if one in self._numbers:
                    self._need(number, self._numbers[one])
        awaits: dict[int, list[int]] = {}
        readers = self._awaiting(concerned)
        if readers:
            self._readers = [[] for _ in self._needs]
            for number, its in enumerate(self._needs):
                for need in its:
                    self._readers[need].append(number)
        for checkpoint in self._in_order(readers):
            for number in readers[checkpoint]:
                if checkpoint == number or checkpoint in self._all_below(number):
                    continue
                awaits.setdefault(number, []).append(checkpoint)
                if checkpoint not in self._needs[number]:
                    self._need(number, checkpoint)
                    self._readers[checkpoint].append(number)
                    for above in [above for above, below in self._below.items() if checkpoint in below]:
                        del self._below[above]
        return Waits(
            {number: self._named(those) for number, those in self._alone.items()},
            {number: tuple(sorted(self._named(those))) for number, those in awaits.items()},
        )

    def _awaiting(self, concerned: Sequence[tuple[int, Draft]]) -> dict[int, list[int]]:
        """By checkpoint task: the tasks that await it."""
        found: dict[int, list[int]] = {}
        for number, draft in concerned:
            for one in draft.awaits:
                if one in self._numbers:
                    found.setdefault(self._numbers[one], []).append(number)
        return found

    def _in_order(self, checkpoints: Iterable[int]) -> list[int]:
        """By their turn, which is that of their rule, so that it stays the same when the plan grows."""
        return sorted(checkpoints, key=lambda number: (self._drafts[number].turn, number))

    def _need(self, number: int, need: int) -> None:
        its = self._needs[number]
        if need not in its:
            self._needs[number] = tuple(sorted((*its, need)))
            self._alone.setdefault(number, set()).add(need)

    def _all_below(self, number: int) -> set[int]:
        """All that needs a task, over any number of steps."""
        below = self._below.get(number)
        if below is None:
            below, pending = set(), [number]
            while pending:
                for reader in self._readers[pending.pop()]:
                    if reader not in below:
                        below.add(reader)
                        pending.append(reader)
            self._below[number] = below
        return below

    def _named(self, numbers: Iterable[int]) -> frozenset[str]:
        return frozenset(map(self._ids.__getitem__, numbers))

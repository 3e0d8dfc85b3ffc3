"""Ready tasks in the order in which they may start, and the resources that are free.

Ready tasks are held by *shape*: those that take the same amounts stand in one heap, by rank. A shape
whose first does not fit holds back all of that shape, so one look at each shape is enough, and the
cost of a start does not hang on how many tasks are ready.

The first that does not fit reserves: of what is free it holds what it needs, and of what it lacks
nobody else may start at all. So what is given back gathers until it fits, and a large task starts at
the latest when everything that runs now has ended. Smaller ones pass it only with resources that it
neither holds nor lacks.
"""

from __future__ import annotations

from heapq import heappop, heappush

from treadle.engine.budget import Budget, Demand

# So many shapes that do not fit are passed over in one look: keeps a look short when every task has
# amounts of its own.
PATIENCE = 16


class _Shape:
    """Ready tasks that take the same amounts: a heap of ranks."""

    __slots__ = ("demand", "ranks")

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.ranks: list[int] = []


class ReadyQueue:
    """Ranks of ready tasks (0 goes first), each with its demand, and what is free."""

    def __init__(self, budget: Budget) -> None:
        self.free: list[int] = list(budget.whole())
        self._shapes: dict[Demand, _Shape] = {}
        # (first rank of a shape, demand); an entry that no longer tells the first rank is passed over
        self._heads: list[tuple[int, Demand]] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, rank: int, demand: Demand) -> None:
        """A task is ready."""
        shape = self._shapes.get(demand)
        if shape is None:
            shape = self._shapes[demand] = _Shape(demand)
        ranks = shape.ranks
        heappush(ranks, rank)
        self._size += 1
        if ranks[0] == rank:
            heappush(self._heads, (rank, demand))

    def take(self) -> list[int]:
        """Ranks of the tasks that start now; what they need is taken."""
        heads = self._heads
        if not heads:
            return []
        started: list[int] = []
        left = self.free.copy()
        stalled: list[tuple[int, Demand]] = []
        while heads and len(stalled) < PATIENCE:
            head = heappop(heads)
            while heads and heads[0] == head:  # told twice
                heappop(heads)
            rank, demand = head
            shape = self._shapes.get(demand)
            if shape is None or shape.ranks[0] != rank:
                continue
            if _fits(demand, left):
                ranks = shape.ranks
                started.append(heappop(ranks))
                for at, amount in enumerate(demand):
                    left[at] -= amount
                    self.free[at] -= amount
                if ranks:
                    heappush(heads, (ranks[0], demand))
                else:
                    del self._shapes[demand]
            else:
                stalled.append(head)
                _reserve(demand, left)
        for head in stalled:
            heappush(heads, head)
        self._size -= len(started)
        return started

    def occupy(self, demand: Demand) -> None:
        """Something runs that was not started from here: a job of an earlier run."""
        for at, amount in enumerate(demand):
            self.free[at] -= amount

    def give_back(self, demand: Demand) -> None:
        """An attempt ended: what it took is free again."""
        for at, amount in enumerate(demand):
            self.free[at] += amount

    def clear(self) -> None:
        """Forget who is ready (ranks have changed); what is free stays."""
        self._shapes.clear()
        self._heads.clear()
        self._size = 0


def _fits(demand: Demand, left: list[int]) -> bool:
    for amount, here in zip(demand, left):  # noqa: SIM110 - this line is on the path of every start
        if amount and amount > here:
            return False
    return True


def _reserve(demand: Demand, left: list[int]) -> None:
    for at, amount in enumerate(demand):
        if amount:
            left[at] = max(left[at] - amount, 0)

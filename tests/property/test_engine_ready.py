"""The ready queue under any demands: never over what there is, and the first in line is never starved."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.engine.budget import Budget, Demand
from treadle.engine.ready import ReadyQueue

BUDGET = Budget(threads=6, memory=6, pools=(("a", 3), ("b", 2)))
amounts = st.tuples(st.integers(0, 6), st.integers(0, 6), st.just(0), st.integers(0, 3), st.integers(0, 2))


@settings(max_examples=200, deadline=None)
@given(st.lists(amounts, min_size=1, max_size=25), st.randoms(use_true_random=False))
def test_the_first_in_line_starts_at_the_latest_when_all_that_ran_before_it_has_ended(
    demands: list[Demand], chance: object
) -> None:
    queue = ReadyQueue(BUDGET)
    whole = BUDGET.whole()
    for rank, demand in enumerate(demands):
        queue.push(rank, demand)
    ready, running = set(range(len(demands))), []  # type: set[int], list[int]
    ahead: set[int] = set()  # what ran when the present first one began to wait
    first = -1
    while ready or running:
        for rank in queue.take():
            ready.remove(rank)
            running.append(rank)
        used = [sum(demands[rank][at] for rank in running) for at in range(len(whole))]
        assert all(amount <= size for amount, size in zip(used, whole))
        assert [size - amount for amount, size in zip(used, whole)] == queue.free
        assert len(queue) == len(ready)
        if ready:
            assert running, "nothing runs, and the first in line does not start"
            if min(ready) != first:
                first, ahead = min(ready), set(running)
            assert ahead & set(running), "the first in line waits for nothing that ran before it"
        ended = running.pop(chance.randrange(len(running)))  # type: ignore[attr-defined]
        queue.give_back(demands[ended])


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=60))
def test_equal_demands_go_by_rank(ranks: list[int]) -> None:
    queue = ReadyQueue(Budget(threads=1))
    for rank in ranks:
        queue.push(rank, (1, 0, 0))
    order = []
    while started := queue.take():
        order += started
        queue.give_back((1, 0, 0))
    assert order == sorted(ranks)

"""Many waits at a time: in order, within bounds, and an error comes when its turn does."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from treadle.steps.parallel import in_parallel


def test_results_come_in_the_order_of_the_values() -> None:
    assert list(in_parallel(lambda n: n * n, range(500), 8)) == [n * n for n in range(500)]
    assert list(in_parallel(str, [], 8)) == []
    assert list(in_parallel(str, iter([1]), 8)) == ["1"]


def test_no_more_is_taken_in_advance_than_the_threads_need() -> None:
    taken: list[int] = []

    def values() -> Iterator[int]:
        for n in range(10_000):
            taken.append(n)
            yield n

    found = in_parallel(str, values(), 3)
    assert [next(found) for _ in range(5)] == ["0", "1", "2", "3", "4"]
    assert len(taken) <= 5 + 4 * 3
    found.close()  # type: ignore[attr-defined]


def test_as_many_wait_at_a_time_as_there_are_threads() -> None:
    together = threading.Barrier(6)
    assert list(in_parallel(lambda n: together.wait(20) >= 0, range(12), 6)) == [True] * 12


def test_an_error_comes_when_its_turn_does_and_the_rest_is_dropped() -> None:
    done: list[int] = []

    def work(n: int) -> int:
        if n == 3:
            raise ValueError("no")
        done.append(n)
        return n

    found = in_parallel(work, range(100_000), 2)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="no"):
        next(found)
    assert len(done) < 50

"""Many waits at a time: one function over many values, in a few threads, in order and within bounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def in_parallel(work: Callable[[A], B], values: Iterable[A], threads: int) -> Iterator[B]:
    """The results in the order of the values; of these no more than four per thread are taken in advance.

    The first error is raised when its turn comes; what has not begun by then is dropped.
    """
    rest = iter(values)
    first = list(_some(rest, 2))
    if len(first) < 2:
        yield from map(work, first)
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    waiting: deque[Future[B]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="treadle-store") as pool:
        try:
            for value in _chained(first, rest):
                waiting.append(pool.submit(work, value))
                if len(waiting) >= 4 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()


def _some(values: Iterator[A], count: int) -> Iterator[A]:
    for _, value in zip(range(count), values):
        yield value


def _chained(first: list[A], rest: Iterator[A]) -> Iterator[A]:
    yield from first
    yield from rest

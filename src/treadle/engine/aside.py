"""Work that would hold the loop up (reading large files) is done aside, by a few threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")

_THREADS = 4
_Work = tuple[Callable[[], T], Callable[[T | BaseException], None]]


class Aside(Generic[T]):
    """Runs functions on threads and hands their results back on the loop's own thread.

    The threads begin with the first work; `ring` is called from them whenever there is a result.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._todo: SimpleQueue[_Work[T] | None] = SimpleQueue()
        self._done: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._waiting = 0

    def __len__(self) -> int:
        """Pieces of work whose result was not handed back yet."""
        return self._waiting

    def begin(self, work: Callable[[], T], then: Callable[[T | BaseException], None]) -> None:
        """Do `work` aside; `then` gets its result, or what it raised, in `hand_back`."""
        self._waiting += 1
        if self._threads < min(_THREADS, self._waiting):
            self._threads += 1
            threading.Thread(target=self._serve, name="treadle-aside", daemon=True).start()
        self._todo.put((work, then))

    def hand_back(self) -> None:
        """Call `then` for all work that is done."""
        while self._done:
            self._waiting -= 1
            self._done.popleft()()

    def close(self) -> None:
        """Let the threads end; what they still do is dropped."""
        for _ in range(self._threads):
            self._todo.put(None)

    def _serve(self) -> None:
        while (item := self._todo.get()) is not None:
            work, then = item
            result: T | BaseException
            try:
                result = work()
            except BaseException as error:
                result = error
            self._done.append(lambda then=then, result=result: then(result))  # type: ignore[misc]
            self._ring()

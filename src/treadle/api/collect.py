"""While a pipeline file is loaded, `StepRunner.run` only collects: looking at a pipeline never runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.steps.spec import StepSpec


class Collector:
    """What `StepRunner.run` was asked for while a file was loaded: `wanted`, call by call.

    A list is taken as it is at that moment; any other iterable is kept, and pulled by nobody here.
    """

    def __init__(self) -> None:
        self.wanted: list[Iterable[StepSpec]] = []

    def take(self, steps: Iterable[StepSpec]) -> None:
        """Note the steps of one call."""
        self.wanted.append(tuple(steps) if isinstance(steps, list | tuple) else steps)


# One for the process, not for a context: a file may call the runner from a thread that it starts.
_collector: Collector | None = None


def collecting() -> Collector | None:
    """Who collects what `StepRunner.run` is asked for; None: nobody does, so it runs."""
    return _collector


@contextmanager
def collect() -> Iterator[Collector]:
    """Let `StepRunner.run` collect instead of run, in all threads of this process, while the block lasts."""
    global _collector
    before, _collector = _collector, Collector()
    try:
        yield _collector
    finally:
        _collector = before

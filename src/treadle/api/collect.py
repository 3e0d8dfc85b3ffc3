"""While a pipeline file is loaded, `StepRunner.run` only collects: looking at a pipeline never runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from treadle.steps.loading import is_loading

if TYPE_CHECKING:
    from treadle.steps.spec import StepSpec


_NO_GROUPS: Mapping[str, int] = {}


class Collector:
    """What `StepRunner.run` was asked for while a file was loaded: `wanted`, call by call.

    A list is taken as it is at that moment; any other iterable is kept, and pulled by nobody here.
    `groups` are the counted resources of all the runners.
    """

    def __init__(self) -> None:
        self.wanted: list[Iterable[StepSpec]] = []
        self.groups: dict[str, int] = {}

    def take(self, steps: Iterable[StepSpec], groups: Mapping[str, int] = _NO_GROUPS) -> None:
        """Note the steps of one call, and the groups of its runner."""
        self.groups.update(groups)
        self.wanted.append(tuple(steps) if isinstance(steps, list | tuple) else steps)


# One for the process, not for a context: a file may call the runner from a thread that it starts.
_collector: Collector | None = None


def collecting() -> Collector | None:
    """Who collects what `StepRunner.run` is asked for; None: nobody does, so it runs.

    A worker that imports a module for its function collects, too: a script without a `__main__` guard would
    run all of its steps there once more.
    """
    return _collector or (Collector() if is_loading() else None)


@contextmanager
def collect() -> Iterator[Collector]:
    """Let `StepRunner.run` collect instead of run, in all threads of this process, while the block lasts."""
    global _collector
    before, _collector = _collector, Collector()
    try:
        yield _collector
    finally:
        _collector = before

"""Whether this process is only loading a step's function: nothing that a module does then may start a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_loading = False


def is_loading() -> bool:
    """A worker is unpickling its function just now, which may import the module that has it."""
    return _loading


@contextmanager
def loading() -> Iterator[None]:
    """Say so while the block lasts, in all threads of this process."""
    global _loading
    before, _loading = _loading, True
    try:
        yield
    finally:
        _loading = before

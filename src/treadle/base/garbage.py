"""Where the garbage collector rests: it would walk over all that is made, and find nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


class Rest:
    """A block that makes many objects which stay, and no rings; then all is as it was before. What takes long
    in it, and is to be collected unless that was off before, stands in a block of `ended`."""

    def __init__(self) -> None:
        self._active = gc.isenabled()

    def __enter__(self) -> Rest:
        gc.disable()
        return self

    def __exit__(self, *error: object) -> None:
        if self._active:
            gc.enable()

    @contextmanager
    def ended(self) -> Iterator[None]:
        if gc.isenabled() or not self._active:
            yield
            return
        gc.freeze()  # else the first thing it did were to walk over all that was made
        gc.enable()
        try:
            yield
        finally:
            gc.disable()
            gc.unfreeze()

"""What of a producer's outputs a task reads: by name, in a folder that it reads, or as part of a folder."""

from __future__ import annotations

from collections.abc import Collection

from treadle.plan.paths import PathIndex


class Reading:
    """The paths that a task reads, as a set of outputs that it hangs on (`output in reading`)."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._index: PathIndex | None = None

    def __contains__(self, output: str) -> bool:
        if output in self._paths:
            return True
        if self._index is None:
            self._index = PathIndex(self._paths)
        return self._index.has_below(output) or next(self._index.above(output), None) is not None

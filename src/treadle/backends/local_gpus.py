"""The GPUs of this machine that may be handed out, and which are free."""

from __future__ import annotations

from collections.abc import Sequence

GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"


class GpuPool:
    """Hands out ids, lowest first in the order in which they were given to it."""

    def __init__(self, ids: Sequence[str]) -> None:
        self._all = tuple(ids)
        self._free = list(ids)

    def __len__(self) -> int:
        """How many there are, free or not."""
        return len(self._all)

    @property
    def free(self) -> int:
        return len(self._free)

    def take(self, count: int) -> tuple[str, ...]:
        """The first `count` free ones, which must be there."""
        if not count:
            return ()
        taken = tuple(self._free[:count])
        del self._free[:count]
        return taken

    def give_back(self, ids: Sequence[str]) -> None:
        if ids:
            free = {*self._free, *ids}
            self._free = [one for one in self._all if one in free]

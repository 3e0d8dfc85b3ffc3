"""The nodes of a fake cluster, and what their memory is looked at for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from treadle.testing.schedulers import processes
from treadle.testing.schedulers.site import Site
from treadle.testing.schedulers.timers import Timers
from treadle.testing.schedulers.work import Element, Wish

_SAMPLE = 0.05  # seconds between looks at the memory of jobs


class Nodes:
    """CPUs that are free on each node, and the nodes that are down, with the reason."""

    def __init__(self, site: Site) -> None:
        self.free = dict.fromkeys(site.names, site.slots)
        self.down: dict[str, str] = {}

    def place(self, wish: Wish) -> str:
        """The first node that has room for a job (empty: none)."""
        for node, free in self.free.items():
            if free >= wish.cpus and node not in self.down and node not in wish.exclude:
                return node
        return ""

    def take(self, node: str, cpus: int) -> None:
        self.free[node] -= cpus

    def give(self, node: str, cpus: int) -> None:
        if node in self.free:  # other people's jobs run elsewhere
            self.free[node] += cpus


class MemoryWatch:
    """Looks at what the jobs hold that asked for some memory, as long as there are any."""

    def __init__(self, real: Timers, running: Mapping[int, Element], end: Callable[[Element], None]) -> None:
        self._real = real
        self._running = running
        self._end = end
        self._set = False

    def look_soon(self) -> None:
        if not self._set:
            self._set = True
            self._real.after(_SAMPLE, self._look)

    def _look(self) -> None:
        self._set = False
        for pid, element in list(self._running.items()):
            bound = element.job.wish.memory
            if bound:
                element.peak = max(element.peak, processes.resident(pid))
                if element.peak > bound:
                    self._end(element)
                self.look_soon()

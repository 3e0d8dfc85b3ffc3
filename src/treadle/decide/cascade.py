"""The cascade: from the tasks that must run to all that may have to run with them.

Two things spread. Downstream: who reads what is made again, or is ordered after a task that runs.
Upstream: who must run needs its inputs, so the makers of outputs that were removed on purpose wake.

Each spreads in two strengths. *Must*: along `depends_on` (there is no content to compare), to the makers
that a task that must run needs, and with cut-off turned off along every edge. *May*: everything else; such
a task runs only if its inputs turn out to be others than its own evidence has. So the readers of a woken
maker may be cut off, and a maker that is only needed by tasks that may be cut off may be spared, too.
Every task enters each strength once, so the cost is linear in tasks and edges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set

from treadle.decide.reading import Reading
from treadle.decide.reason import OutputNeeded, Upstream
from treadle.plan.graph import dependents
from treadle.plan.paths import record_of
from treadle.plan.task import ScheduledPlan, ScheduledTask

_MOST = 3  # what an upstream task can weigh as a cause


class Cascade:
    """What runs: `must` for certain, `may` unless it is cut off. `live` are the tasks that can run, in plan
    order; `evicted` are outputs removed on purpose, by the task that makes them; `made` ran already, in the
    run in the middle of which this is asked."""

    def __init__(
        self,
        plan: ScheduledPlan,
        live: Collection[str],
        evicted: Mapping[str, tuple[str, ...]],
        cutoff: bool,
        made: Set[str] = frozenset(),
    ) -> None:
        self._made = {task for task in live if task in made} if made else set()
        self._tasks = plan.tasks
        self._live = live
        self._evicted = evicted
        self._cutoff = cutoff
        self._dependents: Mapping[str, Sequence[ScheduledTask]] = {}
        self._following: dict[str, Reading] = {}
        self.must: set[str] = set()
        self.may: set[str] = set()

    def spread(self, first: Collection[str], perhaps: Collection[str] = ()) -> None:
        """Follow the cascade from the tasks that run for reasons of their own, and from those that may run
        for what is not in the plan."""
        self.must.update(first)
        if len(self.must) == len(self._live):  # a first run: there is nobody left to reach
            return
        live = map(self._tasks.__getitem__, self._live)
        # What a step without inputs was built on is in its identity.
        self._dependents = dependents(one for one in live if one.call is None or one.inputs)
        pending = [*first, *self._made]
        while pending:
            task = pending.pop()
            woken = self._woken(task) if task in self.must else ()
            for other in (*self._dragged(task), *woken):
                if other not in self.must and other not in self._made:
                    self.must.add(other)
                    pending.append(other)
        self.may.update(perhaps)
        pending = [*self.must, *perhaps]
        while pending:
            task = pending.pop()
            for other in (*self._touched(task), *self._woken(task)):
                if other not in self.must and other not in self.may:
                    self.may.add(other)
                    pending.append(other)

    def needed(self) -> dict[str, OutputNeeded]:
        """By maker whose evicted output is needed: the first task that needs it, one that must run first."""
        found: dict[str, OutputNeeded] = {}
        if self._evicted:
            for strength in (self.must, self.may):
                for task in self._live:
                    if task in strength:
                        for maker, path in self._missed(self._tasks[task]):
                            found.setdefault(maker, OutputNeeded(path=path, by=task))
        return found

    def cause(self, task: ScheduledTask, roots: Mapping[str, str]) -> Upstream | None:
        """The upstream task that `task` runs for, one that settles it if there is one; `roots` are those of
        the tasks before it."""
        best, rank = "", 0
        for need in task.needs:
            if need in self.must:
                weight = 3 if need in task.ordered else 2 * self._follows(task, need)
            elif need in self.may:
                weight = int(need in task.ordered or self._follows(task, need))
            elif need in self._made and (need in task.ordered or not self._cutoff):
                weight = 3 if need in task.ordered else 2 * self._follows(task, need)
            else:
                continue
            if weight > rank:
                best, rank = need, weight
                if rank == _MOST:
                    break
        return Upstream(task=best, root=roots.get(best, best)) if best else None

    def _dragged(self, task: str) -> Iterator[str]:
        for other in self._after(task):
            if task in other.ordered or (
                (not self._cutoff or self._is_remote(task)) and self._follows(other, task)
            ):
                yield other.id

    def _touched(self, task: str) -> Iterator[str]:
        for other in self._after(task):
            if task in other.ordered or self._follows(other, task):
                yield other.id

    def _after(self, task: str) -> Sequence[ScheduledTask]:
        """Who may have to run with it. What an environment is made of is in the identity of those in it."""
        return self._dependents.get(task, ()) if self._tasks[task].making is None else ()

    def _woken(self, task: str) -> Iterator[str]:
        for maker, _ in self._missed(self._tasks[task]) if self._evicted else ():
            yield maker

    def _missed(self, task: ScheduledTask) -> Iterator[tuple[str, str]]:
        """The makers of what it reads and was evicted, each with the first such path."""
        reading: Reading | None = None
        for need in task.needs:
            if need in self._evicted:
                reading = reading or Reading(task.inputs)
                path = next((path for path in self._evicted[need] if path in reading), None)
                if path is not None:
                    yield need, path

    def _follows(self, task: ScheduledTask, need: str) -> bool:
        """Whether a run of `need` may change what `task` reads: not through `ancient` inputs alone, nor
        through a dep of a step whose artifact is no input of it, nor a need by birth."""
        if task.born and need in task.born:
            return False
        if not task.ancient and task.call is None:
            return True
        reading = self._following.get(task.id)
        if reading is None:
            reading = Reading([path for path in task.inputs if path not in task.ancient])
            self._following[task.id] = reading
        maker = self._tasks[need]
        made = maker.outputs if maker.call is None else (maker.call.path, record_of(maker.call.path))
        return any(path in reading for path in made)

    def _is_remote(self, task: str) -> bool:
        """Its artifact stands behind a URL, where contents are not compared."""
        call = self._tasks[task].call
        return call is not None and "://" in call.path

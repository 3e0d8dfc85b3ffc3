"""What may be in use at a time, what a request takes of it, and what can never be had."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.place import Diagnostic
from treadle.plan.task import Resources, ScheduledTask

NO_LIMIT = 1 << 62

# Amounts in a fixed order: threads, bytes of memory, GPUs, then the named pools.
Demand = tuple[int, ...]


class Budget(Struct, frozen=True, kw_only=True):
    """How much of each resource the run may use at a time; None: not counted here.

    `threads` (`-j`), `memory` in bytes, `gpus` of this machine; `pools` are the named groups.
    """

    threads: int | None = None
    memory: int | None = None
    gpus: int | None = None
    pools: tuple[tuple[str, int], ...] = ()

    def whole(self) -> Demand:
        """Everything there is."""
        machine = (self.threads, self.memory, self.gpus)
        return (*(NO_LIMIT if size is None else size for size in machine), *(size for _, size in self.pools))

    def cap(self, wanted: Resources) -> Resources:
        """The request, cut to what there is; the same object when it fits."""
        threads, memory = wanted.threads, wanted.memory
        if self.threads is not None and threads > self.threads:
            wanted = replace(wanted, threads=self.threads)
        if self.memory is not None and memory is not None and memory > self.memory:
            wanted = replace(wanted, memory=self.memory)
        return wanted

    def demand(self, capped: Resources) -> Demand:
        """What a capped request takes. An amount of a pool is capped as well, so it always fits."""
        machine = (capped.threads, capped.memory or 0, capped.gpus)
        if not self.pools:
            return machine
        asked = dict(capped.groups)
        return (*machine, *(min(asked.get(name, 0), size) for name, size in self.pools))


class Capped(Struct, frozen=True):
    """So many tasks ask for more of a resource than there is; `largest` is the greatest request."""

    resource: str
    budget: int
    largest: int
    tasks: int
    first: str


def capped(budget: Budget, tasks: Iterable[ScheduledTask]) -> list[Capped]:
    """Requests that will be cut: one entry for threads and one for memory, where any is."""
    threads = NO_LIMIT if budget.threads is None else budget.threads
    memory = NO_LIMIT if budget.memory is None else budget.memory
    much_cpu: list[ScheduledTask] = []
    much_memory: list[ScheduledTask] = []
    for task in tasks:
        wanted = task.resources
        if wanted.threads > threads:
            much_cpu.append(task)
        if wanted.memory is not None and wanted.memory > memory:
            much_memory.append(task)
    found = []
    if much_cpu:
        largest = max(task.resources.threads for task in much_cpu)
        found.append(Capped("threads", threads, largest, len(much_cpu), much_cpu[0].id))
    if much_memory:
        largest = max(task.resources.memory or 0 for task in much_memory)
        found.append(Capped("memory", memory, largest, len(much_memory), much_memory[0].id))
    return found


def impossible(budget: Budget, tasks: Iterable[ScheduledTask]) -> list[Diagnostic]:
    """What can never be had here and is not cut but refused: GPUs, and more than one node. One finding for
    each rule; a budget that counts no GPUs is a scheduler's."""
    if budget.gpus is None:
        return []
    found: dict[str, Diagnostic] = {}
    for task in tasks:
        if (task.resources.nodes or 1) > 1 and task.rule not in found:
            found[task.rule] = Diagnostic(
                "nodes-not-there",
                f"rule '{task.rule}' asks for {task.resources.nodes} nodes, and this machine is one",
                task.place,
                "lower `nodes`: it takes a scheduler to give more",
            )
        if task.resources.gpus > budget.gpus and task.rule not in found:
            there = f"{budget.gpus} here" if budget.gpus else "none here"
            found[task.rule] = Diagnostic(
                "gpus-not-there",
                f"rule '{task.rule}' asks for {task.resources.gpus} GPU(s), and there are {there}",
                task.place,
                "run it on a machine that has them, or lower `gpu`; TREADLE_GPUS=0,1 says which there are",
            )
    return list(found.values())

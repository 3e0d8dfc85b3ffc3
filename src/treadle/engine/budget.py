"""What may be in use at a time, what a request takes of it, and what can never be had."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.place import Diagnostic
from treadle.plan.task import Ceilings, Resources, ScheduledTask, Where

NO_LIMIT = 1 << 62

# Amounts in a fixed order: threads, bytes of memory, GPUs, then the named pools; where slots are counted
# they come next: of steps here, of jobs of the client; where there are ceilings, threads, memory and attempts
# of all that is under way, here and elsewhere, come last.
Demand = tuple[int, ...]


class Budget(Struct, frozen=True, kw_only=True):
    """How much of each resource the run may use at a time; None: not counted here.

    `threads` (`-j`), `memory` in bytes, `gpus` of this machine; `pools` are the named groups; `slots` is how
    many steps run here at a time, `remote` how many jobs of the client are in flight. `ahead` are steps in
    threads that may be launched beyond `slots`, to wait in the line of a backend that runs no more than those
    at a time. `local_rules` are the rules whose tasks run on this machine (None: all); those of others take
    nothing of it. `ceilings` bound what is under way in all places together.
    """

    threads: int | None = None
    memory: int | None = None
    gpus: int | None = None
    pools: tuple[tuple[str, int], ...] = ()
    slots: int | None = None
    remote: int | None = None
    local_rules: frozenset[str] | None = None
    ahead: int = 0
    ceilings: Ceilings | None = None

    def is_elsewhere(self, task: ScheduledTask) -> bool:
        """Whether a task runs on another backend, which counts for itself what it asks for."""
        if task.call is not None:
            return task.call.where is Where.CLIENT
        return self.local_rules is not None and task.rule not in self.local_rules

    @property
    def has_slots(self) -> bool:
        return self.slots is not None or self.remote is not None

    def whole(self) -> Demand:
        """Everything there is."""
        machine = (self.threads, self.memory, self.gpus)
        found = (*machine, *(size for _, size in self.pools))
        if self.has_slots:
            slots = None if self.slots is None else max(self.slots, 1) + self.ahead
            found = (*found, slots, None if self.remote is None else max(self.remote, 1))
        if self.ceilings is not None:
            found = (*found, self.ceilings.threads, self.ceilings.memory, self.ceilings.jobs)
        return tuple([NO_LIMIT if size is None else size for size in found])

    def line(self) -> Demand:
        """The part of it that is for steps which wait in the backend's line."""
        return self._with_pools((0, 0, 0), Resources(), self.ahead, 0, jobs=0)

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
        if not self.pools and self.slots is None and self.remote is None and self.ceilings is None:
            return machine
        return self._with_pools(machine, capped, 0, 0)

    def weigh(self, task: ScheduledTask, wanted: Resources) -> tuple[Resources, Demand]:
        """What a task gets that wants so much, and what that takes.

        What starts nothing takes nothing. Of steps a thread of the driver takes a slot and no CPU; a worker
        process a slot and what it asks for; a job of the client one of its slots and nothing of this machine.
        """
        call = task.call
        if call is None:
            if task.starts_nothing:
                return wanted, self._with_pools((0, 0, 0), Resources(), 0, 0, jobs=0)
            if self.is_elsewhere(task):
                return wanted, self._with_pools((0, 0, 0), wanted, 0, 0)
            wanted = self.cap(wanted)
            return wanted, self.demand(wanted)
        match call.where:
            case Where.THREAD:
                return wanted, self._with_pools((0, 0, 0), wanted, 1, 0, idle=True)
            case Where.PROCESS:
                wanted = self.cap(wanted)
                machine = (wanted.threads, wanted.memory or 0, wanted.gpus)
                return wanted, self._with_pools(machine, wanted, 1, 0)
            case Where.CLIENT:
                return wanted, self._with_pools((0, 0, 0), wanted, 0, 1)

    def _with_pools(
        self,
        machine: Demand,
        wanted: Resources,
        slots: int,
        remote: int,
        *,
        jobs: int = 1,
        idle: bool = False,
    ) -> Demand:
        if self.pools:
            asked = dict(wanted.groups)
            machine = (*machine, *(min(asked.get(name, 0), size) for name, size in self.pools))
        if self.has_slots:
            machine = (*machine, slots, remote)
        return (
            machine if self.ceilings is None else (*machine, *self._below(self.ceilings, wanted, jobs, idle))
        )

    def _below(self, ceilings: Ceilings, wanted: Resources, jobs: int, idle: bool) -> Demand:
        """What of the ceilings is taken; one that grew beyond them takes all. `idle`: it takes no CPU."""
        if idle or not jobs:
            return 0, 0, jobs
        threads = min(wanted.threads, ceilings.threads or NO_LIMIT)
        return threads, min(wanted.memory or 0, ceilings.memory or NO_LIMIT), jobs


class Capped(Struct, frozen=True):
    """So many tasks ask for more of a resource than there is; `largest` is the greatest request."""

    resource: str
    budget: int
    largest: int
    tasks: int
    first: str


def capped(budget: Budget, tasks: Iterable[ScheduledTask]) -> list[Capped]:
    """Requests that will be cut: one entry for threads and one for memory, where any is.

    Threads of the driver and jobs of the client take nothing of this machine.
    """
    threads = NO_LIMIT if budget.threads is None else budget.threads
    memory = NO_LIMIT if budget.memory is None else budget.memory
    much_cpu: list[ScheduledTask] = []
    much_memory: list[ScheduledTask] = []
    for task in tasks:
        wanted = task.resources
        no_process = task.call is not None and task.call.where is not Where.PROCESS
        if no_process or task.starts_nothing or budget.is_elsewhere(task):
            continue
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
    each rule or step; a budget that counts no GPUs is a scheduler's, and jobs of the client are elsewhere."""
    if budget.gpus is None:
        return []
    found: dict[str, Diagnostic] = {}
    for task in tasks:
        if budget.is_elsewhere(task) or task.starts_nothing:
            continue
        if (task.resources.nodes or 1) > 1 and task.rule not in found:
            found[task.rule] = Diagnostic(
                "nodes-not-there",
                f"{_who(task)} asks for {task.resources.nodes} nodes, and this machine is one",
                task.place,
                "lower `nodes`: it takes a scheduler to give more",
            )
        if task.resources.gpus > budget.gpus and task.rule not in found:
            there = f"{budget.gpus} here" if budget.gpus else "none here"
            found[task.rule] = Diagnostic(
                "gpus-not-there",
                f"{_who(task)} asks for {task.resources.gpus} GPU(s), and there are {there}",
                task.place,
                "run it on a machine that has them, or lower `gpu`; TREADLE_GPUS=0,1 says which there are",
            )
    return list(found.values())


def _who(task: ScheduledTask) -> str:
    return f"rule '{task.rule}'" if task.call is None else f"step '{task.call.step}'"

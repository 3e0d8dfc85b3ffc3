"""The scheduler itself, whatever its words: what waits, what runs, what has ended, and what is remembered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from treadle.testing.schedulers import mishaps, processes
from treadle.testing.schedulers.mischief import Rule, Rules
from treadle.testing.schedulers.nodes import MemoryWatch, Nodes
from treadle.testing.schedulers.site import Kind, Site
from treadle.testing.schedulers.timers import Clock, Timers
from treadle.testing.schedulers.work import Element, End, Job, Run, Stage, Wish


class Launcher(Protocol):
    """How one scheduler starts a job, and what it does at its end."""

    def start(self, element: Element) -> int:
        """The process id. Raises `StartError`."""
        ...

    def note(self, element: Element, how: End) -> None:
        """Write into the job's own output that it is ended from outside."""
        ...

    def ended(self, element: Element) -> End | None:
        """Bring its output to its place; what its exit means here, where that is not the usual."""
        ...

    def simulated(self, element: Element) -> None: ...


class Cluster:
    """All jobs and nodes. Everything happens in one thread."""

    def __init__(self, site: Site, clock: Clock, timers: Timers, real: Timers) -> None:
        self.site = site
        self.clock = clock
        self.timers = timers
        self.real = real
        self.rules = Rules()
        self.launcher: Launcher
        self.jobs: dict[int, Job] = {}
        self.queue: dict[Element, None] = {}  # what the queue knows, in the order of submission
        self.nodes = Nodes(site)
        self.down = False
        self.unfinished = 0
        self.next_number = 1
        self._ready: dict[Job, deque[Element]] = {}
        self._by_pid: dict[int, Element] = {}
        self._dependent: dict[Job, None] = {}
        self._memory = MemoryWatch(real, self._by_pid, partial(self.stop, how=End.OOM))

    # Submission

    def number(self) -> int:
        taken, self.next_number = self.next_number, self.next_number + 1
        return taken

    def full(self, more: int) -> bool:
        """Whether this user may not have so many more jobs."""
        return bool(self.site.max_submitted) and self.unfinished + more > self.site.max_submitted

    def add(self, wish: Wish, user: str = "") -> Job:
        """Take a job; it starts when it can, once the answer is out."""
        now = self.clock.now()
        job = Job(self.number(), wish, user or self.site.user, now)
        self.jobs[job.number] = job
        self.unfinished += len(job.elements)
        for element in job:
            self.queue[element] = None
            if self.site.start_delay:
                element.not_before = max(element.not_before, now + self.site.start_delay)
            mishaps.taken(self, element)
        if wish.after:
            self._dependent[job] = None
        self.timers.at(now, partial(self._open, job))
        return job

    def lose(self, element: Element) -> None:
        """It was never here."""
        element.stage, element.end = Stage.ENDED, End.VANISHED
        self.unfinished -= 1
        element.job.unfinished -= 1
        self.forget(element)
        element.traced = False

    def _open(self, job: Job) -> None:
        """Let those elements stand in line that may."""
        if job in self._dependent and not self._met(job):
            return
        for element in job:
            self.line_up(element)
        self.tick()

    def _met(self, job: Job) -> bool:
        """Whether all that a job waits for has come; notes when it never can."""
        for how, number in job.wish.after:
            before = self.jobs.get(number)
            if before is None:
                continue
            if before.unfinished and how != "after":
                return False
            good = all(one.end is End.COMPLETED for one in before)
            if (how == "afterok" and not good) or (how == "afternotok" and good):
                job.never = True
                return False
        del self._dependent[job]
        return True

    def line_up(self, element: Element) -> None:
        """An element stands in line, unless it is held or its time has not come."""
        if element.stage is not Stage.PENDING or element.held or element.job in self._dependent:
            return
        if element.not_before > self.clock.now():
            self.timers.at(element.not_before, partial(self._again, element))
            return
        if not self.hopeless(element.job.wish):
            self._ready.setdefault(element.job, deque()).append(element)

    def _again(self, element: Element) -> None:
        self.line_up(element)
        self.tick()

    def hopeless(self, wish: Wish) -> str:
        """Why a request can never be met here, in SLURM's words (empty: it can)."""
        if self.site.max_time and wish.limit > self.site.max_time:
            return "PartitionTimeLimit"
        if wish.cpus > self.site.slots:
            return "PartitionConfig"
        return ""

    def add_strangers(self, count: int) -> None:
        """Jobs of other people, some with odd names; they run and wait elsewhere, and never end."""
        for number in range(count):
            name = ("align", "two words", "a|b", "x<y>&z")[number % 4]
            wish = Wish(name=name, script=b"", cwd="/", workdir="/", env={}, partition=self.site.partition)
            job = Job(self.number(), wish, "alice", self.clock.now())
            self.jobs[job.number] = job
            for element in job:
                self.queue[element] = None
                if number % 2 == 0:
                    element.stage, element.started, element.node = Stage.RUNNING, job.submitted, "far"

    def waits_for_others(self, job: Job) -> bool:
        return job in self._dependent

    def is_next(self, job: Job) -> bool:
        """Whether a job is the first in line, so that nothing but its resources is missing."""
        return next(iter(self._ready), None) is job

    # Starting

    def tick(self) -> None:
        """Start what fits, first come first served; a job that is throttled lets others pass."""
        emptied = []
        for job, line in self._ready.items():
            stuck = False
            while line:
                if line[0].stage is not Stage.PENDING or line[0].held:
                    line.popleft()
                elif job.wish.throttle and job.running >= job.wish.throttle:
                    break
                elif node := self.nodes.place(job.wish):
                    self._start(line.popleft(), node)
                else:
                    stuck = True
                    break
            if not line:
                emptied.append(job)
            if stuck:
                break
        for job in emptied:
            if not self._ready[job]:
                del self._ready[job]

    def _start(self, element: Element, node: str) -> None:
        job = element.job
        self.nodes.take(node, job.wish.cpus)
        job.running += 1
        element.node, element.reason = node, ""
        element.started = self.clock.now()
        element.stage = Stage.RUNNING
        self._number(element)
        rule = mishaps.simulation(self, element)
        if rule:
            self.timers.after(
                rule.seconds, self.unless_over(element, partial(self._simulated, element, rule))
            )
        else:
            try:
                element.pid = self.launcher.start(element)
            except processes.StartError as error:
                element.error = str(error)
                self.timers.after(0.0, partial(self._finish, element, End.LAUNCH))
                return
            self._by_pid[element.pid] = element
            if self.site.enforce_memory and job.wish.memory:
                self._memory.look_soon()
        if job.wish.limit:
            self.timers.after(
                job.wish.limit, self.unless_over(element, partial(self.stop, element, End.TIMEOUT))
            )
            number, before = job.wish.signal
            if number and element.pid:
                warn = partial(processes.send_leader, element.pid, number)
                self.timers.after(job.wish.limit - before, self.unless_over(element, warn))
        mishaps.started(self, element)

    def _number(self, element: Element) -> None:
        """SLURM gives each element a number of its own as it starts; the last one keeps the array's."""
        job = element.job
        if element.restarts:
            return
        job.waiting -= 1
        if job.waiting and self.site.kind is Kind.SLURM:
            element.number = self.number()

    def unless_over(self, element: Element, call: Callable[[], None]) -> Callable[[], None]:
        """A call that is dropped when this run of the element is over by then."""
        run = element.restarts

        def guarded() -> None:
            if element.live and element.restarts == run and element.stage is not Stage.PENDING:
                call()

        return guarded

    def _simulated(self, element: Element, rule: Rule) -> None:
        element.code = rule.code or 0
        if element.code == 0:
            self.launcher.simulated(element)
        self._finish(element, End.FAILED if element.code else End.COMPLETED)

    # Ends

    def stop(self, element: Element, how: End) -> None:
        """End an element from outside, for this reason."""
        if not element.live or element.stage is Stage.ENDING:
            return
        element.ending = how
        if element.stage is Stage.PENDING or not element.pid:
            self._finish(element, how)
            return
        stopped = element.stage is Stage.SUSPENDED
        element.stage = Stage.ENDING
        if how is not End.SIGNALLED:
            self.launcher.note(element, how)
        if how in _AT_ONCE or self.site.kind is Kind.SGE:  # qdel and h_rt are SIGKILL there
            processes.send(element.pid, processes.KILL)
            return
        processes.send(element.pid, processes.TERM)
        if stopped:
            processes.send(element.pid, processes.CONTINUE)
        self.real.after(
            self.site.kill_wait,
            self.unless_over(element, partial(processes.send, element.pid, processes.KILL)),
        )

    def exited(self, pid: int, status: int, cpu: float) -> None:
        """The process of an element has ended: what is left of it goes, too."""
        element = self._by_pid.pop(pid, None)
        if element is None:
            return
        processes.end_group(pid)
        element.pid = 0
        element.cpu = cpu
        element.code, element.signal = (0, -status) if status < 0 else (status, 0)
        own = End.SIGNALLED if status < 0 else End.FAILED if status else End.COMPLETED
        self._finish(element, self.launcher.ended(element) or element.ending or own)

    def _finish(self, element: Element, how: End) -> None:
        if not element.live:
            return
        if element.node and element.stage is not Stage.PENDING:
            self.nodes.give(element.node, element.job.wish.cpus)
            element.job.running -= 1
        again = how is End.REQUEUED or (how in _MAY_RUN_AGAIN and element.job.wish.requeue)
        if how is End.LAUNCH and self.site.kind is Kind.SGE:  # Eqw: it waits until somebody clears it
            element.held = again = True
        element.ending = None
        element.shown = ""
        if again and element.started:
            self._requeue(element, how)
        else:
            self._settle(element, how)
        self.timers.after(0.0, self.tick)

    def _requeue(self, element: Element, how: End) -> None:
        now = self.clock.now()
        element.runs.append(self._run(element, how, now))
        element.restarts += 1
        element.stage, element.submitted, element.started = Stage.PENDING, now, 0.0
        element.node, element.code, element.signal, element.cpu, element.peak = "", 0, 0, 0.0, 0
        element.not_before = now + self.site.requeue_delay
        self.line_up(element)

    def _run(self, element: Element, how: End, now: float) -> Run:
        return Run(
            how,
            element.node,
            element.submitted,
            element.started,
            now,
            element.code,
            element.signal,
            element.cpu,
            element.peak,
        )

    def _settle(self, element: Element, how: End) -> None:
        now = self.clock.now()
        element.stage, element.end, element.ended = Stage.ENDED, how, now
        element.recorded = now + self.site.lag
        self.unfinished -= 1
        element.job.unfinished -= 1
        if not element.started and not element.restarts:
            element.job.waiting -= 1
        keep = mishaps.ended(self, element)
        if keep <= 0:
            self.forget(element)
        else:
            self.timers.after(keep, partial(self.forget, element))
        for job in list(self._dependent):
            self._open(job)

    def forget(self, element: Element) -> None:
        """The queue knows it no longer."""
        element.known = False
        self.queue.pop(element, None)

    # What people do by hand

    def cancel(self, elements: Iterable[Element], by: str = "") -> None:
        for element in list(elements):
            if element.live and element.job.user == self.site.user:
                element.deleter = by or self.site.user
                self.stop(element, End.CANCELLED)

    def hold(self, element: Element) -> None:
        if element.stage is Stage.PENDING:
            element.held = True

    def release(self, element: Element) -> None:
        if element.held:
            element.held, element.reason, element.error = False, "", ""
            self.line_up(element)
            self.timers.after(0.0, self.tick)

    def suspend(self, element: Element) -> None:
        if element.stage is Stage.RUNNING:
            element.stage = Stage.SUSPENDED
            if element.pid:
                processes.send(element.pid, processes.STOP)

    def resume(self, element: Element) -> None:
        if element.stage is Stage.SUSPENDED:
            element.stage = Stage.RUNNING
            if element.pid:
                processes.send(element.pid, processes.CONTINUE)

    def fail_node(self, node: str, why: str, *, mend: bool = False) -> None:
        """A node is gone, with all that ran there; `mend`: it comes back by itself in a moment."""
        self.nodes.down[node] = why
        for element in [one for one in self.queue if one.node == node and one.live]:
            self.stop(element, End.NODE_FAIL)
        if mend:
            self.timers.after(0.0, partial(self.mend_node, node))

    def mend_node(self, node: str) -> None:
        self.nodes.down.pop(node, None)
        self.tick()

    def kill_all(self) -> None:
        """End every process that is left, at once."""
        for pid in list(self._by_pid):
            processes.send(pid, processes.KILL)
        processes.sweep(self.site.folder)


_MAY_RUN_AGAIN = frozenset({End.NODE_FAIL, End.PREEMPTED})
_AT_ONCE = frozenset({End.SIGNALLED, End.OOM, End.NODE_FAIL, End.VANISHED})

"""How tasks, and the run itself, come to their end: the half of the machine that starts nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from treadle.engine.brakes import Brakes, Mode, Settings, Stop
from treadle.engine.budget import Budget
from treadle.engine.gates import Gates
from treadle.engine.news import (
    BackendFailed,
    Cancel,
    DiskFine,
    DiskFull,
    Ended,
    Finish,
    Interrupt,
    Interrupted,
    Leave,
    News,
    Order,
    Wait,
    WatchDisk,
)
from treadle.engine.node import Fewer, Node, Old, State, lost_inputs
from treadle.engine.passing import Passing
from treadle.engine.ready import ReadyQueue
from treadle.engine.story import MachineError, Story
from treadle.engine.tell import Teller
from treadle.engine.units import Fits
from treadle.plan.task import ScheduledTask
from treadle.records.event import End, EndReason, Evidence, Outcome, TaskSettled

_HELD = (State.SUBMITTED, State.RUNNING)
_WELL = (End.SUCCEEDED, End.UNCHANGED)
_CANCELLED = Outcome(reason=EndReason.CANCELLED)


class Ending(ABC):
    """The tasks of one run by where they stand, and the ways that lead out of it."""

    def __init__(
        self, settings: Settings, budget: Budget, fewer: Fewer | None, fits: Fits | None = None
    ) -> None:
        self.settings = settings
        self._fewer = fewer
        self._fits = fits
        self.budget = budget
        self.counts: dict[End, int] = dict.fromkeys(End, 0)
        self.failures: dict[str, TaskSettled] = {}
        self.blocked: dict[str, str] = {}
        self._tell = Teller()
        self._story = Story()
        self._nodes: dict[str, Node] = {}
        self._gone: dict[str, End] = {}  # how nodes ended that were dropped
        self._ranked: dict[int, Node] = {}
        self._ranks = 0  # nodes that were ranked so far
        self._queue = ReadyQueue(budget)
        self._gates = Gates()
        self._passing = Passing(settings.keep_temporary)
        self._brakes = Brakes(settings)
        self._disk_full = False
        self._more = False  # batches may come
        self._grows = False  # checkpoint tasks that have not ended may bring a larger plan
        self._round = 0  # of the plan as a whole: what was asked before it grew no longer counts
        self._attempts = 0
        self._open = 0  # nodes that have not ended
        self._held: dict[str, Node] = {}  # submitted or running
        self._between: dict[str, Node] = {}  # failed, and to be tried again
        self._delayed: set[str] = set()  # those of them whose pause is not over
        self._examined: set[str] = set()  # asked whether they may be cut off
        self._dormant: dict[str, Node] = {}  # done but for outputs that were removed on purpose
        self._cancelled: set[str] = set()  # we asked for their end
        self._deferred: dict[str, Node] = {}  # someone else is at it
        self._freed: dict[str, Node] = {}  # deferred once, ready to go on
        self._dropped: set[str] = set()  # deferred when the run was stopped: news of them may be under way
        self._old: dict[str, Old] = {}  # jobs of earlier runs that are to end before their task runs
        self._doubted: set[str] = set()  # succeeded, and it may be taken back
        self._early: dict[str, Outcome] = {}  # taken back before its files were read
        self._again: set[str] = set()  # it was
        self._ahead_ends: dict[str, Ended] = {}  # they ended well, before what they need has
        self._due: list[str] = []  # those of them that count now
        self._told_divided: set[tuple[str, bool]] = set()
        self._leaving = False  # jobs that outlive us go on
        self._lingering = False  # at the end, for those that are doubted
        self.left = 0  # jobs that go on without us, now that the run is over
        self._told: set[str] = set()  # holders of leases, and resources that were capped
        self._commands: list[Order] = []

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self._brakes.mode is Mode.OVER

    @property
    def stopping(self) -> bool:
        """Whether nothing new starts any more."""
        return self._brakes.mode is not Mode.GOING

    @property
    def exit_code(self) -> int:
        """What the run ends with, as far as is known."""
        return self._brakes.exit_code

    @property
    def round(self) -> int:
        """How often a plan as a whole has entered."""
        return self._round

    @property
    def checkpoints_left(self) -> int:
        """How many checkpoint tasks have not ended and wait for nobody."""
        return sum(
            1
            for node in self._nodes.values()
            if node.task.finds and type(node.state) is State and not node.missing
        )

    def standing(self) -> tuple[frozenset[str], frozenset[str]]:
        """The tasks that ran in this run and succeeded, and those that have not ended."""
        nodes = self._nodes.values()
        made = frozenset(node.task.id for node in nodes if node.state is End.SUCCEEDED)
        return made, frozenset(node.task.id for node in nodes if type(node.state) is State)

    def state(self, task: str) -> State | End:
        """Where a task stands that was not up to date or skipped when it came."""
        node = self._nodes.get(task)
        return self._gone[task] if node is None else node.state

    def attempt(self, task: str) -> int:
        """How often a task was tried so far (of one that was dropped it is not known)."""
        return self._nodes[task].attempt

    def held(self) -> list[str]:
        """Tasks that are submitted or running."""
        return list(self._held)

    def _end_of(self, task: str) -> End | None:
        """How a task of this run ended, if it has."""
        node = self._nodes.get(task)
        state = self._gone.get(task) if node is None else node.state
        return state if type(state) is End else None

    @abstractmethod
    def _upstream_done(self, node: Node) -> None:
        """All that a node needs has ended well."""

    @abstractmethod
    def _dissolve(self, node: Node) -> None:
        """What was to be one job with a task goes by itself."""

    # Ends

    def _settle(
        self, node: Node, end: End, outcome: Outcome | None = None, evidence: Evidence | None = None
    ) -> None:
        task = node.task
        node.state = end
        self.counts[end] += 1
        self._open -= 1
        event = self._tell.settled(task, end, node.attempt, node.n, outcome, evidence, "", node.run)
        if self.settings.forget:
            self._forget(node)
        if end in _WELL:
            if self._passing.counts and task.id not in self._again:
                self._commands += self._passing.ended(task.id, end)
            self._release_dependents(node)
        elif end is End.FAILED:
            self.failures[task.id] = event
            going_on = self._block(node, task.id)
            if task.policy.required:
                self._stop(self._brakes.required_failure(borne=bool(going_on)))
            self._go_on(going_on)
        self._pass(node)

    def _pass(self, node: Node) -> None:
        """A task has ended: those of the rules after it in an execution group may start."""
        for waiting in self._gates.ended(node):
            if waiting.state is State.READY and self._gates.admit(waiting):
                self._queue.push(waiting.rank, waiting.demand)

    def _forget(self, node: Node) -> None:
        """Of a task that has ended its end is all that batches to come ask for."""
        task = node.task.id
        self._gone[task] = self._nodes.pop(task).state  # type: ignore[assignment]
        del self._ranked[node.rank]
        self._dormant.pop(task, None)
        self._cancelled.discard(task)

    def _release_dependents(self, node: Node) -> None:
        for dependent in node.dependents:
            dependent.missing -= 1
            if dependent.missing != dependent.inner:
                continue
            if dependent.state is State.WAITING and not self._asleep(dependent):
                self._upstream_done(dependent)
            elif dependent.task.id in self._ahead_ends:
                self._due.append(dependent.task.id)

    def _asleep(self, node: Node) -> bool:
        """Judged, or being judged, while a need was dormant: that need's return changes nothing."""
        return node.task.id in self._dormant or node.task.id in self._examined

    def _block(self, failed: Node, cause: str) -> list[Node]:
        """Tasks that need one which failed can never start, nor can those that need them; but gathers that
        may lack some of what they gather: these are given back."""
        bearing = []
        reached = [failed]
        while reached:
            need = reached.pop()
            for dependent in need.dependents:
                if type(dependent.state) is End or (self._again and self._has_begun(dependent)):
                    continue
                if dependent.task.id in self._held:  # it shares a job with what failed: its end will tell
                    continue
                if self._bears(dependent, need):
                    bearing.append(dependent)
                else:
                    self._fall(dependent, cause)
                    reached.append(dependent)
        return [node for node in bearing if type(node.state) is State]

    def _fall(self, node: Node, cause: str) -> None:
        """It can never start: `cause` is the task that failed."""
        task = node.task
        node.state = End.BLOCKED
        self._dissolve(node)
        self._between.pop(task.id, None)
        self._delayed.discard(task.id)
        self.counts[End.BLOCKED] += 1
        self._open -= 1
        self.blocked[task.id] = cause
        self._dormant.pop(task.id, None)
        self._examined.discard(task.id)
        self._tell.settled(task, End.BLOCKED, cause=cause)
        self._pass(node)
        if self.settings.forget:
            self._forget(node)

    def _bears(self, node: Node, need: Node) -> bool:
        """Whether a task can do without what this need of it would have made."""
        task = node.task
        if not (task.policy.allow_missing or task.policy.allow_missing_part):
            return False
        others = task.ordered | task.born
        if (making := _making(task)) is not None:
            others |= {making}
        upstream = len(task.needs) - len(others)
        if need.task.id in others or need.state is End.CANCELLED:
            return False
        if not node.lost:
            node.lost = {}  # what nodes begin with is shared
        node.lost[need.task.id] = need.task.outputs
        if len(node.lost) > min(task.policy.bearable(upstream), upstream - 1):
            return False
        node.partial = None
        node.missing -= 1
        return node.missing > 0 or self._can_do_without(node)

    def _can_do_without(self, node: Node) -> bool:
        """Whether the task can be had without what it lost; all that it needs has ended."""
        if node.partial is None and self._fewer is not None:
            node.partial = self._fewer(node.task, lost_inputs(node))
        return node.partial is not None

    def _go_on(self, nodes: Sequence[Node]) -> None:
        """Gathers whose last need failed, and that can bear it."""
        for node in nodes:
            if node.can_go and node.state is State.WAITING and not self._asleep(node):
                self._upstream_done(node)

    def _has_begun(self, node: Node) -> bool:
        """It was tried in this run, on what was a success then."""
        return node.attempt > 0 and node.task.id not in self._old

    # Stopping

    def _stop(self, stop: Stop | None) -> None:
        """Start nothing new; what has not begun in the backend's own queue does not begin either, and what
        someone else is at is not waited for."""
        if stop is None:
            return
        if stop.mode is Mode.OVER:
            self._finish()
            return
        self._brakes.mode = max(self._brakes.mode, stop.mode)
        self._drop((*self._deferred.values(), *self._freed.values()))
        ending = stop.mode is Mode.ENDING
        nodes = [node for node in self._held.values() if ending or node.state is State.SUBMITTED]
        self._cancel(nodes, stop.force, waiting=not ending)
        if stop.force and any(node.stays for node in nodes):
            self._commands.append(Leave())

    def _drop(self, nodes: Sequence[Node]) -> None:
        """Deferred attempts end here; the backend need not watch for them any longer."""
        watched = tuple([node.job for node in nodes if node.state is State.WAITING and node.job])
        if watched:
            self._commands.append(Cancel(watched, force=True))
        for node in nodes:
            task = node.task.id
            self._dropped.add(task)
            self._deferred.pop(task, None)
            self._freed.pop(task, None)
            self._settle(node, End.CANCELLED, _CANCELLED)

    def _cancel(self, nodes: Sequence[Node], force: bool = False, *, waiting: bool = False) -> None:
        """Cancel attempts; those that the backend has not taken yet are cancelled once it has.

        `waiting`: only those that have not begun, where the backend knows better than we do.
        """
        self._cancelled.update(node.task.id for node in nodes if node.job)
        jobs = tuple(node.job for node in nodes if node.job)
        if jobs:
            self._commands.append(Cancel(jobs, force, waiting))

    def _on_interrupted(self, news: Interrupted) -> None:
        stop = self._brakes.interrupted(news)
        self._leaving = news.how is Interrupt.DETACH
        if self._held and not self._leaving and not self._brakes.hurried:
            self._tell.noticed("interrupted", how=news.how.value, tasks=str(len(self._held)))
        if self._leaving:
            self._leave()
        else:
            self._stop(stop)

    def _leave(self) -> None:
        """Start nothing new, end what cannot go on without us, and let the rest be."""
        self._brakes.mode = max(self._brakes.mode, Mode.DRAINING)
        self._drop((*self._deferred.values(), *self._freed.values()))
        self._cancel([node for node in self._held.values() if not node.stays])

    def _on_disk_full(self, news: DiskFull) -> None:
        if news.gave_up:
            self._tell.noticed("disk_full")
            self._stop(self._brakes.disk_given_up())
        elif not self._disk_full:
            self._disk_full = True
            self._tell.noticed("disk_waiting")
            self._commands.append(WatchDisk())

    def _on_disk_fine(self, news: DiskFine) -> None:
        self._disk_full = False
        self._tell.noticed("disk_fine")

    def _on_backend_failed(self, news: BackendFailed) -> None:
        code = "backend_left" if self._brakes.hurried else "backend_failed"
        self._tell.noticed(code, message=news.message)
        self._stop(self._brakes.backend_failed())

    def _close(self) -> None:
        """Finish when nothing is left to do. That nothing runs and nothing can start is a bug."""
        if self._brakes.mode is Mode.OVER or self._tell.plan is None:
            return
        if self._held or self._old:
            if self._leaving and all(node.stays for node in self._held.values()):
                self._finish()
            return
        if self._brakes.mode is Mode.GOING and (self._open or self._more):
            if self._delayed or self._examined or self._disk_full or self._deferred:
                return
            if self._queue:
                raise MachineError(self._stuck())
            if self._more:
                return
            if len(self._dormant) != self._open:
                raise MachineError(self._stuck())
            for node in list(self._dormant.values()):
                self._settle(node, End.UNCHANGED)
        if self._doubted and self.settings.linger and self._brakes.mode is Mode.GOING:
            if not self._lingering:
                self._lingering = True
                self._commands.append(Wait("", self.settings.linger))
            return
        self._finish()

    def _finish(self) -> None:
        self._brakes.mode = Mode.OVER
        self._drop((*self._deferred.values(), *self._freed.values()))
        for node in self._between.values():
            self._settle(node, End.FAILED, node.outcome)
        for task, news in () if self._leaving else list(self._ahead_ends.items()):
            self._settle(self._nodes[task], End.CANCELLED, news.outcome)
        for node in self._nodes.values():
            if type(node.state) is State and node.state not in _HELD:
                node.state = End.CANCELLED
                self.counts[End.CANCELLED] += 1
        self.left = sum(node.stays for node in self._held.values()) + len(self._old)
        self._tell.over(self.exit_code, self.counts, self.left)
        self._commands.append(Finish(self.exit_code))

    def _attempt(self, task: str, n: int, news: News) -> Node:
        """The node of an attempt that is held."""
        node = self._held.get(task)
        if node is None or node.n != n:
            raise self._story.impossible(task, self._nodes.get(task), news)
        return node

    def _stuck(self) -> str:
        waiting = [node.task.id for node in self._nodes.values() if type(node.state) is State]
        return (
            f"nothing runs and nothing can start, but {len(waiting)} task(s) have not ended: "
            f"{', '.join(waiting[:5])}; {len(self._queue)} ready, free: {self._queue.free}"
        )


def _making(task: ScheduledTask) -> str | None:
    """The task that makes the environment of this one."""
    environment = task.policy.environment
    return None if environment is None or environment.making is None else environment.making.task

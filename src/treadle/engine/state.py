"""The state machine: news in, events and commands out. No clock, no disk, no threads.

    waiting -> ready -> submitted -> running -> succeeded | failed | cancelled
       ^                                  |
       '----------- another attempt ------'
    waiting -> unchanged (cut off) | blocked (something upstream failed) | cancelled

Up-to-date and skipped tasks have ended before the run begins: nothing is kept or written of them.
Every task costs a constant amount plus its edges; nothing here recurses over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from msgspec import Struct

from treadle.decide.reason import Decision, Verdict
from treadle.decide.tombstones import Temporaries
from treadle.engine.budget import Budget, capped
from treadle.engine.growth import check_kept, merged
from treadle.engine.news import (
    BackendFailed,
    Cancel,
    DiskFine,
    DiskFull,
    Elapsed,
    Ended,
    Examine,
    Examined,
    Finish,
    Grew,
    InFlight,
    Interrupt,
    Interrupted,
    Launch,
    News,
    Opened,
    Order,
    Refused,
    RemoveTemporary,
    Running,
    Started,
    Turn,
    Wait,
    WatchDisk,
)
from treadle.engine.node import Node, State, link, rank
from treadle.engine.ready import ReadyQueue
from treadle.engine.retry import next_try
from treadle.engine.story import MachineError, Story
from treadle.engine.tell import Teller
from treadle.plan.task import ScheduledPlan
from treadle.records.event import End, EndReason, Evidence, Outcome, TaskSettled

_HELD = (State.SUBMITTED, State.RUNNING)
_WELL = (End.SUCCEEDED, End.UNCHANGED)
_BAD = (End.FAILED, End.BLOCKED, End.CANCELLED)
_OURS = (EndReason.CANCELLED, EndReason.INTERRUPTED)


class Settings(Struct, frozen=True, kw_only=True):
    """How failures are met, and what is left out.

    `max_failures`: after so many required failures nothing new starts (0: no such limit; without
    `keep_going` the first is enough).
    """

    keep_going: bool = False
    fail_fast: bool = False
    max_failures: int = 0
    cutoff: bool = True
    keep_temporary: bool = False

    @property
    def bearable(self) -> int:
        """The number of required failures after which nothing new starts."""
        return self.max_failures or (1 << 62 if self.keep_going and not self.fail_fast else 1)


class _Mode(IntEnum):
    GOING = 0
    DRAINING = 1  # nothing new starts; what runs comes to its end
    ENDING = 2  # and what runs is being cancelled
    OVER = 3


class Machine:
    """One run. `handle` is the only door; everything else only reads."""

    def __init__(self, settings: Settings, budget: Budget) -> None:
        self.settings = settings
        self.budget = budget
        self.counts: dict[End, int] = dict.fromkeys(End, 0)
        self.failures: dict[str, TaskSettled] = {}
        self.blocked: dict[str, str] = {}
        self.exit_code = 0
        self._tell = Teller()
        self._story = Story()
        self._nodes: dict[str, Node] = {}
        self._ranked: list[Node] = []
        self._queue = ReadyQueue(budget)
        self._temporaries: Temporaries | None = None
        self._mode = _Mode.GOING
        self._disk_full = False
        self._backend_failed = False
        self._required_failures = 0
        self._round = 0
        self._attempts = 0
        self._open = 0  # nodes that have not ended
        self._held: dict[str, Node] = {}  # submitted or running
        self._between: dict[str, Node] = {}  # failed, and to be tried again
        self._delayed: set[str] = set()  # those of them whose pause is not over
        self._examined: set[str] = set()  # asked whether they may be cut off
        self._dormant: dict[str, Node] = {}  # done but for outputs that were removed on purpose
        self._cancelled: set[str] = set()  # we asked for their end
        self._commands: list[Order] = []
        self._doors: dict[type[News], Callable[[Any], None]] = {
            Opened: self._on_opened,
            Grew: self._on_grew,
            Started: self._on_started,
            Running: self._on_running,
            Ended: self._on_ended,
            Refused: self._on_refused,
            Examined: self._on_examined,
            Elapsed: self._on_elapsed,
            Interrupted: self._on_interrupted,
            DiskFull: self._on_disk_full,
            DiskFine: self._on_disk_fine,
            BackendFailed: self._on_backend_failed,
        }

    def handle(self, batch: Sequence[News], now: float) -> Turn:
        """Take in what happened until `now` (seconds since the epoch). Once the run is over nothing counts.

        Raises MachineError for news that contradict what is known, PlanError for a grown plan that
        would change a task which has started.
        """
        events = self._tell.turn(now)
        self._commands = []
        if self._mode is _Mode.OVER:
            return Turn(events, [])
        for news in batch:
            self._story.add(now, news)
            self._doors[type(news)](news)
        if self._mode is _Mode.GOING and not self._disk_full:
            self._start()
        self._close()
        return Turn(events, self._commands)

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self._mode is _Mode.OVER

    def state(self, task: str) -> State | End:
        """Where a task stands that was not up to date or skipped when the run began."""
        return self._nodes[task].state

    def attempt(self, task: str) -> int:
        """How often a task was tried so far."""
        return self._nodes[task].attempt

    def held(self) -> list[str]:
        """Tasks that are submitted or running."""
        return list(self._held)

    # The plan enters

    def _on_opened(self, news: Opened) -> None:
        fresh = [
            Node(news.plan.tasks[task], answer)
            for task, answer in news.decision.answers.items()
            if answer.verdict is Verdict.WILL_RUN or answer.verdict is Verdict.IN_FLIGHT
        ]
        self._nodes = {node.task.id: node for node in fresh}
        self._open = len(fresh)
        link(self._nodes, fresh)
        self._entered(news.plan, news.decision, news.digest)
        self._attempts = max((job.n for job in news.adopted.values()), default=0)
        for task, job in news.adopted.items():
            self._adopt(self._nodes[task], job)
        for node in fresh:
            if not node.missing and node.state is State.WAITING:
                self._upstream_done(node)

    def _on_grew(self, news: Grew) -> None:
        assert self._tell.plan is not None
        check_kept(self._tell.plan, self._nodes, news.plan)
        self._nodes = merged(self._nodes, news.plan, news.decision)
        nodes = list(self._nodes.values())
        self._open = sum(type(node.state) is State for node in nodes)
        link(self._nodes, nodes)
        self._examined.clear()
        self._dormant.clear()
        self._queue.clear()
        self._entered(news.plan, news.decision, news.digest)
        for node in nodes:
            if type(node.state) is End:
                if node.state in _BAD:
                    self._block_dependents(node, self.blocked.get(node.task.id, node.task.id))
            elif node.state is State.READY:
                self._ready(node)
            elif not node.attempt and not node.missing and node.state is State.WAITING:
                self._upstream_done(node)

    def _entered(self, plan: ScheduledPlan, decision: Decision, digest: str) -> None:
        self._tell.plan = plan
        self._ranked = rank(self._nodes)
        self._round += 1
        counts = self._tell.entered(self._round, digest, decision)
        self.counts[End.UP_TO_DATE] = counts[Verdict.UP_TO_DATE]
        self.counts[End.SKIPPED] = counts[Verdict.SKIPPED]
        for cut in capped(self.budget, (node.task for node in self._ranked)):
            self._tell.noticed(
                "capped", cut.first, **{cut.resource: str(cut.budget), "tasks": str(cut.tasks)}
            )
        self._count_temporaries(plan, decision)

    def _count_temporaries(self, plan: ScheduledPlan, decision: Decision) -> None:
        self._temporaries = None
        if self.settings.keep_temporary or not any(task.temporary for task in plan.tasks.values()):
            return
        self._temporaries = Temporaries(plan)
        for task, answer in decision.answers.items():
            node = self._nodes.get(task)
            if node is not None and type(node.state) is End:
                self._remove_unneeded(task, node.state)
            elif node is None and answer.verdict is Verdict.UP_TO_DATE:
                self._remove_unneeded(task, End.UP_TO_DATE)

    def _remove_unneeded(self, task: str, end: End) -> None:
        """Temporary outputs that nobody needs now that `task` has come to this end."""
        if self._temporaries is not None:
            free = self._temporaries.ended(task, end)
            self._commands.extend(RemoveTemporary(maker, path) for maker, path in free)

    def _adopt(self, node: Node, job: InFlight) -> None:
        node.attempt, node.n, node.job = job.attempt, job.n, job.job
        node.demand = self.budget.demand(self.budget.cap(node.resources))
        node.state = State.SUBMITTED
        self._queue.occupy(node.demand)
        self._held[node.task.id] = node

    # Upstream has ended

    def _upstream_done(self, node: Node) -> None:
        """All needs have ended well: run it, or ask first whether it may be cut off."""
        if node.must or not self.settings.cutoff or self._ordered_after_a_run(node):
            self._begin(node)
        elif self._mode is _Mode.GOING:
            self._examined.add(node.task.id)
            self._commands.append(Examine(node.task, self._round))

    def _ordered_after_a_run(self, node: Node) -> bool:
        """`depends_on` a task that ran: there is no content that could be compared."""
        return any(
            need in self._nodes and self._nodes[need].state is End.SUCCEEDED for need in node.task.ordered
        )

    def _on_examined(self, news: Examined) -> None:
        if news.task not in self._examined or news.round != self._round:
            return
        self._examined.remove(news.task)
        node = self._nodes[news.task]
        if news.reasons:
            self._begin(node)
        elif node.buried:
            self._dormant[news.task] = node
            self._release_dependents(node)
        else:
            self._settle(node, End.UNCHANGED, evidence=news.evidence)

    def _begin(self, node: Node) -> None:
        """It is settled that the node runs: it is ready, but for needs that must be made again first.

        Those are dormant: they count as done until someone wants what was removed of theirs.
        """
        awake = [node]
        while awake:
            one = awake.pop()
            one.must = True
            if self._dormant:
                for need in one.task.needs:
                    sleeper = self._dormant.pop(need, None)
                    if sleeper is not None:
                        awake.append(sleeper)
                        for dependent in sleeper.dependents:
                            dependent.missing += 1
            if not one.missing:
                self._ready(one)

    def _ready(self, node: Node) -> None:
        node.state = State.READY
        node.resources = self.budget.cap(node.resources)
        node.demand = self.budget.demand(node.resources)
        self._queue.push(node.rank, node.demand)

    # Attempts

    def _start(self) -> None:
        for at in self._queue.take():
            node = self._ranked[at]
            self._attempts += 1
            node.attempt += 1
            node.n = self._attempts
            node.state = State.SUBMITTED
            self._held[node.task.id] = node
            if self._between:
                self._between.pop(node.task.id, None)
            self._commands.append(Launch(node.task, node.attempt, node.n, node.resources))

    def _on_started(self, news: Started) -> None:
        node = self._attempt(news.task, news.n, news)
        node.job = news.job
        if news.running:
            node.state = State.RUNNING
        self._tell.started(news.task, news.n, news.job, news.started)
        if self._mode is _Mode.ENDING or (self._mode is _Mode.DRAINING and not news.running):
            self._cancel([node])

    def _on_running(self, news: Running) -> None:
        self._attempt(news.task, news.n, news).state = State.RUNNING

    def _on_ended(self, news: Ended) -> None:
        node = self._attempt(news.task, news.n, news)
        self._queue.give_back(node.demand)
        del self._held[news.task]
        if news.outcome.reason is EndReason.OK:
            self._settle(node, End.SUCCEEDED, news.outcome, news.evidence)
        else:
            self._attempt_failed(node, news.outcome)

    def _on_refused(self, news: Refused) -> None:
        outcome = Outcome(reason=EndReason.NEVER_STARTED, message=news.message)
        self._on_ended(Ended(news.task, news.n, outcome))

    def _attempt_failed(self, node: Node, outcome: Outcome) -> None:
        node.outcome, node.job = outcome, ""
        if outcome.reason is EndReason.DISK and self._mode is _Mode.GOING:
            self._on_disk_full(DiskFull())
        if node.task.id in self._cancelled:
            self._settle(node, End.CANCELLED if outcome.reason in _OURS else End.FAILED, outcome)
            return
        again = next_try(node.task.policy, node.tally, outcome.reason, node.resources)
        if again is None or self._mode is not _Mode.GOING:
            self._settle(node, End.FAILED, outcome)
            return
        node.tally, node.resources = again.tally, again.resources
        self._between[node.task.id] = node
        self._tell.tried(node, outcome, again.delay)
        if again.delay:
            node.state = State.WAITING
            self._delayed.add(node.task.id)
            self._commands.append(Wait(node.task.id, again.delay))
        else:
            self._ready(node)

    def _on_elapsed(self, news: Elapsed) -> None:
        if news.task in self._delayed:
            self._delayed.remove(news.task)
            self._ready(self._nodes[news.task])

    # Ends

    def _settle(
        self, node: Node, end: End, outcome: Outcome | None = None, evidence: Evidence | None = None
    ) -> None:
        task = node.task
        node.state = end
        self.counts[end] += 1
        self._open -= 1
        event = self._tell.settled(task.id, end, node.attempt, node.n, outcome, evidence)
        if end in _WELL:
            self._remove_unneeded(task.id, end)
            self._release_dependents(node)
        elif end is End.FAILED:
            self.failures[task.id] = event
            self._block_dependents(node, task.id)
            if task.policy.required:
                self._required_failure()

    def _release_dependents(self, node: Node) -> None:
        for dependent in node.dependents:
            dependent.missing -= 1
            if not dependent.missing and dependent.state is State.WAITING and not self._asleep(dependent):
                self._upstream_done(dependent)

    def _asleep(self, node: Node) -> bool:
        """Judged, or being judged, while a need was dormant: that need's return changes nothing."""
        return node.task.id in self._dormant or node.task.id in self._examined

    def _block_dependents(self, node: Node, cause: str) -> None:
        reached = [node]
        while reached:
            for dependent in reached.pop().dependents:
                if type(dependent.state) is End:
                    continue
                task = dependent.task.id
                dependent.state = End.BLOCKED
                self.counts[End.BLOCKED] += 1
                self._open -= 1
                self.blocked[task] = cause
                self._dormant.pop(task, None)
                self._examined.discard(task)
                self._tell.settled(task, End.BLOCKED, cause=cause)
                reached.append(dependent)

    # Stopping

    def _required_failure(self) -> None:
        self.exit_code = self.exit_code or 1
        self._required_failures += 1
        if self._required_failures < self.settings.bearable or self._mode is not _Mode.GOING:
            return
        if self.settings.fail_fast:
            self._end_all()
        else:
            self._drain()

    def _drain(self) -> None:
        """Start nothing; what has not begun in the backend's own queue does not begin either."""
        self._mode = max(self._mode, _Mode.DRAINING)
        self._cancel([node for node in self._held.values() if node.state is State.SUBMITTED])

    def _end_all(self, force: bool = False) -> None:
        self._mode = max(self._mode, _Mode.ENDING)
        self._cancel(list(self._held.values()), force)

    def _cancel(self, nodes: Sequence[Node], force: bool = False) -> None:
        """Cancel attempts; those that the backend has not taken yet are cancelled once it has."""
        self._cancelled.update(node.task.id for node in nodes if node.job)
        jobs = tuple(node.job for node in nodes if node.job)
        if jobs:
            self._commands.append(Cancel(jobs, force))

    def _on_interrupted(self, news: Interrupted) -> None:
        again = self.exit_code >= 128
        self.exit_code = news.exit_code
        match news.how:
            case Interrupt.DETACH:
                self._finish()
            case Interrupt.WAIT:
                self._drain()
            case Interrupt.CANCEL:
                self._end_all(force=again and self._mode is _Mode.ENDING)

    def _on_disk_full(self, news: DiskFull) -> None:
        if news.gave_up:
            self.exit_code = 3
            self._tell.noticed("disk_full")
            self._end_all()
        elif not self._disk_full:
            self._disk_full = True
            self._tell.noticed("disk_waiting")
            self._commands.append(WatchDisk())

    def _on_disk_fine(self, news: DiskFine) -> None:
        self._disk_full = False
        self._tell.noticed("disk_fine")

    def _on_backend_failed(self, news: BackendFailed) -> None:
        self.exit_code = 3
        self._tell.noticed("backend_failed", message=news.message)
        if self._backend_failed:
            self._finish()
        else:
            self._backend_failed = True
            self._end_all()

    def _close(self) -> None:
        """Finish when nothing is left to do. That nothing runs and nothing can start is a bug."""
        if self._held or self._mode is _Mode.OVER or self._tell.plan is None:
            return
        if self._mode is _Mode.GOING and self._open:
            if self._delayed or self._examined or self._disk_full:
                return
            if self._queue or len(self._dormant) != self._open:
                raise MachineError(self._stuck())
            for node in self._dormant.values():
                self._settle(node, End.UNCHANGED)
        self._finish()

    def _finish(self) -> None:
        self._mode = _Mode.OVER
        for node in self._between.values():
            self._settle(node, End.FAILED, node.outcome)
        for node in self._nodes.values():
            if type(node.state) is State and node.state not in _HELD:
                node.state = End.CANCELLED
                self.counts[End.CANCELLED] += 1
        self._tell.over(self.exit_code, self.counts)
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

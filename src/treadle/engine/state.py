"""The state machine: news in, events and commands out. No clock, no disk, no threads.

    waiting -> ready -> submitted -> running -> succeeded | failed | cancelled
       ^                                  |
       '----------- another attempt ------'
    waiting -> unchanged (cut off) | blocked (something upstream failed) | cancelled
    succeeded -> waiting, failed      (later news took the success back)
    submitted, running -> waiting    (a step whose artifact someone else makes) -> ready, the same attempt

Up-to-date and skipped tasks have ended before the run begins: nothing is kept or written of them.
Batches of steps may join while it goes on. Every task costs a constant amount plus its edges, whatever
joined before it; nothing here recurses over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from treadle.decide.reason import Decision, Verdict
from treadle.engine.attempts import Attempts
from treadle.engine.brakes import Mode, Settings
from treadle.engine.budget import Budget, capped, impossible
from treadle.engine.gates import Gates
from treadle.engine.growth import check_kept, merged
from treadle.engine.news import (
    Added,
    BackendFailed,
    Confirmed,
    Deferred,
    DiskFine,
    DiskFull,
    Elapsed,
    Ended,
    Examine,
    Examined,
    Freed,
    Grew,
    InFlight,
    Interrupted,
    News,
    Opened,
    Refused,
    Running,
    Sealed,
    Seen,
    Started,
    Turn,
    Vacated,
    Withdrawn,
)
from treadle.engine.node import Fewer, Node, Old, State, join, link, lost_inputs, rank
from treadle.engine.units import Fits
from treadle.plan.task import ScheduledPlan, Where
from treadle.records.event import End, EndReason, Outcome

__all__ = ["Machine", "Settings"]

_BAD = (End.FAILED, End.BLOCKED, End.CANCELLED)


class Machine(Attempts):
    """One run. `handle` is the only door; everything else only reads."""

    def __init__(
        self, settings: Settings, budget: Budget, fewer: Fewer | None = None, fits: Fits | None = None
    ) -> None:
        super().__init__(settings, budget, fewer, fits)
        self._ahead = budget.ahead > 0
        self._doors: dict[type[News], Callable[[Any], None]] = {
            Opened: self._on_opened,
            Added: self._on_added,
            Sealed: self._on_sealed,
            Grew: self._on_grew,
            Started: self._on_started,
            Running: self._on_running,
            Seen: self._on_seen,
            Ended: self._on_ended,
            Confirmed: self._on_confirmed,
            Withdrawn: self._on_withdrawn,
            Deferred: self._on_deferred,
            Freed: self._on_freed,
            Refused: self._on_refused,
            Vacated: self._on_vacated,
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
        if self._brakes.mode is Mode.OVER:
            return Turn(events, [])
        for news in batch:
            self._story.add(now, news)
            self._doors[type(news)](news)
            if self._due:
                self._end_due()
            if self.finished:  # nothing comes after the end
                return Turn(events, self._commands)
        if self._brakes.mode is Mode.GOING and not self._disk_full:
            self._start()
        self._close()
        return Turn(events, self._commands)

    # The plan enters

    def _on_opened(self, news: Opened) -> None:
        fresh = _running_in(news.plan, news.decision)
        self._nodes = {node.task.id: node for node in fresh}
        self._open = len(fresh)
        self._round = 1
        self._more = news.more
        self._keep_line(fresh)
        link(self._nodes, fresh)
        self._entered(news.plan, news.decision, news.digest)
        self._grows = _any_open(news.plan, news.decision)
        more = news.more or self._grows
        self._commands += self._passing.enter(news.plan, news.decision, self._end_of, more=more)
        self._attempts = max((job.n for job in news.adopted.values()), default=news.after)
        self._attempts = max(self._attempts, news.after)
        for task, job in news.adopted.items():
            self._adopt(self._nodes[task], job)
        self._make_units()
        for node in fresh:
            if node.can_go and node.state is State.WAITING:
                self._upstream_done(node)

    def _on_added(self, news: Added) -> None:
        fresh = _running_in(news.plan, news.decision)
        batch = {node.task.id: node for node in fresh}
        self._nodes.update(batch)
        self._open += len(fresh)
        self._keep_line(fresh)
        lost = join(self._nodes, fresh, self._gone, self._dormant)
        self._count_in(self._tell.entered(news.plan, news.digest, news.decision, joins=True), news.decision)
        self._ranked.update(rank(batch, self._ranks))
        self._ranks += len(fresh)
        self._tell_capped(fresh)
        self._passing.add(news.plan, news.decision)
        for node, need in lost:
            if type(node.state) is State:
                cause = self.blocked.get(need, need)
                self._fall(node, cause)
                self._block(node, cause)
        for node in fresh:
            if node.state is State.WAITING and not self._refused_here(node) and not node.missing:
                self._upstream_done(node)

    def _on_sealed(self, news: Sealed) -> None:
        self._more = False
        self._commands += self._passing.seal(self._end_of)

    def _refused_here(self, node: Node) -> bool:
        """A task of a batch that can never start on this machine fails, and nothing else."""
        wanted = node.task.resources
        if not wanted.gpus and (wanted.nodes or 1) == 1:
            return False
        refused = impossible(self.budget, (node.task,))
        if refused:
            message = refused[0].message
            self._settle(node, End.FAILED, Outcome(reason=EndReason.NEVER_STARTED, message=message))
        return bool(refused)

    def check(self, plan: ScheduledPlan) -> None:
        """Raise PlanError where `plan` would change what has begun."""
        assert self._tell.plan is not None
        check_kept(self._tell.plan, self._nodes, plan)

    def _on_grew(self, news: Grew) -> None:
        if any(self._is_lost(task) for task in news.found):
            return
        before = self._tell.plan
        assert before is not None
        self.check(news.plan)
        self._fewer = news.fewer or self._fewer
        self._nodes, fresh = merged(self._nodes, before, news.plan, news.decision)
        nodes = list(self._nodes.values())
        self._open = sum(type(node.state) is State for node in nodes)
        self._round += 1
        self._keep_line(nodes)
        link(self._nodes, nodes)
        for old in self._old.values():
            old.node.missing += 1
        self._examined.clear()
        self._dormant.clear()
        self._queue.clear()
        decision = _with_nodes(news.decision, self._nodes)
        self._entered(news.plan, decision, news.digest)
        self._grows = any(node.task.finds and type(node.state) is State for node in nodes)
        more = self._more or self._grows
        self._commands += self._passing.enter(news.plan, decision, self._end_of, more=more)
        for node in nodes:
            if type(node.state) is End and node.state in _BAD:
                self._block(node, self.blocked.get(node.task.id, node.task.id))
        self._make_units()
        for node in nodes:
            if node in fresh and type(node.state) is State and self._refused_here(node):
                continue
            if node.state is State.READY:
                self._ready(node)
            elif not node.attempt and node.can_go and node.state is State.WAITING:
                self._upstream_done(node)

    def _is_lost(self, task: str) -> bool:
        """A checkpoint task whose success was taken back before it was told."""
        node = self._nodes.get(task)
        return node is not None and node.attempt > 0 and node.state is not End.SUCCEEDED

    def _keep_line(self, fresh: Iterable[Node]) -> None:
        """From when steps come that run as processes, and take the same slots, nothing is launched ahead: the
        backend counts its threads alone."""
        if self._ahead and any(
            node.task.call is not None and node.task.call.where is Where.PROCESS for node in fresh
        ):
            self._ahead = False
            self._queue.occupy(self.budget.line())

    def _entered(self, plan: ScheduledPlan, decision: Decision, digest: str) -> None:
        """A plan is the whole of what there is to do."""
        self._ranked = rank(self._nodes)
        self._ranks = len(self._ranked)
        self._gates = Gates(plan.sequences, self._nodes.values())
        self._count_in(self._tell.entered(plan, digest, decision), decision)
        self._told.clear()
        self._tell_capped(self._ranked.values())

    def _count_in(self, counts: dict[Verdict, int], decision: Decision) -> None:
        self.counts[End.UP_TO_DATE] = counts[Verdict.UP_TO_DATE]
        self.counts[End.SKIPPED] = counts[Verdict.SKIPPED]
        if counts[Verdict.SKIPPED] and any(answer.failed_before for answer in decision.answers.values()):
            self._brakes.failed_before()

    def _tell_capped(self, nodes: Iterable[Node]) -> None:
        for cut in capped(self.budget, (node.task for node in nodes)):
            if cut.resource not in self._told:
                self._told.add(cut.resource)
                values = {cut.resource: str(cut.budget), "tasks": str(cut.tasks)}
                self._tell.noticed("capped", cut.first, **values)

    def _adopt(self, node: Node, job: InFlight) -> None:
        """Take over a job; or let its task wait until it has ended, as for one of its needs."""
        if job.intent is not None:
            self._tell.adopted(replace(job.intent, time=self._tell.now))
        if job.anew:
            node.attempt = job.attempt
            node.missing += 1
            self._old[node.task.id] = Old(node, job.attempt, job.n, job.run)
            return
        node.attempt, node.n, node.run, node.job = job.attempt, job.n, job.run, job.job
        node.stays = job.intent is not None
        if job.intent is not None and job.intent.grown is not None:
            node.resources = job.intent.grown
        node.resources, node.demand = self.budget.weigh(node.task, node.resources)
        node.state = State.SUBMITTED
        self._queue.occupy(node.demand)
        self._held[node.task.id] = node

    # Upstream has ended

    def _upstream_done(self, node: Node) -> None:
        """All needs have ended, well or so that it can bear it: run it, or ask first whether it may be cut
        off."""
        if node.lost and not self._can_do_without(node):
            cause = next(iter(node.lost))
            self._fall(node, self.blocked.get(cause, cause))
            self._go_on(self._block(node, self.blocked[node.task.id]))
        elif node.must or not self.settings.cutoff or self._ordered_after_a_run(node):
            self._begin(node)
        elif self._brakes.mode is Mode.GOING:
            self._examined.add(node.task.id)
            self._commands.append(Examine(node.task, self._round, lost_inputs(node)))

    def _ordered_after_a_run(self, node: Node) -> bool:
        """`depends_on` a task that ran: there is no content that could be compared."""
        return any(self._end_of(need) is End.SUCCEEDED for need in node.task.ordered)

    def _on_examined(self, news: Examined) -> None:
        if news.task not in self._examined or news.round != self._round:
            return
        self._examined.remove(news.task)
        node = self._nodes[news.task]
        if news.reasons:
            self._begin(node)
        elif node.buried:
            self._dormant[news.task] = node
            self._pass(node)  # first: who is released may wake it
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
                        self._gates.back(sleeper)
                        for dependent in sleeper.dependents:
                            dependent.missing += 1
            if one.can_go and one.task.id not in self._delayed:
                self._ready(one)


def _any_open(plan: ScheduledPlan, decision: Decision) -> bool:
    """Whether a checkpoint task runs, or may, so that more may be found."""
    verdicts = (Verdict.WILL_RUN, Verdict.IN_FLIGHT)
    return any(
        plan.tasks[task].finds and answer.verdict in verdicts for task, answer in decision.answers.items()
    )


def _with_nodes(decision: Decision, nodes: Mapping[str, Node]) -> Decision:
    """The decision as the run sees it: what it did or does itself is not up to date from before."""
    own = {task: node.answer for task, node in nodes.items() if task in decision.answers}
    return replace(decision, answers={**decision.answers, **own})


def _running_in(plan: ScheduledPlan, decision: Decision) -> list[Node]:
    """Nodes of the tasks that will run, or do so already; in plan order."""
    return [
        Node(plan.tasks[task], answer)
        for task, answer in decision.answers.items()
        if answer.verdict is Verdict.WILL_RUN or answer.verdict is Verdict.IN_FLIGHT
    ]

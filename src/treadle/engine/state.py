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
from treadle.engine.brakes import Mode, Settings
from treadle.engine.budget import Budget, capped, impossible
from treadle.engine.gates import Gates
from treadle.engine.growth import check_kept, merged
from treadle.engine.joint import Joint
from treadle.engine.news import (
    Added,
    BackendFailed,
    Cancel,
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
    Launch,
    News,
    Opened,
    Refused,
    Running,
    Sealed,
    Seen,
    Started,
    Turn,
    Vacated,
    Wait,
    Withdrawn,
)
from treadle.engine.node import Fewer, Node, Old, State, join, link, lost_inputs, rank
from treadle.engine.retry import Again, next_try
from treadle.engine.units import Fits, Unit
from treadle.plan.task import ScheduledPlan, Where
from treadle.records.event import End, EndReason, Outcome

__all__ = ["Machine", "Settings"]

_BAD = (End.FAILED, End.BLOCKED, End.CANCELLED)
_OURS = (EndReason.CANCELLED, EndReason.INTERRUPTED)


class Machine(Joint):
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

    def _ready(self, node: Node) -> None:
        if not node.can_go:  # it was begun in one job with what it needs, and that is tried again
            node.state = State.WAITING
            return
        node.state = State.READY
        node.resources, node.demand = self.budget.weigh(node.task, node.resources)
        if node.unit is not None:
            self._ready_in(node.unit)
        elif self._gates.admit(node):
            self._queue.push(node.rank, node.demand)

    # Attempts

    def _start(self) -> None:
        while self._launch():
            pass

    def _launch(self) -> bool:
        """Launch what is ready and fits; whether some of it was not, so that there is room for other."""
        put_back = False
        for at in self._queue.take():
            node = self._ranked[at]
            if not node.can_go:  # a need was taken back meanwhile
                self._put_back(node)
                put_back = True
                continue
            if node.unit is not None:
                self._launch_unit(node.unit, node)
                continue
            task = node.task
            again = bool(self._freed) and self._freed.pop(task.id, None) is not None
            if not again:
                self._attempts += 1
                node.attempt += 1
                node.n = self._attempts
            node.state = State.SUBMITTED
            self._held[task.id] = node
            if self._between:
                self._between.pop(task.id, None)
            if node.partial is None:
                launch = Launch(task, node.attempt, node.n, node.resources, again, node.exclude)
            else:
                lost = lost_inputs(node)
                launch = Launch(
                    node.partial, node.attempt, node.n, node.resources, again, node.exclude, task, lost
                )
            self._commands.append(launch)
        return put_back

    def _launch_unit(self, unit: Unit, leader: Node) -> None:
        """All of a unit, in its order; the amounts of its leader are taken already. It is no unit any more:
        whatever becomes of each is that one's alone."""
        first = self._attempts + 1
        for node in unit.members:
            task = node.task
            after = [self._nodes[need] for need in task.needs if node.inner and need in self._nodes]
            numbers = tuple(one.n for one in after if one.n >= first)
            self._attempts += 1
            node.attempt += 1
            node.n = self._attempts
            node.state = State.SUBMITTED
            node.unit, node.inner = None, 0
            self._held[task.id] = node
            if node is not leader:
                self._queue.occupy(node.demand)
            launch = Launch(
                task, node.attempt, node.n, node.resources, exclude=node.exclude, unit=first, after=numbers
            )
            self._commands.append(launch)

    def _put_back(self, node: Node) -> None:
        self._queue.give_back(node.demand)
        if node.state is State.READY:
            node.state = State.WAITING

    def _on_started(self, news: Started) -> None:
        if self._old and (old := self._old_of(news)) is not None:
            old.job = news.job
            self._tell.started(news.task, news.n, news.job, 0, True, old.run)
            self._commands.append(Cancel((news.job,)))
            return
        node = self._attempt(news.task, news.n, news)
        node.job = news.job
        node.stays = news.stays
        if news.running:
            node.state = State.RUNNING
        if news.running or not _waits_in_line(node):
            self._tell.started(news.task, news.n, news.job, news.started, not news.running, node.run)
        mode = self._brakes.mode
        if mode is Mode.GOING or (self._leaving and node.stays):
            return
        if mode is Mode.ENDING or not news.running or self._leaving:
            self._cancel([node], waiting=mode is Mode.DRAINING and not self._leaving)

    def _old_of(self, news: Started | Running | Seen | Ended) -> Old | None:
        """The job of an earlier run that the news are of, when it is one that we end."""
        old = self._old.get(news.task)
        return old if old is not None and old.n == news.n and news.task not in self._held else None

    def _on_running(self, news: Running) -> None:
        if self._old and self._old_of(news) is not None:
            return
        node = self._attempt(news.task, news.n, news)
        node.state = State.RUNNING
        if _waits_in_line(node):
            self._tell.started(news.task, news.n, node.job, 0)
        elif node.stays or news.job:
            self._tell.seen(node, "running", news.job)

    def _on_seen(self, news: Seen) -> None:
        if self._old and self._old_of(news) is not None:
            return
        node = self._attempt(news.task, news.n, news)
        if news.state == "pending":  # it may have run before: it was requeued
            node.state = State.SUBMITTED
        self._tell.seen(node, news.state, news.job, news.reason)

    def _on_old_ended(self, old: Old, outcome: Outcome) -> None:
        """The job of an earlier run is gone: its task may run."""
        node = old.node
        del self._old[node.task.id]
        self._tell.old_ended(node.task.id, old.attempt, old.n, old.run, outcome)
        node.missing -= 1
        if not node.missing and node.state is State.WAITING:
            self._upstream_done(node)

    def _on_ended(self, news: Ended) -> None:
        if self._old and (old := self._old_of(news)) is not None:
            self._on_old_ended(old, news.outcome)
            return
        node = self._held.pop(news.task, None)
        if node is not None and node.n == news.n:
            self._queue.give_back(node.demand)
        elif news.task in self._dropped:
            return
        else:
            node = self._deferred.pop(news.task, None)
            if node is None or node.n != news.n:
                raise self._story.impossible(news.task, self._nodes.get(news.task), news)
        if node.missing and self._ends_before_its_needs(node, news):
            return
        if news.outcome.reason is EndReason.OK:
            self._end_well(node, news)
        else:
            self._attempt_failed(node, news.outcome)

    def _end_well(self, node: Node, news: Ended) -> None:
        if news.doubted:
            taken_back = self._early.pop(news.task, None)
            if taken_back is not None:
                self._attempt_failed(node, taken_back)
                return
            self._doubted.add(news.task)
        self._settle(node, End.SUCCEEDED, news.outcome, news.evidence)

    def _on_confirmed(self, news: Confirmed) -> None:
        self._doubted.discard(news.task)
        node = self._nodes.get(news.task)
        if node is not None and node.n == news.n:
            self._tell.confirmed(node, news.outcome)

    def _on_withdrawn(self, news: Withdrawn) -> None:
        """A success was none. Nobody who builds on it may start; who has started is found by the next run,
        which makes it again and compares what comes of it."""
        self._doubted.discard(news.task)
        node = self._nodes.get(news.task)
        if news.task in self._held:
            self._early[news.task] = news.outcome
        if node is None or node.n != news.n or node.state is not End.SUCCEEDED:
            return
        node.job = ""
        above = [one for one in node.dependents if self._can_wait(one)]
        again = None
        if self._brakes.mode is Mode.GOING and len(above) == len(node.dependents):
            again = self._next_try(node, news.outcome)
        self._tell.withdrawn(node, news.outcome, again is not None)
        self.counts[End.SUCCEEDED] -= 1
        self._open += 1
        self._gates.back(node)
        self._again.add(news.task)
        for one in above:
            self._dissolve(one)
            one.missing += 1
        if again is None:
            self._settle(node, End.FAILED, news.outcome)
        else:
            node.outcome = news.outcome
            self._try_again(node, again)

    def _can_wait(self, node: Node) -> bool:
        """It has not begun in any way: whatever it needs can be made once more before it."""
        waits = not node.attempt and (node.state is State.WAITING or node.state is State.READY)
        return waits and not self._asleep(node)

    def _next_try(self, node: Node, outcome: Outcome) -> Again | None:
        """Whether a success that was taken back is tried again: not where what it read may be gone."""
        plan = self._tell.plan
        if plan is None or any(need in plan.tasks and plan.tasks[need].temporary for need in node.task.needs):
            return None
        return next_try(node.task.policy, node.tally, outcome.reason, node.resources)

    def _on_deferred(self, news: Deferred) -> None:
        node = self._attempt(news.task, news.n, news)
        self._queue.give_back(node.demand)
        del self._held[news.task]
        node.state = State.WAITING
        if self._brakes.mode is not Mode.GOING:
            self._drop((node,))
            return
        self._deferred[news.task] = node
        if news.holder not in self._told:
            self._told.add(news.holder)
            path = node.task.call.path if node.task.call is not None else ""
            self._tell.noticed("lease_held", news.task, holder=news.holder, path=path)

    def _on_freed(self, news: Freed) -> None:
        if news.task in self._dropped:
            return
        node = self._deferred.pop(news.task, None)
        if node is None or node.n != news.n:
            raise self._story.impossible(news.task, self._nodes.get(news.task), news)
        node.job = ""
        self._freed[news.task] = node
        self._ready(node)

    def _on_vacated(self, news: Vacated) -> None:
        node = self._attempt(news.task, news.n, news)
        self._queue.give_back(node.demand)
        node.demand = ()

    def _on_refused(self, news: Refused) -> None:
        outcome = Outcome(reason=EndReason.NEVER_STARTED, message=news.message)
        self._on_ended(Ended(news.task, news.n, outcome))

    def _attempt_failed(self, node: Node, outcome: Outcome) -> None:
        node.outcome, node.job, node.stays = outcome, "", False
        if self._ahead_ends:
            self._take_back_ahead(node)
        if outcome.reason is EndReason.NODE and outcome.host and outcome.host not in node.exclude:
            node.exclude = (*node.exclude, outcome.host)
        if outcome.reason is EndReason.DISK and self._brakes.mode is Mode.GOING:
            self._on_disk_full(DiskFull())
        if node.task.id in self._cancelled:
            self._settle(node, End.CANCELLED if outcome.reason in _OURS else End.FAILED, outcome)
            return
        again = next_try(node.task.policy, node.tally, outcome.reason, node.resources)
        if again is None or self._brakes.mode is not Mode.GOING:
            self._settle(node, End.FAILED, outcome)
            return
        self._tell.tried(node, outcome, again.delay)
        self._try_again(node, again)

    def _try_again(self, node: Node, again: Again) -> None:
        node.tally, node.resources, node.run = again.tally, again.resources, ""
        self._between[node.task.id] = node
        if again.delay:
            node.state = State.WAITING
            self._delayed.add(node.task.id)
            self._commands.append(Wait(node.task.id, again.delay))
        else:
            self._ready(node)

    def _on_elapsed(self, news: Elapsed) -> None:
        if not news.task:
            self._doubted.clear()  # it was waited for long enough
        elif news.task in self._delayed:
            self._delayed.remove(news.task)
            self._ready(self._nodes[news.task])


def _waits_in_line(node: Node) -> bool:
    """Whether it is a step in a thread: one that has not begun waits here, and nobody else holds it."""
    return node.task.call is not None and node.task.call.where is Where.THREAD


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

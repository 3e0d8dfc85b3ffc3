"""The attempts at tasks: launched when there is room, told of by the backend, and how they end."""

from __future__ import annotations

from treadle.engine.brakes import Mode
from treadle.engine.joint import Joint
from treadle.engine.news import (
    Cancel,
    Confirmed,
    Deferred,
    DiskFull,
    Elapsed,
    Ended,
    Freed,
    Launch,
    Refused,
    Running,
    Seen,
    Started,
    Vacated,
    Wait,
    Withdrawn,
)
from treadle.engine.node import Node, Old, State, lost_inputs
from treadle.engine.retry import Again, next_try
from treadle.engine.units import Unit
from treadle.plan.task import Where
from treadle.records.event import End, EndReason, Outcome

_OURS = (EndReason.CANCELLED, EndReason.INTERRUPTED)


class Attempts(Joint):
    """The part of the machine that starts what is ready, and hears of it."""

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

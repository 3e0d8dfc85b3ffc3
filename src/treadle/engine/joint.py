"""Several tasks in one job: how they are put together, and what an end means while what it needs has none.

launched together, in their order      each but the first before its needs have ended
ended well, its needs not yet          waits for them, and counts only then
its need is tried again, or failed     it never was: tried again after it, or blocked
"""

from __future__ import annotations

from abc import abstractmethod

from treadle.engine.ending import Ending
from treadle.engine.news import Ended
from treadle.engine.node import Node, State
from treadle.engine.units import Unit, can_join, units_of
from treadle.records.event import End, EndReason, Outcome

_LOST = (End.FAILED, End.BLOCKED)
_FOR_NOTHING = Outcome(
    reason=EndReason.INTERRUPTED, message="what it read was not made after all, or not in the end"
)


class Joint(Ending):
    """The half of the machine that knows of units."""

    # Together

    def _make_units(self) -> None:
        """Find them anew among what has not begun, where the backend takes any."""
        if self._fits is None or not any(node.task.policy.group for node in self._nodes.values()):
            return
        units, divided = units_of(self._nodes, self._may_join, self._fits)
        for unit in units:
            for node in unit.members:
                node.unit = unit
            for node in unit.members:
                needs = (self._nodes.get(need) for need in node.task.needs)
                node.inner = sum(one is not None and one.unit is unit for one in needs)
        for one in divided:
            if (one.group, one.long) not in self._told_divided:
                self._told_divided.add((one.group, one.long))
                why = "long" if one.long else "path"
                self._tell.noticed("group_divided", one.first, group=one.group, why=why)

    def _may_join(self, node: Node) -> bool:
        """It may share a job: it is sure to run, and nothing else decides when, or as what."""
        return (
            can_join(node, cutoff=self.settings.cutoff)
            and self.budget.is_elsewhere(node.task)
            and not self._gates.keeps(node.task.rule)
        )

    def _ready_in(self, unit: Unit) -> None:
        """One more of a unit waits for nothing from elsewhere."""
        unit.ready += 1
        if unit.complete:
            first = unit.members[0]
            self._queue.push(first.rank, first.demand)

    def _dissolve(self, node: Node) -> None:
        """Its unit cannot be had: each of it goes by itself."""
        unit = node.unit
        if unit is None:
            return
        first = unit.members[0] if unit.complete else None  # it stands in the queue already
        for one in unit.members:
            one.unit, one.inner = None, 0
        for one in unit.members:
            if one.state is State.READY and one.missing:
                one.state = State.WAITING
            elif one.state is State.READY and one is not first:
                self._queue.push(one.rank, one.demand)

    # Ends that come before those of what is needed

    def _ends_before_its_needs(self, node: Node, news: Ended) -> bool:
        """Whether all is said with that about one whose needs have not all ended well."""
        ok = news.outcome.reason is EndReason.OK
        if not ok and news.task in self._cancelled:
            return False
        ends = {self._end_of(need): need for need in node.task.needs}
        lost = next((ends[end] for end in _LOST if end in ends), None)
        if lost is not None:
            self._tell.tried(node, _FOR_NOTHING if ok else news.outcome, 0.0)
            cause = self.blocked.get(lost, lost)
            self._fall(node, cause)
            self._go_on(self._block(node, cause))
        elif ok and End.CANCELLED in ends:
            self._settle(node, End.CANCELLED, news.outcome)
        elif ok:
            self._ahead_ends[news.task] = news
        return ok or lost is not None

    def _end_due(self) -> None:
        """Those that ended before their needs, which have now ended well."""
        while self._due:
            task = self._due.pop()
            news = self._ahead_ends.pop(task, None)
            node = self._nodes.get(task)
            if news is not None and node is not None and type(node.state) is State:
                self._end_well(node, news)

    def _take_back_ahead(self, node: Node) -> None:
        """An attempt failed: what was built on it in the same job was built on nothing."""
        above = [node]
        while above:
            for one in above.pop().dependents:
                if self._ahead_ends.pop(one.task.id, None) is not None:
                    self._tell.tried(one, _FOR_NOTHING, 0.0)
                    one.state, one.job, one.run, one.stays = State.WAITING, "", "", False
                    above.append(one)

    @abstractmethod
    def _end_well(self, node: Node, news: Ended) -> None:
        """An attempt was a success."""

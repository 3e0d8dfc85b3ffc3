"""Temporary outputs of a run: which may go, now that a task has come to its end.

While batches may still come nothing goes: one of them may need it. All is counted once the last is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from treadle.decide.reason import Decision, Verdict
from treadle.decide.tombstones import Temporaries
from treadle.engine.news import RemoveTemporary
from treadle.plan.task import ScheduledPlan
from treadle.records.event import End

EndOf = Callable[[str], End | None]


class Passing:
    """Counts who still needs temporary outputs."""

    __slots__ = ("_count", "_keep", "_known", "_plan", "counts")

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        self._count: Temporaries | None = None
        self.counts = False  # whether there is anything to ask
        self._plan: ScheduledPlan | None = None  # of which the count is to be made
        self._known: dict[str, bool] = {}  # its decided tasks, and whether they are up to date

    def enter(
        self, plan: ScheduledPlan, decision: Decision, end_of: EndOf, *, more: bool = False
    ) -> list[RemoveTemporary]:
        """A plan takes its place; what nobody needs of it may go. `end_of` tells how tasks ended so far."""
        self._count, self.counts = None, False
        if self._keep or not any(task.temporary for task in plan.tasks.values()):
            return []
        if _is_open_elsewhere(plan, decision):
            return []
        self._plan = replace(plan, tasks=dict(plan.tasks)) if more else plan
        self._known = dict(_up_to_date(decision))
        return [] if more else self.seal(end_of)

    def add(self, plan: ScheduledPlan, decision: Decision) -> None:
        """A batch joined."""
        if self._plan is not None:
            self._plan.tasks.update(plan.tasks)
            self._known.update(_up_to_date(decision))

    def seal(self, end_of: EndOf) -> list[RemoveTemporary]:
        """The plan is whole: count, and let go what nobody needs already."""
        if self._plan is None:
            return []
        self._count, self.counts = Temporaries(self._plan), True
        known, self._known, self._plan = self._known, {}, None
        free = []
        for task, up_to_date in known.items():
            end = End.UP_TO_DATE if up_to_date else end_of(task)
            if end is not None:
                free += self.ended(task, end)
        return free

    def ended(self, task: str, end: End) -> list[RemoveTemporary]:
        """What nobody needs any more now that the task has come to this end."""
        if self._count is None:
            return []
        return [RemoveTemporary(maker, path) for maker, path in self._count.ended(task, end)]


def _is_open_elsewhere(plan: ScheduledPlan, decision: Decision) -> bool:
    """Whether a checkpoint task that was not selected may bring somebody who needs them."""
    return any(
        task.manifest and task.skip is None and task.id not in decision.answers
        for task in plan.tasks.values()
    )


def _up_to_date(decision: Decision) -> Iterator[tuple[str, bool]]:
    return ((task, answer.verdict is Verdict.UP_TO_DATE) for task, answer in decision.answers.items())

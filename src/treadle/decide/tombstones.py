"""Which outputs may be removed on purpose: those that nobody in the whole plan needs any more."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.event import End

_WELL = frozenset({End.SUCCEEDED, End.UP_TO_DATE, End.UNCHANGED})


class Temporaries:
    """Counts, for each task with outputs that are to go, the dependents that have not ended well.

    Temporary outputs of a task that nobody depends on are kept: they are results. Those of the rules in
    `evict` go, all of them, whether or not somebody depends on them.
    """

    def __init__(self, plan: ScheduledPlan, evict: frozenset[str] = frozenset()) -> None:
        self._plan = plan
        self._going: dict[str, tuple[str, ...]] = {}
        self._open: dict[str, int] = {}
        for task in plan.tasks.values():
            going = task.outputs if task.rule in evict else task.temporary
            if going and task.skip is None:
                self._going[task.id] = going
                self._open[task.id] = 1  # itself
        read: set[str] = set()
        for task in plan.tasks.values() if self._going else ():
            if task.skip is None:
                for need in task.needs:
                    if need in self._going:
                        self._open[need] += 1
                        read.add(need)
        for maker in [maker for maker in self._going if maker not in read]:
            if plan.tasks[maker].rule not in evict:
                del self._going[maker], self._open[maker]

    def ended(self, task: str, end: End) -> list[tuple[ScheduledTask, str]]:
        """The outputs that may go now that `task` has come to this end, with their makers."""
        if end not in _WELL or not self._going:
            return []
        free: list[tuple[ScheduledTask, str]] = []
        for one in (task, *self._plan.tasks[task].needs):
            if one in self._open:
                self._open[one] -= 1
                if not self._open[one]:
                    free += [(self._plan.tasks[one], path) for path in self._going[one]]
        return free


def removable(
    plan: ScheduledPlan, ends: Mapping[str, End], evict: frozenset[str] = frozenset()
) -> list[tuple[ScheduledTask, str]]:
    """The outputs that may be removed, with their makers, where the tasks stand at `ends`.

    Of tasks that were made, temporary ones, and all of the rules in `evict`, once every dependent in the
    whole plan succeeded, is up to date or unchanged, or is skipped by the plan (`when`); a task that is not
    in `ends` has not ended. One that a dependent was kept from (it failed, it was cancelled, its optional
    source is missing, its cohort's output was kept) stays.
    """
    count = Temporaries(plan, evict)
    return [free for task in plan.order if task in ends for free in count.ended(task, ends[task])]

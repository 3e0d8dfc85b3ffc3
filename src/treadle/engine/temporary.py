"""Counts who still needs temporary outputs, over the whole plan, not only over what is selected."""

from __future__ import annotations

from treadle.decide.reason import Decision, Verdict
from treadle.plan.task import ScheduledPlan, ScheduledTask

_DONE = (Verdict.UP_TO_DATE, Verdict.SKIPPED)


class Temporary:
    """For each producer of temporary outputs, how many of its dependents have not ended well.

    Dependents that are not selected never end, so what they need is kept; so are the outputs of a
    task that nobody depends on.
    """

    def __init__(self, plan: ScheduledPlan, decision: Decision, ended_well: set[str]) -> None:
        self._tasks = {task.id: task for task in plan.tasks.values() if task.temporary}
        self._left: dict[str, int] = dict.fromkeys(self._tasks, 0)
        self._wanted: set[str] = set()
        if not self._tasks:
            return
        for task in plan.tasks.values():
            answer = decision.answers.get(task.id)
            done = task.id in ended_well or (answer is not None and answer.verdict in _DONE)
            for need in task.needs:
                if need in self._left:
                    self._wanted.add(need)
                    self._left[need] += not done

    def done_already(self, decision: Decision) -> list[ScheduledTask]:
        """Producers that were up to date when the run began and that nobody needs any more."""
        return [
            self._tasks[task]
            for task, left in self._left.items()
            if not left
            and task in self._wanted
            and task in decision.answers
            and decision.answers[task].verdict is Verdict.UP_TO_DATE
        ]

    def ended_well(self, task: ScheduledTask) -> list[ScheduledTask]:
        """A dependent ended well: the producers whose temporary outputs nobody needs now."""
        if not self._left:
            return []
        free = []
        for need in task.needs:
            left = self._left.get(need)
            if left is not None:
                self._left[need] = left - 1
                if left == 1:
                    free.append(self._tasks[need])
        return free

"""Why a task of the plan is not to run at all, whatever its evidence says."""

from __future__ import annotations

from treadle.decide.facts import Facts
from treadle.decide.options import Options
from treadle.decide.reading import Reading
from treadle.decide.reason import AnyReason, CohortKept, ConditionFalse, SourceMissing, UpstreamSkipped
from treadle.plan.task import ScheduledPlan, ScheduledTask, Skip
from treadle.records.event import Evidence


class Skips:
    """Answers for one task after the other, in plan order; what is skipped takes its readers with it."""

    def __init__(self, plan: ScheduledPlan, facts: Facts, options: Options) -> None:
        self._plan = plan
        self._facts = facts
        self._options = options
        self._fallen: set[str] = set()

    def reason(self, task: ScheduledTask, evidence: Evidence | None) -> AnyReason | None:
        """Why `task` is skipped; None: it is not."""
        if task.skip is not None:
            return _planned(task.skip)
        found = self._upstream(task) if self._fallen else None
        if found is None and task.policy.optional:
            found = self._source(task)
        if found is None and task.outputs and task.outputs[0] in self._options.narrowed:
            found = self._cohort(task, evidence)
        if found is not None:
            self._fallen.add(task.id)
        return found

    def _upstream(self, task: ScheduledTask) -> AnyReason | None:
        """The first thing that it reads from a task that is skipped; `depends_on` a skipped task is met.

        The command names its inputs already, so a gather cannot go on with fewer: it is skipped as well.
        """
        for need in task.needs:
            if need in self._fallen and need not in task.ordered:
                reading = Reading(task.inputs)
                outputs = self._plan.tasks[need].outputs
                return UpstreamSkipped(path=next((path for path in outputs if path in reading), ""))
        return None

    def _source(self, task: ScheduledTask) -> AnyReason | None:
        for path in task.inputs:
            if path in self._plan.sources and not self._facts.there(task, path):
                return SourceMissing(path=path)
        return None

    def _cohort(self, task: ScheduledTask, evidence: Evidence | None) -> AnyReason | None:
        """Its output was made of inputs that are not selected, and nobody said that it may be overwritten."""
        path = task.outputs[0]
        if self._options.overwrite_cohort or evidence is None or not self._facts.there(task, path):
            return None
        all_there = {record.path for record in evidence.inputs}.issubset(task.inputs)
        return None if all_there else CohortKept(path=path)


def _planned(skip: Skip) -> AnyReason:
    if skip.why == "when":
        return ConditionFalse(condition=skip.what)
    return UpstreamSkipped(path=skip.what)

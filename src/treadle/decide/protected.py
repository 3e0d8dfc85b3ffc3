"""Protected outputs that a decision would have made again, over what stands there."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.base.place import Diagnostic, Severity
from treadle.decide.facts import Facts
from treadle.decide.options import Options
from treadle.decide.reason import Decision, PartialResult
from treadle.plan.task import ScheduledPlan


def overwritten(
    plan: ScheduledPlan, facts: Facts, options: Options, decision: Decision
) -> Iterator[Diagnostic]:
    """A warning for each protected output that is there and whose task will run, unless that is forced.

    One that may be cut off counts, too: nobody knows before whether it will be. A partial result does not:
    it is there to be made again.
    """
    if options.force_all or not any(task.protected for task in plan.tasks.values()):
        return
    for name in decision.to_run():
        task = plan.tasks[name]
        reasons = decision.answers[name].reasons
        partial = any(isinstance(one, PartialResult) for one in reasons)
        strange = name in decision.adoptable
        for path in task.protected if name not in options.forced and not partial else ():
            if facts.there(task, path):
                message = f"{name} would run and overwrite {path}, which is protected"
                why = "--adopt takes it over" if strange else f"treadle why {name} tells the reason"
                hint = f"{why}; to make it again: --force {name}"
                yield Diagnostic("protected-output", message, task.place, hint, Severity.WARNING)

"""Protected outputs that a decision would have made again, over what stands there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from treadle.base.place import Diagnostic, Severity
from treadle.decide.facts import Facts
from treadle.decide.options import Options
from treadle.decide.reason import Decision, PartialResult
from treadle.plan.task import ScheduledPlan, ScheduledTask

_OF_A_RULE = 3  # tasks of a rule that are told one by one


def overwritten(
    plan: ScheduledPlan, facts: Facts, options: Options, decision: Decision
) -> Iterator[Diagnostic]:
    """A warning for each protected output that is there and whose task will run, unless that is forced.

    One that may be cut off counts, too: nobody knows before whether it will be. A partial result does not:
    it is there to be made again. Of each rule the first few tasks are told, and how many more there are.
    """
    if options.force_all or not any(task.protected for task in plan.tasks.values()):
        return
    of_rules: dict[str, list[tuple[ScheduledTask, list[str]]]] = {}
    for name in decision.to_run():
        task = plan.tasks[name]
        partial = any(isinstance(one, PartialResult) for one in decision.answers[name].reasons)
        if name in options.forced or partial:
            continue
        if paths := [path for path in task.protected if facts.there(task, path)]:
            of_rules.setdefault(task.rule, []).append((task, paths))
    sizes = Counter(task.rule for task in plan.tasks.values()) if of_rules else Counter[str]()
    for rule, found in of_rules.items():
        for task, paths in found[:_OF_A_RULE]:
            why = "--adopt takes it over"
            if task.id not in decision.adoptable:
                why = f"treadle why {task.id} tells the reason"
            hint = f"{why}; to make it again: --force {task.id}"
            for path in paths:
                message = f"{task.id} would run and overwrite {path}, which is protected"
                yield Diagnostic("protected-output", message, task.place, hint, Severity.WARNING)
        more = len(found) - _OF_A_RULE
        if more > 0:
            tasks = "task" if more == 1 else "tasks"
            message = f"and {more} more {tasks} of {rule} would overwrite what is protected"
            hint = "treadle plan --tasks lists them"
            if len(found) == sizes[rule]:
                hint = f"to make all of them again: --force {rule}"
            yield Diagnostic("protected-output", message, found[0][0].place, hint, Severity.WARNING)

"""`--module`: the rules of an included file as targets."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.base.errors import OptionError
from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic, Place
from treadle.plan.task import ScheduledPlan
from treadle.rules.schema import Module, Workflow

_WHERE = Place("the command line", key="--module")


def rules_of_modules(names: Sequence[str], workflow: Workflow, plan: ScheduledPlan) -> tuple[str, ...]:
    """The rules that have tasks in the included files of these names, and in what those include.

    A name is the `name` of the include, or its namespace. Raises OptionError for one that there is not, and
    for one none of whose rules has a task.
    """
    if not names:
        return ()
    wrong: list[Diagnostic] = []
    found: dict[str, None] = {}
    with_tasks = {task.rule for task in plan.tasks.values()}
    for name in dict.fromkeys(names):
        chosen = _numbers(name, workflow.includes)
        rules = [rule.name for rule in workflow.rules if rule.module in chosen and rule.name in with_tasks]
        found.update(dict.fromkeys(rules))
        if not chosen:
            wrong.append(_unknown(name, workflow.includes))
        elif not rules:
            wrong.append(Diagnostic("unknown-target", f"no rule of module '{name}' has a task", _WHERE))
    if wrong:
        raise OptionError(wrong)
    return tuple(found)


def _numbers(name: str, modules: Sequence[Module]) -> set[int]:
    """The numbers of the files of this name, and of all that they include, which come after them."""
    chosen: set[int] = set()
    for number, module in enumerate(modules):
        if number and (name in (module.name, module.namespace) or module.within in chosen):
            chosen.add(number)
    return chosen


def _unknown(name: str, modules: Sequence[Module]) -> Diagnostic:
    known = list(dict.fromkeys(module.name for module in modules[1:]))
    hint = did_you_mean(name, known) or (
        f"there are: {', '.join(known[:10])}" if known else "the workflow includes no files"
    )
    return Diagnostic("unknown-target", f"there is no module '{name}'", _WHERE, hint)

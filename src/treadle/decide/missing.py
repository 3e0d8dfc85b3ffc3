"""The refusal of a plan whose tasks must read what is not there and nobody makes: all of it at once."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from itertools import islice
from shlex import quote

from treadle.base.errors import PlanError
from treadle.base.names import nearest
from treadle.base.place import Diagnostic
from treadle.decide.facts import Facts
from treadle.decide.look import place_of
from treadle.decide.options import Options
from treadle.plan.paths import relative_to
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.plan.tokens import shown

_SHOWN = 20  # missing paths that are told one by one
_WANTING = 3  # tasks that are named for each
_LIKE = 1000  # names that are compared with the missing one


def refuse_missing(
    plan: ScheduledPlan, facts: Facts, options: Options, running: Collection[ScheduledTask]
) -> None:
    """Raise `PlanError` when tasks that must run (`running`, in plan order) lack a source input or script."""
    lacking = frozenset((*_inputs(plan, facts, options), *_scripts(plan, facts, options, running)))
    if not lacking:
        return
    wanted: dict[str, list[ScheduledTask]] = {}
    for task in running:
        for path in task.inputs:
            if path in lacking and not facts.there(task, path):
                wanted.setdefault(path, []).append(task)
        if task.command.script_file in lacking:
            wanted.setdefault(task.command.script_file, []).append(task)
    if wanted:
        found = [_finding(plan, facts, path, tasks) for path, tasks in islice(wanted.items(), _SHOWN)]
        if len(wanted) > _SHOWN:
            found.append(Diagnostic("missing-input", f"and {len(wanted) - _SHOWN} more that do not exist"))
        raise PlanError(found)


def _inputs(plan: ScheduledPlan, facts: Facts, options: Options) -> Iterator[str]:
    """The paths that were looked at, are not there, and that nobody of the selection will make."""
    absent = {path for path, record in facts.records.items() if record is None}.union(facts.evicted)
    yield from absent & plan.sources
    selected = options.selected
    if selected is not None:
        yield from (path for path, maker in plan.producer.items() if maker not in selected and path in absent)


def _scripts(
    plan: ScheduledPlan, facts: Facts, options: Options, running: Collection[ScheduledTask]
) -> Iterator[str]:
    """The scripts that are not there and that nobody makes."""
    for script in {task.command.script_file for task in running}:
        if script and facts.record(script) is None:
            place = place_of(script, options.workdir, options.flowdir)
            if relative_to(place, options.workdir) not in plan.producer:
                yield script


def _finding(plan: ScheduledPlan, facts: Facts, path: str, tasks: list[ScheduledTask]) -> Diagnostic:
    names = ", ".join(task.id for task in tasks[:_WANTING])
    if len(tasks) > _WANTING:
        names += f" and {len(tasks) - _WANTING} more"
    place = tasks[0].place
    if path == tasks[0].command.script_file:
        message = f"the script {shown(path)} does not exist (wanted by {names})"
        return Diagnostic("missing-script", message, place)
    maker = plan.producer.get(path)
    if maker is not None:
        message = f"the input {path} does not exist (wanted by {names}), and {maker} is not selected"
        return Diagnostic("missing-input", message, place, f"select {maker} as well: it makes it")
    if any(sign in path for sign in "*?["):
        message = f"no file matches the input {path}, and no task makes one (wanted by {names})"
    else:
        message = f"the input {path} does not exist, and no task makes it (wanted by {names})"
    return Diagnostic("missing-input", message, place, _hint(path, facts))


def _hint(path: str, facts: Facts) -> str:
    """What stands there instead, or the nearest name in the folder where it should be."""
    folder, name = os.path.split(path)
    names = facts.nearby.get(folder)
    if names is None:
        return f"there is no folder {folder}" if facts.nearby and folder else ""
    if name in names:
        return f"it is a symbolic link that leads nowhere: ls -l {quote(path)} shows where to"
    like = (one for one in names if len(one) <= 2 * len(name) and len(name) <= 2 * len(one))
    found = nearest(name, islice(like, _LIKE))
    return f"did you mean '{os.path.join(folder, found)}'?" if found else ""

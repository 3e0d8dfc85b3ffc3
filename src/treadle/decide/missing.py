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
_OF_A_RULE = 5  # of these for one rule
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
        raise PlanError(list(_told(plan, facts, wanted)))


def _told(plan: ScheduledPlan, facts: Facts, wanted: dict[str, list[ScheduledTask]]) -> Iterator[Diagnostic]:
    """The first few of each rule, and how many more there are: a cohort lacks its files by the thousand."""
    of_rules: dict[str, list[str]] = {}
    for path, tasks in wanted.items():
        of_rules.setdefault(tasks[0].rule, []).append(path)
    told = untold = 0
    for rule, paths in of_rules.items():
        few = paths[: min(_OF_A_RULE, _SHOWN - told)]
        yield from (_finding(plan, facts, path, wanted[path]) for path in few)
        told, more = told + len(few), len(paths) - len(few)
        if few and more:
            message = f"and {more} more files that rule {rule} reads do not exist"
            yield Diagnostic("missing-input", message, wanted[paths[0]][0].place)
        elif more:
            untold += more
    if untold:
        yield Diagnostic("missing-input", f"and {untold} more that do not exist")


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
    message, hint = f"the input {path} does not exist, and no task makes it (wanted by {names})", ""
    if any(sign in path for sign in "*?["):
        if tasks[0].call is None:
            message = f"no file matches the input {path}, and no task makes one (wanted by {names})"
        else:
            hint = f"inputs of a step are no patterns: name their folder, or give sorted(glob.glob({path!r}))"
    return Diagnostic("missing-input", message, place, hint or _hint(path, facts))


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

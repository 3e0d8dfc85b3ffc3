"""Everything that can be said about a workflow without running it: errors, warnings, smells."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.pipe import Planned, Request, plan_of
from treadle.api.view import beyond_here
from treadle.base.errors import PlanError, UserError
from treadle.base.place import Diagnostic, Severity
from treadle.decide.facts import glance
from treadle.decide.missing import refuse_missing
from treadle.decide.options import Options
from treadle.rules.smells import smells


class Checked(Struct, frozen=True):
    """What was found; `rules` and `tasks` count what there is, 0 where errors stood in the way."""

    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    rules: int = 0
    tasks: int = 0


def check(request: Request, *, inputs: bool = False) -> Checked:
    """Look at a workflow; nothing is raised for what is wrong with it.

    `inputs`: source files that are not there are errors, not warnings.
    """
    try:
        planned = plan_of(replace(request, strict=False))
    except UserError as error:
        return Checked(errors=error.diagnostics)
    found = [*planned.warnings, *smells(planned.workflow, planned.plan, planned.expansion.coming)]
    found += beyond_here(planned.workflow, planned.workflow.rules)
    missing = _missing(planned)
    if not inputs:
        found += (replace(one, severity=Severity.WARNING) for one in missing)
    return Checked(
        errors=missing if inputs else (),
        warnings=tuple(dict.fromkeys(found)),
        rules=len(
            {(rule.place, rule.name.partition(".")[0]) for rule in planned.workflow.rules}
        ),  # not parts
        tasks=len(planned.plan.tasks),
    )


def _missing(planned: Planned) -> tuple[Diagnostic, ...]:
    """The source files and scripts that are not there, of tasks that cannot do without."""
    options = Options(workdir=planned.workdir, flowdir=planned.workflow.folder)
    facts = glance(planned.plan, options)
    tasks = planned.plan.tasks.values()
    try:
        needy = [task for task in tasks if task.skip is None and not (task.policy.optional or task.awaits)]
        refuse_missing(planned.plan, facts, options, needy)
    except PlanError as error:
        return error.diagnostics
    return ()

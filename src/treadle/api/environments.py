"""Whether this machine has what the environments of a run want of it: told before anything starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from treadle.api.cluster import local_rules
from treadle.base.place import Diagnostic, Severity
from treadle.decide.look import place_of
from treadle.decide.reason import Decision
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.rules.schema import Workflow


def lacking(
    workflow: Workflow, plan: ScheduledPlan, decision: Decision, workdir: str
) -> tuple[Diagnostic, ...]:
    """Programs and folders that environments of tasks want which will run here, and that are not here.

    Warnings, as in a preview. What the nodes of a scheduler have is not known here.
    """
    here = local_rules(workflow)
    found: dict[tuple[str, str], Diagnostic] = {}
    seen: set[int] = set()
    for task in decision.to_run():
        one = plan.tasks[task]
        if id(one.policy) not in seen and not one.starts_nothing and (here is None or one.rule in here):
            seen.add(id(one.policy))  # which the tasks of a rule share, and rules alike
            for key, diagnostic in _lacking(one, workdir, workflow.folder):
                found.setdefault(key, diagnostic)
    return tuple(found.values())


def errors(found: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    """The same as what stops a run."""
    return [
        Diagnostic(one.code, one.message, one.place, one.hint)
        for one in found
        if one.code in ("no-tool", "environment-not-there")
    ]


def _lacking(task: ScheduledTask, workdir: str, flowdir: str) -> Iterator[tuple[tuple[str, str], Diagnostic]]:
    environment = task.policy.environment
    tools = task.making.tools if task.making is not None else environment.tools if environment else ()
    if tools and not any(map(shutil.which, tools)):
        names = " nor ".join(tools)
        what = f"neither {names} is on PATH" if len(tools) > 1 else f"no {names} is on PATH"
        hint = "install it, or load what brings it, before you start treadle"
        message = f"{what} here, and the environment of {task.id} needs it"
        if task.making is not None:
            message = f"{what} here, and {task.id} needs it to make an environment"
        yield ("no-tool", names), Diagnostic("no-tool", message, task.place, hint, Severity.WARNING)
    wanted = environment.wanted if environment is not None else ""
    if wanted and not os.path.isdir(folder := place_of(wanted, workdir, flowdir)):
        folder = folder.removeprefix(workdir.rstrip("/") + "/")
        message = f"the environment of {task.id} is not there: there is no folder {folder}"
        hint = _HINTS.get(environment.kind if environment is not None else "", "")
        found = Diagnostic("environment-not-there", message, task.place, hint, Severity.WARNING)
        yield ("environment-not-there", wanted), found


_HINTS = {
    "venv": "make it, or name venv_requirements: then it is made for you",
    "conda": "make it, or name an environment file (.yml): then it is made for you",
    "mamba": "make it, or name an environment file (.yml): then it is made for you",
}

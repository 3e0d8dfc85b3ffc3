"""Outputs that nobody here has recorded: which may be taken over, and taking them over."""

from __future__ import annotations

from msgspec.structs import replace

from treadle.base.errors import PlanError
from treadle.base.place import Diagnostic
from treadle.decide.evidence import take
from treadle.decide.facts import Facts, chosen, gather
from treadle.decide.options import Options
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.event import Evidence
from treadle.records.past import Past

_SHOWN = 20


def adoptable(task: ScheduledTask, facts: Facts, past: Past) -> bool:
    """All its outputs and inputs are there, no output is older than an input, and no record knows an output.

    (That no record knows the task is for the caller to see.)
    """
    if not task.outputs:
        return False
    for path in task.outputs:
        if not facts.there(task, path):
            return False
    if not all(facts.there(task, path) for path in task.inputs):
        return False
    look = facts.look_for(task)
    oldest = min(record.mtime for path in task.outputs if (record := look(path)))
    inputs = [record for path in task.inputs if path not in task.ancient and (record := look(path))]
    return all(record.mtime <= oldest for record in inputs) and not any(
        past.maker(path) is not None for path in task.outputs
    )


def taken_over(task: ScheduledTask, facts: Facts, note: str) -> Evidence:
    """Evidence of a task as it stands on the disk, as if it had run just now.

    Tombstones stand in for inputs; an output that was removed on purpose is written down as not there.
    """
    look = facts.look_for(task)
    script = (task.command.script_file,) if task.command.script_file else ()
    before = {path: record for path in (*task.inputs, *script) if (record := look(path))}
    after = {path: record for path in task.outputs if (record := facts.record(path))}
    known = facts.evidence.get(task.id)
    evidence = take(task, before, after, foreign=known.foreign if known is not None else (), note=note)
    if known is not None and known.discovered is not None:
        evidence = replace(evidence, discovered=known.discovered)
    return evidence


def touch(plan: ScheduledPlan, past: Past, options: Options) -> dict[str, Evidence]:
    """Evidence, by task, that takes the selected tasks as up to date as they stand; no file is changed.

    Outputs that were removed on purpose count as there. Raises `PlanError` with all outputs that are not
    there, `DiskError` for what cannot be read.
    """
    facts = gather(plan, past, options, read=True)
    tasks = [task for task in chosen(plan, options) if task.skip is None]
    missing = [(path, task) for task in tasks for path in task.outputs if facts.records.get(path) is None]
    if missing:
        found = [
            Diagnostic(
                "touch-missing-output",
                f"{task.id} cannot be taken as up to date: its output {path} is not there",
                task.place,
                "run it, or leave it out",
            )
            for path, task in missing[:_SHOWN]
        ]
        if len(missing) > _SHOWN:
            found.append(Diagnostic("touch-missing-output", f"and {len(missing) - _SHOWN} more outputs"))
        raise PlanError(found)
    return {task.id: taken_over(task, facts, "touched") for task in tasks}

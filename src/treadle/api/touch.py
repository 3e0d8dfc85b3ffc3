"""Recording outputs that are there as up to date; no file is changed, not even its time."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from treadle.api.named import refuse_steps
from treadle.api.pipe import Request, is_pipeline, mask_of, plan_of, with_recorded
from treadle.api.session import Recovered, hold, record
from treadle.decide import adopt
from treadle.decide.options import Options
from treadle.plan.select import select
from treadle.records.lock import LockNews


def touch(
    request: Request,
    say: Callable[[LockNews | Recovered], None],
    *,
    wait: bool = False,
    assume_dead: bool = False,
) -> tuple[str, ...]:
    """Record the tasks that the targets name as up to date; their ids, in plan order.

    What they need is left as it is. Without targets: the default targets with all that they need. Raises
    `PlanError` with all outputs that are not there: nothing is recorded then.
    """
    planned = plan_of(request)
    mask = mask_of(planned.workflow)
    with hold(planned.workdir, mask=mask, wait=wait, assume_dead=assume_dead, say=say) as session:
        if session.outdated:
            planned = plan_of(request)
        planned = with_recorded(planned, session.past)
        plan = planned.plan
        selected = planned.selected
        if request.targets or is_pipeline(request.file):
            selected = select(plan, request.targets, workdir=planned.workdir, upstream=False)
            refuse_steps((plan.tasks[task] for task in plan.order if task in selected), "touch")
        if planned.book is not None:  # artifacts of steps have their own records
            rules = frozenset(task.id for task in plan.tasks.values() if task.call is None)
            selected = rules if selected is None else selected & rules
        options = Options(selected=selected, workdir=planned.workdir, flowdir=planned.workflow.folder)
        found = adopt.touch(plan, session.past, options)
        if planned.base is not None:
            from treadle.api.reentry import read_found  # workflows without checkpoint rules do not need it

            for task, evidence in found.items():
                if plan.tasks[task].manifest:
                    values = read_found(planned.base, plan.tasks[task], planned.workdir)
                    found[task] = replace(evidence, discovered=values)
        record(session, plan, found, time.time())
    return tuple(found)

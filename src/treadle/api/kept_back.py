"""Temporary outputs that an earlier run kept (`--keep-temporary`), in a run that has nothing else to do."""

from __future__ import annotations

import time

from treadle.api.session import Session
from treadle.api.view import View
from treadle.decide.reason import Verdict
from treadle.engine.check import Eyes
from treadle.engine.passing import Passing
from treadle.engine.unneeded import Undertaker
from treadle.plan.task import ScheduledPlan


def let_go(session: Session, view: View) -> tuple[str, ...]:
    """Remove those that nobody in the whole plan needs any more, their tombstones first; their paths, as in
    the plan.

    Raises `DiskError` and `LockError`.
    """
    plan = view.plan
    if _may_find_more(view, plan):
        return ()
    orders = Passing(keep=False).enter(plan, view.decision, lambda task: None)
    undertaker = Undertaker(
        plan.name, session.past, Eyes(view.workdir, view.workflow.folder, view.facts.records)
    )
    now = time.time()
    standing = (order for order in orders if order.path not in view.facts.evicted)
    burials = [event for order in standing if (event := undertaker.bury(order, now)) is not None]
    session.note(burials)
    for event in burials:
        undertaker.remove(event)
    return tuple(event.record.path for event in burials)


def _may_find_more(view: View, plan: ScheduledPlan) -> bool:
    """Whether a checkpoint that is not done, selected or not, may bring somebody who reads them."""
    answers = view.decision.answers
    return any(
        task.manifest
        and task.skip is None
        and (task.id not in answers or answers[task.id].verdict is not Verdict.UP_TO_DATE)
        for task in plan.tasks.values()
    )

"""Temporary outputs that an earlier run kept (`--keep-temporary`), in a run that has nothing else to do."""

from __future__ import annotations

import time

from treadle.api.session import Session
from treadle.api.view import View
from treadle.decide.reason import Verdict
from treadle.engine.check import Eyes
from treadle.engine.passing import Passing
from treadle.engine.unneeded import Undertaker


def let_go(session: Session, view: View) -> tuple[str, ...]:
    """Remove those that nobody in the whole plan needs any more, their tombstones first; their paths, as in
    the plan.

    Raises `DiskError` and `LockError`.
    """
    plan = view.plan
    orders = Passing(keep=False).enter(plan, view.decision, lambda task: None, more=_may_find_more(view))
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


def _may_find_more(view: View) -> bool:
    """Whether a checkpoint that was selected is not done, and does not run either: it failed before."""
    tasks = view.plan.tasks
    return any(
        tasks[task].manifest and tasks[task].skip is None and answer.verdict is not Verdict.UP_TO_DATE
        for task, answer in view.decision.answers.items()
    )

"""What had grown of steps that will run again: it is withdrawn until they have, and grow as they do then."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.api.view import Planned
from treadle.decide.reason import Decision, Verdict
from treadle.plan.select import select


def without_withdrawn(
    planned: Planned, decision: Decision, selected: frozenset[str] | None
) -> frozenset[str] | None:
    """The tasks that stay wanted of those `selected` (None: all), where some are withdrawn; else the same.

    Withdrawn is what grew of a step that will run, or of a withdrawn one, and that nothing else asks for.
    """
    parents = planned.parents
    gone: set[str] = set()
    for task in planned.roots:  # who grew a step comes before it
        parent = parents.get(task)
        answer = decision.answers.get(parent) if parent is not None else None
        if parent in gone or (answer is not None and answer.verdict is Verdict.WILL_RUN):
            gone.add(task)
    if not gone:
        return selected
    kept = select(planned.plan, tuple(_asking(planned, gone)), workdir=planned.workdir)
    return kept if selected is None else kept & selected


def _asking(planned: Planned, gone: set[str]) -> Iterator[str]:
    """What is wanted for its own sake: the roots that stay, and the tasks of rules."""
    tasks = planned.plan.tasks
    yield from (task for task in planned.roots if task in tasks and task not in gone)
    yield from (task.id for task in tasks.values() if task.call is None)

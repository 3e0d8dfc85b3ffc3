"""Steps that have grown, in a plan: wanted with those that grew them, and withdrawn where these run again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from treadle.api.view import Planned
from treadle.decide.reason import Decision, Verdict
from treadle.plan.graph import upstream
from treadle.plan.select import select
from treadle.plan.task import ScheduledPlan


def with_born(selected: frozenset[str], plan: ScheduledPlan, parents: Mapping[str, str]) -> frozenset[str]:
    """The selected tasks, with what has grown of them and all that this needs."""
    born = {task: parent for task, parent in parents.items() if task in plan.tasks}
    while more := [task for task, parent in born.items() if parent in selected and task not in selected]:
        selected |= upstream(plan, more)
    return selected


def without_withdrawn(
    planned: Planned,
    decision: Decision,
    selected: frozenset[str] | None,
    made: Set[str] = frozenset(),
    pending: Set[str] = frozenset(),
) -> frozenset[str] | None:
    """The tasks that stay wanted of those `selected` (None: all), where some are withdrawn; else the same.

    Withdrawn is what grew of a step that will run, or of a withdrawn one, and that nothing else asks for. In
    the middle of a run, of which `made` ran and `pending` is still to end, only the latter will.
    """
    parents = planned.parents
    gone: set[str] = set()

    def runs(parent: str) -> bool:
        if made or pending:
            return parent in pending
        answer = decision.answers.get(parent)
        return answer is not None and answer.verdict is Verdict.WILL_RUN

    for task in planned.roots:  # who grew a step comes before it
        parent = parents.get(task)
        if parent is not None and (parent in gone or runs(parent)):
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

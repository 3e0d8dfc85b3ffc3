"""A larger plan takes the place of the running one: what has begun must come out of it unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.base.errors import PlanError
from treadle.base.place import Diagnostic
from treadle.decide.reason import Decision, Verdict
from treadle.engine.node import Node, State
from treadle.plan.task import ScheduledPlan
from treadle.records.event import End

_SHOWN = 20


def begun(node: Node | None) -> bool:
    """Whether a task can no longer change: it was tried or has ended (None: before the run began). One that
    was blocked without having been tried can."""
    if node is None or node.attempt > 0:
        return True
    return type(node.state) is End and node.state is not End.BLOCKED


def check_kept(before: ScheduledPlan, nodes: Mapping[str, Node], after: ScheduledPlan) -> None:
    """Raise PlanError with every task that has begun and would be another, or gone, in the new plan.

    What was skipped or not final did not begin.
    """
    changed = [
        Diagnostic(
            "started-task-changed",
            f"the discovered values would change {task.id}, which has started already",
            task.place,
            "let the rule depend on the checkpoint, or limit what it adds with `checkpoint_extends`",
        )
        for task in before.tasks.values()
        if begun(nodes.get(task.id))
        and task.skip is None
        and not (task.awaits and task.id not in nodes)
        and after.tasks.get(task.id) != task
    ]
    if changed:
        raise PlanError(changed[:_SHOWN])


def merged(
    nodes: Mapping[str, Node], before: ScheduledPlan, plan: ScheduledPlan, decision: Decision
) -> tuple[dict[str, Node], set[Node]]:
    """The nodes of the new plan, untied, in its order, and those of them that are new.

    Those that have begun are kept, and so are those whose task is the same as `before`: they wait for what
    they waited for.
    """
    found: dict[str, Node] = {}
    fresh: set[Node] = set()
    for task in plan.tasks:
        node, answer = nodes.get(task), decision.answers.get(task)
        if node is not None and (begun(node) or before.tasks.get(task) == plan.tasks[task]):
            node.dependents, node.missing, node.depth = [], 0, 0
            if node.unit is not None:  # they are found anew
                node.unit, node.inner, node.state = None, 0, State.WAITING
        elif node is not None and node.state is End.BLOCKED:
            node.task, node.dependents, node.missing, node.depth = plan.tasks[task], [], 0, 0
        elif answer is not None and answer.verdict is Verdict.WILL_RUN:
            node = Node(plan.tasks[task], answer)
            fresh.add(node)
        else:
            continue
        found[task] = node
    return found, fresh

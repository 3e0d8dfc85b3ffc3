"""A larger plan takes the place of the running one: what has begun must come out of it unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.base.errors import PlanError
from treadle.base.place import Diagnostic
from treadle.decide.reason import Decision, Verdict
from treadle.engine.node import Node
from treadle.plan.task import ScheduledPlan
from treadle.records.event import End


def begun(node: Node | None) -> bool:
    """Whether a task can no longer change: it was tried or has ended (None: before the run began)."""
    return node is None or node.attempt > 0 or type(node.state) is End


def check_kept(before: ScheduledPlan, nodes: Mapping[str, Node], after: ScheduledPlan) -> None:
    """Raise PlanError with every task that has begun and would be another, or gone, in the new plan."""
    changed = [
        Diagnostic(
            "started-task-changed",
            f"the discovered values would change {task.id}, which has started already",
            task.place,
            "let the rule depend on the checkpoint, or limit what it adds with `checkpoint_extends`",
        )
        for task in before.tasks.values()
        if begun(nodes.get(task.id)) and after.tasks.get(task.id) != task
    ]
    if changed:
        raise PlanError(changed)


def merged(nodes: Mapping[str, Node], plan: ScheduledPlan, decision: Decision) -> dict[str, Node]:
    """The nodes of the new plan, untied, in its order: those that have begun are kept."""
    found: dict[str, Node] = {}
    for task, answer in decision.answers.items():
        node = nodes.get(task)
        if node is not None and begun(node):
            node.dependents, node.missing, node.depth = [], 0, 0
        elif answer.verdict is Verdict.WILL_RUN:
            node = Node(plan.tasks[task], answer)
        else:
            continue
        found[task] = node
    return found

"""The tasks of a run as the machine sees them: what is not done yet, in which order, held by what."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from treadle.decide.reason import Answer, OutputNeeded
from treadle.engine.budget import Demand
from treadle.engine.retry import Tally
from treadle.plan.task import Resources, ScheduledTask
from treadle.records.event import End, Outcome

NO_FAILURES = Tally()


class State(StrEnum):
    """Where a task that has not ended stands."""

    WAITING = "waiting"
    READY = "ready"
    SUBMITTED = "submitted"
    RUNNING = "running"


class Node:
    """One task that was not up to date when the run began. Only the machine changes it.

    `missing` counts the needs that have not ended well; `depth` is the longest chain of tasks that
    hang on this one; `rank` its place among all (0 starts first). `must` says that it is settled that
    it runs: nothing can cut it off any more. `attempt` and `n` are those of the last attempt, 0
    before the first.
    """

    __slots__ = (
        "answer",
        "attempt",
        "demand",
        "dependents",
        "depth",
        "job",
        "missing",
        "must",
        "n",
        "outcome",
        "rank",
        "resources",
        "state",
        "tally",
        "task",
    )

    def __init__(self, task: ScheduledTask, answer: Answer) -> None:
        self.task = task
        self.answer = answer
        self.state: State | End = State.WAITING
        self.missing = 0
        self.dependents: list[Node] = []
        self.depth = 0
        self.rank = 0
        self.must = not answer.may_cut_off
        self.attempt = 0
        self.n = 0
        self.job = ""
        self.resources: Resources = task.resources
        self.demand: Demand = ()
        self.tally = NO_FAILURES
        self.outcome: Outcome | None = None

    @property
    def buried(self) -> bool:
        """Some of its outputs were removed on purpose, and those who need them may yet be cut off."""
        return self.answer.may_cut_off and any(type(why) is OutputNeeded for why in self.answer.reasons)


def link(nodes: dict[str, Node], fresh: Iterable[Node]) -> None:
    """Tie fresh nodes, which come in plan order, to the nodes that they need.

    A need without a node is one that is up to date or skipped: it is met.
    """
    for node in fresh:
        for need in node.task.needs:
            upstream = nodes.get(need)
            if upstream is not None:
                upstream.dependents.append(node)
                if type(upstream.state) is State:
                    node.missing += 1


def rank(nodes: dict[str, Node]) -> list[Node]:
    """All nodes by (priority, critical path, id), and their `rank` set to their place in it.

    The critical path is counted in tasks. `nodes` come in plan order, so one walk back is enough.
    """
    for node in reversed(nodes.values()):
        depth = node.depth + 1
        for need in node.task.needs:
            upstream = nodes.get(need)
            if upstream is not None and upstream.depth < depth:
                upstream.depth = depth
    ranked = sorted(nodes.values(), key=lambda node: (-node.task.policy.priority, -node.depth, node.task.id))
    for at, node in enumerate(ranked):
        node.rank = at
    return ranked

"""The tasks of a run as the machine sees them: what is not done yet, in which order, held by what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.decide.reason import Answer, OutputNeeded
from treadle.engine.budget import Demand
from treadle.engine.retry import Tally
from treadle.plan.sequence import WORTH_SHARING
from treadle.plan.task import Resources, ScheduledTask
from treadle.records.event import End, Outcome

if TYPE_CHECKING:
    from treadle.engine.units import Unit

NO_FAILURES = Tally()
_NOTHING_LOST: dict[str, tuple[str, ...]] = {}  # never changed: a node that loses something gets its own
_FAILED = (End.FAILED, End.BLOCKED)
_A_PRIORITY = 1 << 48  # ranks from one priority to the next: more than a run can have nodes


class State(StrEnum):
    """Where a task that has not ended stands."""

    WAITING = "waiting"
    READY = "ready"
    SUBMITTED = "submitted"
    RUNNING = "running"


class Node:
    """One task that was not up to date when the run began. Only the machine changes it.

    `missing` counts the needs that have not ended well; `depth` is the longest chain of tasks that
    hang on this one in its batch; `rank` its place among all (the lowest starts first). `must` says that
    it is settled that it runs: nothing can cut it off any more. `attempt` and `n` are those of the last
    attempt, 0 before the first; `run` is the earlier run that submitted it (empty: this one). `stays`: its
    job goes on when we are gone. `exclude` are nodes that failed under it. `lost` has the outputs of needs
    that failed and that it can do without, by task, and `partial` is the task as it is without them.
    `unit` are those that it shares a job with, once that begins, and `inner` counts its needs among them.
    """

    __slots__ = (
        "answer",
        "attempt",
        "demand",
        "dependents",
        "depth",
        "exclude",
        "inner",
        "job",
        "lost",
        "missing",
        "must",
        "n",
        "outcome",
        "partial",
        "rank",
        "resources",
        "run",
        "state",
        "stays",
        "tally",
        "task",
        "unit",
    )

    def __init__(self, task: ScheduledTask, answer: Answer) -> None:
        self.task = task
        self.answer = answer
        self.state: State | End = State.WAITING
        self.missing = 0
        self.dependents: list[Node] | tuple[Node, ...] = []  # a tuple where several nodes share them
        self.depth = 0
        self.rank = 0
        self.must = not answer.may_cut_off
        self.attempt = 0
        self.n = 0
        self.job = ""
        self.run = ""
        self.stays = False
        self.exclude: tuple[str, ...] = ()
        self.resources: Resources = task.resources
        self.demand: Demand = ()
        self.tally = NO_FAILURES
        self.outcome: Outcome | None = None
        self.lost: dict[str, tuple[str, ...]] = _NOTHING_LOST
        self.partial: ScheduledTask | None = None
        self.unit: Unit | None = None
        self.inner = 0

    @property
    def can_go(self) -> bool:
        """All that it needs has ended well, but for what goes before it in the same job."""
        return self.missing == self.inner

    @property
    def buried(self) -> bool:
        """Some of its outputs were removed on purpose, and those who need them may yet be cut off."""
        return self.answer.may_cut_off and any(type(why) is OutputNeeded for why in self.answer.reasons)


# A gather without these inputs; None: it cannot do without them.
Fewer = Callable[[ScheduledTask, Collection[str]], ScheduledTask | None]


def lost_inputs(node: Node) -> tuple[str, ...]:
    """What of its inputs a task lacks: outputs that were not made, what would stand in them, and of a folder
    that it reads those that would stand there."""
    if not node.lost:
        return ()
    outputs = frozenset(path for made in node.lost.values() for path in made)
    inputs = frozenset(node.task.inputs)
    lost = {path for path in inputs if path in outputs or not outputs.isdisjoint(_above(path))}
    lost.update(path for path in outputs if not inputs.isdisjoint(_above(path)))
    return tuple(sorted(lost))


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


class Old(Struct):
    """A job of an earlier run that is being ended, before the task of `node` runs. `job` is empty until the
    backend holds it."""

    node: Node
    attempt: int
    n: int
    run: str
    job: str = ""


def link(nodes: Mapping[str, Node], fresh: Iterable[Node]) -> None:
    """Tie fresh nodes, which come in plan order, to the nodes that they need.

    A need without a node is one that is up to date or skipped: it is met. One that has failed counts as
    missing until it is told to those that need it.
    """
    together: dict[int, list[Node]] = {}  # those that share many needs
    for node in fresh:
        node.lost, node.partial = _NOTHING_LOST, None
        if len(node.task.needs) > WORTH_SHARING:
            together.setdefault(id(node.task.needs), []).append(node)
            continue
        for need in node.task.needs:
            upstream = nodes.get(need)
            if upstream is not None:
                _tie(upstream, (node,))
                node.missing += _is_missing(upstream)
    for some in map(tuple, together.values()):
        missing = 0
        for need in some[0].task.needs:
            upstream = nodes.get(need)
            if upstream is not None:
                _tie(upstream, some)
                missing += _is_missing(upstream)
        for node in some:
            node.missing += missing


def _is_missing(upstream: Node) -> bool:
    return type(upstream.state) is State or upstream.state in _FAILED


def _tie(upstream: Node, some: tuple[Node, ...]) -> None:
    """More nodes depend on `upstream`. Several are shared with all that they need, where it has no others."""
    known = upstream.dependents
    if not known and len(some) > 1:
        upstream.dependents = some
    elif type(known) is list:
        known += some
    else:
        upstream.dependents = [*known, *some]


def join(
    nodes: Mapping[str, Node], fresh: Iterable[Node], ended: Mapping[str, End], dormant: Container[str]
) -> list[tuple[Node, str]]:
    """Tie nodes of a batch, which come in plan order and are among `nodes`, to those that they need.

    `ended` are nodes that were dropped since. A dormant one counts as done until someone wants it. Gives the
    nodes that can never start, each with the need that failed or is blocked.
    """
    lost = []
    for node in fresh:
        for need in node.task.needs:
            upstream = nodes.get(need)
            state = ended.get(need) if upstream is None else upstream.state
            if state is End.FAILED or state is End.BLOCKED:
                lost.append((node, need))
                break
            if type(state) is State and upstream is not None:
                _tie(upstream, (node,))
                node.missing += need not in dormant
            elif state is End.CANCELLED:
                node.missing += 1  # the run is being stopped: nothing starts any more
    return lost


def rank(nodes: dict[str, Node], first: int = 0) -> dict[int, Node]:
    """Nodes by their `rank`, which is set here: by priority, then batch, then critical path, then id.

    The critical path is counted in tasks. `nodes` come in plan order. `first` is how many nodes were ranked
    before: those of an earlier batch go first at equal priority.
    """
    _measure(nodes)
    ranked = sorted(nodes.values(), key=lambda node: (-node.task.policy.priority, -node.depth, node.task.id))
    found = {}
    for at, node in enumerate(ranked, first):
        node.rank = at - node.task.policy.priority * _A_PRIORITY
        found[node.rank] = node
    return found


def _measure(nodes: dict[str, Node]) -> None:
    """Set the `depth` of nodes in plan order, in one walk back. Many needs that several nodes share are
    followed once, from the first of these."""
    leaders: dict[int, Node] = {}
    for node in nodes.values():
        if len(node.task.needs) > WORTH_SHARING:
            leaders.setdefault(id(node.task.needs), node)
    deepest: dict[int, int] = {}
    for node in reversed(nodes.values()):
        depth, needs = node.depth + 1, node.task.needs
        if (leader := leaders.get(id(needs))) is not None:
            depth = deepest[id(needs)] = max(depth, deepest.get(id(needs), 0))
            if leader is not node:
                continue
        for need in needs:
            upstream = nodes.get(need)
            if upstream is not None and upstream.depth < depth:
                upstream.depth = depth

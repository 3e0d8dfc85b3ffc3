"""Drafts to a plan: edges, order, levels, and every structural refusal, all told at once."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from treadle.plan.edges import Edges, connect, find_makers
from treadle.plan.findings import Findings
from treadle.plan.graph import cycles, levels, topological
from treadle.plan.lengths import check_lengths
from treadle.plan.nodes import Nodes, numbered
from treadle.plan.notice import note_likeness, note_logs, note_missing
from treadle.plan.refuse import check_depends, check_outputs, check_pools, tell_cycles
from treadle.plan.sequence import WORTH_SHARING, Needs, behind_barriers, with_barriers, without_barriers
from treadle.plan.spellings import check_spellings, place_in
from treadle.plan.task import Ceilings, Draft, ExecutionGroup, ScheduledPlan, ScheduledTask
from treadle.plan.waits import Waits, add_waits

_NOBODY: frozenset[str] = frozenset()


def build(
    name: str,
    drafts: Sequence[Draft],
    *,
    pools: Sequence[tuple[str, int]] = (),
    rules: Iterable[str] = (),
    protected: Sequence[str] = (),
    roots: Sequence[str] = (),
    known: Container[str] = (),
    sequences: Sequence[ExecutionGroup] = (),
    ceilings: Ceilings | None = None,
) -> ScheduledPlan:
    """The plan of workflow `name`; the same drafts in any order give the same plan.

    `pools` are the named resource groups and how many there are of each; `rules` names rules that exist
    though they may have no task; `protected` are normal paths that no task may make, or hold in a folder
    that it makes, such as the workflow file; `roots` are the absolute spellings of the work folder. `known`
    are ids of steps in earlier batches of the same run, on which these may build. `sequences` are rules that
    run one after the other, and `ceilings` bound what is under way. Whether source inputs exist is not
    looked at.
    Raises PlanError with all that is wrong, CycleError where tasks need each other in a circle.
    """
    findings = Findings()
    nodes = numbered(drafts, findings)
    check_pools(nodes, dict(pools), findings)
    check_depends(nodes, rules, findings)
    made = find_makers(nodes, findings)
    protected = tuple(dict.fromkeys(place_in(path, roots) for path in protected))
    check_outputs(nodes, made, protected, findings)
    edges = connect(nodes, made, known, findings)
    waits = add_waits(nodes, edges.needs)
    check_spellings(nodes, made, edges.sources, protected, roots, findings)
    check_lengths(nodes, made, edges.sources, findings)
    needs = with_barriers(nodes, behind_barriers(edges.needs), sequences)
    order = topological(needs, _rank(nodes, len(needs)))
    if len(order) < len(needs):
        needs = with_barriers(nodes, edges.needs, sequences)  # the shortest circle counts tasks alone
        order = topological(needs, _rank(nodes, len(needs)))
        found = [without_barriers(one, len(nodes.ids)) for one in cycles(needs, order)]
        tell_cycles(nodes, made, found, sequences, findings)
    findings.stop()
    note_logs(nodes, made, edges.sources, findings)
    note_likeness(nodes, made, edges.sources, findings)
    note_missing(nodes, edges, findings)
    ids = nodes.ids
    return ScheduledPlan(
        name=name,
        order=tuple(ids[number] for number in without_barriers(order, len(ids))),
        groups=_groups(nodes, needs, order),
        tasks=_tasks(nodes, edges, waits, without_barriers(order, len(ids))),
        producer={path: ids[number] for path, number in made.maker.items()},
        pools=tuple(sorted(pools)),
        sequences=tuple(sequences),
        ceilings=ceilings,
        sources=edges.sources,
        notes=findings.notes(),
    )


def _rank(nodes: Nodes, size: int) -> list[int]:
    """Each node's place among those that could come next: the higher priority first, then by id; before all
    of them the barriers, which fill the numbers up to `size`."""
    rank = [0] * size
    real = len(nodes.ids)
    first = [*range(real, size)]
    first += sorted(range(real), key=lambda number: -nodes.drafts[number].policy.priority)
    for place, number in enumerate(first):
        rank[number] = place
    return rank


def _groups(nodes: Nodes, needs: Needs, order: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """The levels of the plan, each in plan order."""
    level = levels(needs, order, len(needs) - len(nodes.ids))
    groups: list[list[str]] = [[] for _ in range(max(level, default=-1) + 1)]
    for number in without_barriers(order, len(nodes.ids)):
        groups[level[number]].append(nodes.ids[number])
    return tuple(map(tuple, groups))


def _tasks(nodes: Nodes, edges: Edges, waits: Waits, order: Sequence[int]) -> dict[str, ScheduledTask]:
    """The tasks by id, in plan order. Many needs that several tasks share stay one tuple."""
    shared: dict[int, tuple[str, ...]] = {}
    tasks = {}
    for number in order:
        needs = edges.needs[number]
        names = shared.get(id(needs)) or tuple(map(nodes.ids.__getitem__, needs))
        if len(needs) > WORTH_SHARING:
            shared[id(needs)] = names
        if number in edges.earlier:
            names = tuple(sorted((*names, *edges.earlier[number])))
        tasks[nodes.ids[number]] = _task(nodes, number, names, edges.ordered.get(number, _NOBODY), waits)
    return tasks


def _task(
    nodes: Nodes, number: int, needs: tuple[str, ...], ordered: frozenset[str], waits: Waits
) -> ScheduledTask:
    draft = nodes.drafts[number]
    return ScheduledTask(
        id=nodes.ids[number],
        rule=draft.rule,
        wildcards=draft.wildcards,
        command=draft.command,
        call=draft.call,
        inputs=draft.inputs,
        ancient=draft.ancient,
        outputs=draft.outputs,
        temporary=draft.temporary,
        protected=draft.protected,
        needs=needs,
        ordered=ordered,
        resources=draft.resources,
        policy=draft.policy,
        log=draft.log,
        log_named=draft.log_named,
        benchmark=draft.benchmark,
        manifest=draft.manifest,
        born=waits.born.get(number, _NOBODY),
        awaits=waits.awaits.get(number, ()),
        skip=nodes.skips[number],
        making=draft.making,
        place=draft.place,
    )

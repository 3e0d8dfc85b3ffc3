"""The plan as a drawing: Graphviz dot, Mermaid, or a plain tree; by rule or by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from treadle.plan.task import ScheduledPlan


class Drawing(Struct, frozen=True):
    """Nodes (id -> label) in plan order and edges (from what is needed to what needs it). `perhaps` are the
    nodes that are still to be found, or wait for what is."""

    nodes: dict[str, str]
    edges: tuple[tuple[str, str], ...]
    perhaps: frozenset[str] = frozenset()


def with_coming(drawing: Drawing, coming: Mapping[str, Iterable[str]], waiting: Iterable[str]) -> Drawing:
    """The drawing by rule with the rules of which tasks may still come, behind those that find them.

    `waiting` are the rules some tasks of which wait for that.
    """
    nodes, edges = dict(drawing.nodes), dict.fromkeys(drawing.edges)
    for rule, finders in coming.items():
        nodes[rule] = f"{nodes.get(rule, rule)} +?"
        edges.update(((finder, rule), None) for finder in finders if finder != rule and finder in nodes)
    return Drawing(nodes, tuple(edges), frozenset(coming).union(one for one in waiting if one in nodes))


def by_task(plan: ScheduledPlan, selected: frozenset[str] | None = None) -> Drawing:
    """One node per task."""
    tasks = [task for task in plan.order if selected is None or task in selected]
    kept = set(tasks)
    edges = tuple((need, task) for task in tasks for need in plan.tasks[task].needs if need in kept)
    return Drawing({task: task for task in tasks}, edges)


def by_rule(plan: ScheduledPlan, selected: frozenset[str] | None = None) -> Drawing:
    """One node per rule, with how many tasks it has."""
    tasks = [plan.tasks[task] for task in plan.order if selected is None or task in selected]
    number = Counter(task.rule for task in tasks)
    edges: dict[tuple[str, str], None] = {}
    for task in tasks:
        for need in task.needs:
            pair = (plan.tasks[need].rule, task.rule)
            if pair[0] in number:
                edges[pair] = None
    nodes = {rule: f"{rule} ({count})" if count > 1 else rule for rule, count in number.items()}
    return Drawing(nodes, tuple(edges))


def dot(drawing: Drawing, name: str) -> Iterator[str]:
    """Graphviz: `treadle graph --format dot | dot -Tsvg`."""
    yield f"digraph {_dot_quoted(name)} {{"
    yield '  node [shape=box, style=rounded, fontname="sans-serif"];'
    for node, label in drawing.nodes.items():
        dashed = ', style="rounded,dashed"' if node in drawing.perhaps else ""
        yield f"  {_dot_quoted(node)} [label={_dot_quoted(label)}{dashed}];"
    for start, end in drawing.edges:
        yield f"  {_dot_quoted(start)} -> {_dot_quoted(end)};"
    yield "}"


def mermaid(drawing: Drawing, name: str) -> Iterator[str]:
    """Mermaid: goes into a Markdown page as it is."""
    number = {node: f"n{index}" for index, node in enumerate(drawing.nodes)}
    yield "flowchart TD"
    for node, label in drawing.nodes.items():
        yield f'  {number[node]}["{_mermaid_quoted(label)}"]'
    for start, end in drawing.edges:
        yield f"  {number[start]} --> {number[end]}"
    if drawing.perhaps:
        yield "  classDef perhaps stroke-dasharray: 4"
        yield f"  class {','.join(number[node] for node in drawing.nodes if node in drawing.perhaps)} perhaps"


def tree(drawing: Drawing, name: str) -> Iterator[str]:
    """A plain tree from what is made last to what it needs; what was drawn already is marked `^`."""
    needs: dict[str, list[str]] = {node: [] for node in drawing.nodes}
    needed: set[str] = set()
    for start, end in drawing.edges:
        needs[end].append(start)
        needed.add(start)
    drawn: set[str] = set()
    for root in reversed(drawing.nodes):
        if root not in needed:
            yield from _branch(root, needs, drawing.nodes, drawn)


def _branch(
    root: str, needs: Mapping[str, list[str]], labels: Mapping[str, str], drawn: set[str]
) -> Iterator[str]:
    """One root and what hangs on it, with a stack of its own: plans may be 100,000 deep."""
    stack = [(root, "", "")]
    while stack:
        node, own, below = stack.pop()
        again = node in drawn and bool(needs[node])
        yield f"{own}{labels[node]}{' ^' if again else ''}"
        if again:
            continue
        drawn.add(node)
        children = needs[node]
        for index in range(len(children) - 1, -1, -1):
            last = index == len(children) - 1
            stack.append(
                (children[index], below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "))
            )


def _dot_quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _mermaid_quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


FORMATS = {"dot": dot, "mermaid": mermaid, "tree": tree}

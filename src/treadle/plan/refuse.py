"""The structural refusals of a plan that are not about two makers, and what only deserves a warning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from treadle.base.layout import STATE, StateFolder
from treadle.base.names import did_you_mean
from treadle.plan.edges import Made
from treadle.plan.findings import Findings
from treadle.plan.nodes import Nodes
from treadle.plan.sequence import orders
from treadle.plan.task import Draft, ExecutionGroup, Where

_ARTIFACTS = StateFolder("").artifacts + "/"  # the one place in the state folder that tasks may fill
_SHOWN = 8  # tasks of a long cycle that are drawn, and links that are explained


def check_pools(nodes: Nodes, pools: Mapping[str, int], findings: Findings) -> None:
    """Refuse a named group that no pool has, or of which a task wants more than there are."""
    seen: set[tuple[str, tuple[tuple[str, int], ...]]] = set()
    for task, draft in zip(nodes.ids, nodes.drafts):
        groups = draft.resources.groups
        if not groups or (draft.rule, groups) in seen:
            continue
        seen.add((draft.rule, groups))
        elsewhere = draft.call is not None and draft.call.where is Where.CLIENT  # may have groups of its own
        for group, wanted in groups:
            if elsewhere and group not in pools:
                continue
            _check_group(task, draft, group, wanted, pools, findings)


def _check_group(
    task: str, draft: Draft, group: str, wanted: int, pools: Mapping[str, int], findings: Findings
) -> None:
    if group not in pools:
        findings.error(
            "unknown-group",
            f"{task} asks for the resource group {group}, which {_whole(draft)} does not have",
            draft.place,
            did_you_mean(group, pools) or _way_to_name(draft, group),
            alike=(draft.rule, group),
        )
    elif wanted > pools[group]:
        findings.error(
            "group-too-small",
            f"{task} asks for {wanted} of the resource group {group}, which has {pools[group]}: it can "
            "never start",
            draft.place,
            f"ask for less, or raise the number in {_count_of(draft)}",
            alike=(draft.rule, group),
        )


def _whole(draft: Draft) -> str:
    return "the workflow" if draft.call is None else "this run"


def _count_of(draft: Draft) -> str:
    return "[resource_groups]" if draft.call is None else "StepRunner(groups=...) or [resource_groups]"


def _way_to_name(draft: Draft, group: str) -> str:
    """Who runs steps may do so by a script, or by a workflow file that names their pipeline."""
    if draft.call is None:
        return "name it in [resource_groups] with how many there are"
    return (
        f'say how many there are: StepRunner(groups={{"{group}": 2}}), or [resource_groups] of a workflow '
        "file that runs the pipeline"
    )


def check_depends(nodes: Nodes, rules: Iterable[str], findings: Findings) -> None:
    """Refuse `depends_on` a rule that there is not; one that is there but has no task is met."""
    known = dict.fromkeys(draft.rule for draft in nodes.drafts) | dict.fromkeys(rules)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for draft in nodes.drafts:
        if not draft.depends_on or (draft.rule, draft.depends_on) in seen:
            continue
        seen.add((draft.rule, draft.depends_on))
        for name in draft.depends_on:
            if name not in known:
                findings.error(
                    "unknown-rule",
                    f"{draft.rule} depends on the rule {name}, which does not exist",
                    draft.place,
                    did_you_mean(name, known),
                    alike=(draft.rule, name),
                )


def check_outputs(nodes: Nodes, made: Made, protected: Sequence[str], findings: Findings) -> None:
    """Refuse outputs that hold, as a folder, what is not the task's own, and outputs among our state."""
    for path, number in made.maker.items():
        if path[:1] in "./" and _is_no_place(path) and not is_artifact_place(nodes, number, path):
            refuse_place(nodes, number, path, path, findings)
        elif made.index.has_below(path):
            _check_folder(nodes, made, number, path, findings)
    for path in protected:
        for output in (path, *made.index.above(path)):
            number = made.maker.get(output, -1)
            if number >= 0:
                refuse_protected(nodes, number, output, path, findings)


def _is_no_place(path: str) -> bool:
    return path in ("", ".") or path.rpartition("/")[2] == ".." or is_off_limits(path)


def is_off_limits(place: str, roots: Sequence[str] = ()) -> bool:
    """Whether a place is in our state folder, or above the work folder, which is at `roots`."""
    return (
        place in (STATE, "/")
        or place.startswith(STATE + "/")
        or any(root.startswith(place + "/") for root in roots)
    )


def is_artifact_place(nodes: Nodes, number: int, place: str) -> bool:
    """Whether it is where artifacts of steps stand that name no other place, and the task is a step."""
    return nodes.drafts[number].call is not None and place.startswith(_ARTIFACTS)


def refuse_place(nodes: Nodes, number: int, path: str, place: str, findings: Findings) -> None:
    """Refuse an output, as it is spelled and where it leads, that is in the state folder, or that is or
    holds the work folder itself."""
    state = place.startswith(STATE)
    findings.error(
        "output-in-state-folder" if state else "output-holds-work-folder",
        f"{nodes.ids[number]} would make {path!r}, "
        + (f"and {STATE}/ belongs to Treadle" if state else "which is or holds the work folder"),
        nodes.drafts[number].place,
        "choose another path",
        alike=(nodes.drafts[number].rule,),
    )


def refuse_protected(nodes: Nodes, number: int, output: str, path: str, findings: Findings) -> None:
    """Refuse an output that is, or holds, the protected `path`."""
    holds = f"would make {path}" if output == path else f"would make the folder {output}, which holds {path}"
    findings.error(
        "output-holds-workflow",
        f"{nodes.ids[number]} {holds}: it would be removed before the task runs again",
        nodes.drafts[number].place,
        "choose another path",
        alike=(nodes.drafts[number].rule, path),
    )


def _check_folder(nodes: Nodes, made: Made, number: int, folder: str, findings: Findings) -> None:
    """Refuse outputs of others in a folder that is itself an output."""
    draft = nodes.drafts[number]
    for path in made.index.below(folder):
        maker = made.maker[path]
        if maker != number:
            other = nodes.drafts[maker]
            where = f" ({other.place})" if str(other.place) else ""
            what = "the folder" if draft.call is None else "the artifact"
            findings.error(
                "output-in-output",
                f"{nodes.ids[number]} makes {what} {folder}, and {nodes.ids[maker]}{where} makes {path} "
                "inside it",
                draft.place,
                "a folder that a task makes is its own: write elsewhere, or name the files instead of the "
                "folder"
                if draft.call is None
                else "an artifact is its step's own: give one of the two another place",
                alike=(draft.rule, other.rule),
            )


def tell_cycles(
    nodes: Nodes,
    made: Made,
    cycles: Iterable[Sequence[int]],
    sequences: Sequence[ExecutionGroup],
    findings: Findings,
) -> None:
    """Refuse cycles, each drawn as a path from what is made to what reads it."""
    for cycle in cycles:
        ring = [*cycle, cycle[0]]
        names = [nodes.ids[number] for number in ring]
        if len(names) > _SHOWN + 2:
            names[_SHOWN:-1] = [f"... {len(cycle) - _SHOWN:,} more ..."]
        links = [_link(nodes, made, one, other, sequences) for one, other in pairwise(ring[: _SHOWN + 1])]
        findings.error(
            "cycle",
            f"tasks need each other in a circle: {' -> '.join(names)}",
            nodes.drafts[cycle[0]].place,
            "\n  ".join(links),
            alike=tuple(sorted({nodes.drafts[number].rule for number in cycle})),
        )
        findings.cycle = findings.cycle or tuple(nodes.ids[number] for number in cycle)


def _link(nodes: Nodes, made: Made, maker: int, reader: int, sequences: Sequence[ExecutionGroup]) -> str:
    """Why `reader` needs `maker`, with the place of its rule."""
    draft = nodes.drafts[reader]
    where = f"{draft.place}: " if str(draft.place) else ""
    for path in draft.inputs:
        if maker in made.makers(path):
            return f"{where}{nodes.ids[reader]} reads {path}, which {nodes.ids[maker]} makes"
    if nodes.ids[maker] in draft.steps:
        return f"{where}{nodes.ids[reader]} builds on {nodes.ids[maker]}"
    rule = nodes.drafts[maker].rule
    if rule not in draft.depends_on and (group := orders(sequences, rule, draft.rule)):
        return f"{where}{nodes.ids[reader]} comes after the rule {rule} in the execution group {group}"
    return f"{where}{nodes.ids[reader]} depends on the rule {rule}"

"""Drafts as numbered nodes: sorted by id, so that nothing after hangs on the order they came in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from treadle.base.names import step_id, task_id
from treadle.plan.findings import Findings
from treadle.plan.paths import normal_draft
from treadle.plan.skip import cascade
from treadle.plan.task import Draft, Skip


class Nodes(Struct, frozen=True):
    """The drafts of a plan, sorted by id: a node's number is its place here.

    `skips` tells why a node is skipped (None: it is not), the cascade included.
    """

    ids: list[str]
    drafts: list[Draft]
    skips: list[Skip | None]

    def live(self) -> Iterator[tuple[int, Draft]]:
        """Number and draft of the nodes that are not skipped."""
        if not any(self.skips):
            return enumerate(self.drafts)
        skips = self.skips
        return ((number, draft) for number, draft in enumerate(self.drafts) if skips[number] is None)


def numbered(drafts: Sequence[Draft], findings: Findings) -> Nodes:
    """Sort the drafts by id, spell their paths one way, and follow the skips."""
    unsorted = [_id(draft) for draft in drafts]
    places = sorted(range(len(unsorted)), key=unsorted.__getitem__)
    ids = [unsorted[place] for place in places]
    ordered = [normal_draft(drafts[place]) for place in places]
    for number, (one, other) in enumerate(pairwise(ids)):
        if one == other:
            _refuse_twin(one, ordered[number], ordered[number + 1], findings)
    fallen = cascade(ordered)
    if fallen.lost:
        for number, draft in enumerate(ordered):
            if fallen.skips[number] is None and not fallen.lost.isdisjoint(draft.gathered):
                ordered[number] = _gather_less(ids[number], draft, fallen.lost, findings)
    return Nodes(ids, ordered, fallen.skips)


def _id(draft: Draft) -> str:
    call = draft.call
    return task_id(draft.rule, draft.wildcards) if call is None else step_id(call.step, call.identity)


def _gather_less(task: str, draft: Draft, lost: frozenset[str], findings: Findings) -> Draft:
    """The gather without what only skipped tasks make; refused when its command names such a path.

    Front doors leave such paths out before they fill in the command.
    """
    from msgspec.structs import replace

    command = draft.command
    texts = (command.text, *command.script, command.pre_exec, command.on_success, command.on_failure)
    for path in draft.inputs:
        if path in lost and any(path in text for text in texts):
            findings.error(
                "gather-skipped",
                f"{task} gathers {path}, which only skipped tasks make, and its command names it",
                draft.place,
                "leave it out of the command, or name it as a fixed input: then the task is skipped too",
                alike=(draft.rule,),
            )
    kept = tuple(path for path in draft.inputs if path not in lost)
    return replace(draft, inputs=kept, gathered=draft.gathered - lost, ancient=draft.ancient - lost)


def _refuse_twin(task: str, one: Draft, other: Draft, findings: Findings) -> None:
    where = f" (the other: {one.place})" if one.place != other.place else ""
    if one.call is not None:
        findings.error(
            "duplicate-task",
            f"two steps have the id {task}{where}",
            other.place,
            "a step enters a plan once; where the two differ, rename one of them",
            alike=(one.rule,),
        )
        return
    findings.error(
        "duplicate-task",
        f"two tasks have the id {task}{where}",
        other.place,
        "tasks of one rule differ in their wildcard values, and rules in their names",
        alike=(one.rule,),
    )

"""Taking out of gathers what nobody makes: outputs of tasks whose condition is false, and all below them."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.plan.skip import cascade
from treadle.rules.expand.trip import Expanded


def prune(rules: Sequence[Expanded]) -> None:
    """Draft anew each gather that has inputs which only skipped tasks make; in place.

    A gather left without anything for one of its inputs is skipped, which may leave others without theirs:
    hence again, until nothing changes. Fixed inputs are the plan's business.
    """
    while _pruned_once(rules):
        pass


def _pruned_once(rules: Sequence[Expanded]) -> bool:
    drafts = [draft for rule in rules for draft in rule.drafts]
    if not any(draft.skip for draft in drafts):
        return False
    fallen = cascade(drafts)
    changed, number = False, 0
    for rule in rules:
        for at, draft in enumerate(rule.drafts):
            skip, number = fallen.skips[number], number + 1
            if draft.gathered and skip is None and not draft.gathered.isdisjoint(fallen.lost):
                rule.drafts[at] = rule.drafter.draft(rule.drafter.groups[at], fallen.lost)
                changed = True
    return changed

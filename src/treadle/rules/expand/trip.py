"""One trip over the rules of a workflow, each behind those that it looks for, rows to drafts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from treadle.plan.task import Draft
from treadle.rules.expand.blueprint import Blueprint
from treadle.rules.expand.drafter import Drafter
from treadle.rules.expand.finder import Finder
from treadle.rules.expand.narrow import is_narrowed, is_thinned
from treadle.rules.expand.ordering import Feeds
from treadle.rules.expand.rows import Rows, Values, read_rows
from treadle.rules.toml.section import Findings


class Expanded(Struct):
    """One rule, expanded. `thinned`: a selection took tasks, or some of what it looks for, away.

    `narrowed` are the numbers of its drafts that gather less than without the selection.
    """

    blueprint: Blueprint
    rows: Rows
    drafter: Drafter
    drafts: list[Draft]
    thinned: bool
    narrowed: list[int]


class Trip:
    """The rules expanded so far, by their number in the file, and everything that is planned by that."""

    def __init__(self, finder: Finder, findings: Findings, *, replaced: bool = False) -> None:
        self.done: dict[int, Expanded] = {}
        self._finder = finder
        self._findings = findings
        self._replaced = replaced

    def expand(
        self, blueprints: Sequence[Blueprint], order: Sequence[int], fed_by: Feeds, values: Values
    ) -> None:
        """Expand the rules with these numbers, in this order."""
        for number in order:
            blueprint = blueprints[number]
            unsure = any(feeder not in self.done for feeder in fed_by[number])
            rows = read_rows(blueprint, values, self._finder, self._findings, unsure=unsure)
            if rows is not None:
                thin = self._thinned_among(fed_by[number])
                self._expand(number, blueprint, rows, thin)

    def _thinned_among(self, feeders: Collection[int]) -> bool:
        return any(number in self.done and self.done[number].thinned for number in feeders)

    def _expand(self, number: int, blueprint: Blueprint, rows: Rows, fed_thin: bool) -> None:
        drafter = Drafter(blueprint, rows, self._finder, self._findings)
        drafts = [drafter.draft(group) for group in drafter.groups]
        thinned = fed_thin or is_thinned(blueprint, rows, self._replaced)
        narrowed = []
        if thinned:
            narrow = is_narrowed(blueprint, rows, fed_thin, self._replaced)
            narrowed = [at for at, draft in enumerate(drafts) if draft.outputs and narrow(draft.wildcards)]
        self.done[number] = Expanded(blueprint, rows, drafter, drafts, thinned, narrowed)
        self._plan(drafts)

    def _plan(self, drafts: Sequence[Draft]) -> None:
        live = [path for draft in drafts if draft.skip is None for path in draft.outputs]
        self._finder.plan(live)
        if any(draft.skip for draft in drafts):
            dead = [path for draft in drafts if draft.skip is not None for path in draft.outputs]
            self._finder.plan(dead, skipped=True)

    def in_file_order(self) -> list[Expanded]:
        """The expanded rules in the order of the file."""
        return [self.done[number] for number in sorted(self.done)]

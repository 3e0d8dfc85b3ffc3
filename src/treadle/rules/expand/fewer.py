"""Gathers that go on without some of their inputs (`allow_missing`): filled in anew for those that are left.

The plan has the text for all inputs, and that bears the identity. Which of them will be missing is known only
when everything upstream has ended; what fills the text in then is what did it before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from treadle.base.names import task_id
from treadle.base.place import Diagnostic, Severity
from treadle.plan.paths import normal, normal_draft
from treadle.plan.task import ScheduledTask
from treadle.rules.expand.drafter import Drafter
from treadle.rules.pattern.pattern import Row


class Fewer:
    """Tasks of the rules that allow it, with fewer inputs. `rules` have a drafter for each such rule."""

    def __init__(self, rules: Iterable[Drafter]) -> None:
        self._rules = {drafter.blueprint.rule.name: drafter for drafter in rules}
        self._rows: dict[str, dict[str, Sequence[Row]]] = {}

    def __call__(self, task: ScheduledTask, lost: Collection[str]) -> ScheduledTask | None:
        """The task without these inputs; None: it cannot do without them.

        A gather can do without what it gathers, but not without all of it, nor without a fixed input.
        """
        drafter = self._rules.get(task.rule)
        rows = self._rows_of(drafter, task) if drafter is not None else None
        if drafter is None or rows is None:
            return None
        problems: list[Diagnostic] = []
        gathered = drafter.draft(rows, problems=problems).gathered
        left = {path for path in task.inputs if path not in lost}
        if not {path for path in task.inputs if path in lost} <= {normal(path) for path in gathered}:
            return None
        dead = frozenset(path for path in gathered if normal(path) not in left)
        draft = normal_draft(drafter.draft(rows, dead, problems))
        if draft.skip is not None or any(one.severity is Severity.ERROR for one in problems):
            return None
        ancient = task.ancient.intersection(draft.inputs)
        return replace(task, command=draft.command, inputs=draft.inputs, ancient=ancient)

    def _rows_of(self, drafter: Drafter, task: ScheduledTask) -> Sequence[Row] | None:
        known = self._rows.get(task.rule)
        if known is None:
            known = {task_id(task.rule, drafter.wildcards(rows)): rows for rows in drafter.groups}
            self._rows[task.rule] = known
        return known.get(task.id)

"""What stands in a text for one value must have one value in each task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treadle.rules.expand.blueprint import Blueprint
from treadle.rules.expand.rule_texts import Use
from treadle.rules.pattern.pattern import Pattern, Row
from treadle.rules.toml.section import Findings

_SHOWN = 5


class Agreement:
    """Checks the rows of one task after the other; tells of each wildcard once."""

    def __init__(self, blueprint: Blueprint, findings: Findings) -> None:
        self._blueprint = blueprint
        self._findings = findings
        self._uses: dict[int, Use] = {}
        for use in _uses(blueprint):
            if use.name not in blueprint.key:
                self._uses.setdefault(blueprint.names.index(use.name), use)

    def check(self, rows: Sequence[Row]) -> None:
        """Report a wildcard in a text that has several values among these rows."""
        for at, use in list(self._uses.items()):
            values = dict.fromkeys(row[at] for row in rows)
            if len(values) > 1:
                del self._uses[at]
                self._tell(use, list(values), rows[0])

    def _tell(self, use: Use, values: Sequence[str], row: Row) -> None:
        blueprint, name = self._blueprint, use.name
        shown = ", ".join(values[:_SHOWN]) + (
            f" and {len(values) - _SHOWN:,} more" if values[_SHOWN:] else ""
        )
        key = ", ".join(f"{one}={row[blueprint.names.index(one)]}" for one in blueprint.key)
        task = f"the task {key}" if key else "its one task"
        message = (
            f"{{{name}}} stands in {use.key} of rule {blueprint.rule.name}, but has {len(values):,} values "
        )
        hint = f"put {{{name}}} into the output to have a task for each, or take it out of {use.key}"
        self._findings.error("several-values", f"{message}in {task}: {shown}", use.place, hint)


def _uses(blueprint: Blueprint) -> Iterator[Use]:
    for key, pattern in (("log", blueprint.log), ("benchmark", blueprint.benchmark)):
        if isinstance(pattern, Pattern):
            yield from (Use(name, key, pattern.place) for name in pattern.names)
    yield from blueprint.texts.uses

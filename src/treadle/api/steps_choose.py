"""Targets of a stream of steps: which of those that arrive are wanted."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.base.errors import OptionError
from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic
from treadle.steps.spec import StepSpec

_CANDIDATES = 1000  # names that a mistyped one is compared with


class Chooser:
    """Takes steps by name, name with hash, or task id."""

    def __init__(self, targets: Iterable[str]) -> None:
        self._targets = frozenset(targets)
        self._met: set[str] = set()
        self._others: dict[str, None] = {}

    def wants(self, step: StepSpec) -> bool:
        """Whether the step is named; what is not is remembered, for the hint at a wrong name."""
        met = self._targets.intersection((step.name, step.name_with_hash, step.task_id))
        self._met.update(met)
        if not met and len(self._others) < _CANDIDATES:
            self._others[step.name] = None
        return bool(met)

    def unmet(self) -> list[OptionError]:
        """The error for names that no step has had, if there are any."""
        wrong = [
            Diagnostic(
                "unknown-target", f"{name} is none of the steps", hint=did_you_mean(name, self._others)
            )
            for name in sorted(self._targets - self._met)
        ]
        return [OptionError(wrong)] if wrong else []

"""Targets of a run of steps: which of the steps, and of those that they build on, are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from treadle.base.errors import OptionError
from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic
from treadle.steps.spec import StepSpec


class Chooser:
    """Finds steps by name, name with hash, or task id."""

    def __init__(self, targets: Iterable[str]) -> None:
        self._targets = tuple(dict.fromkeys(targets))
        self._met: set[str] = set()
        self._others: dict[str, None] = {}

    def chosen(self, steps: Sequence[StepSpec]) -> list[StepSpec]:
        """Those of the steps, and of all below them, that are named. Raises `OptionError` for other names."""
        found = [step for step in _all_below(steps) if self.wants(step)]
        wrong = self.unmet()
        if wrong:
            raise wrong[0]
        return found

    def wants(self, step: StepSpec) -> bool:
        """Whether the step is named; what is not is remembered, for the hint at a wrong name."""
        met = [name for name in (step.name, step.name_with_hash, step.task_id) if name in self._targets]
        self._met.update(met)
        if not met and len(self._others) < 1000:
            self._others[step.name] = None
        return bool(met)

    def unmet(self) -> list[OptionError]:
        """The error for names that no step has had, if there are any."""
        wrong = [
            Diagnostic(
                "unknown-target", f"{name} is none of the steps", hint=did_you_mean(name, self._others)
            )
            for name in self._targets
            if name not in self._met
        ]
        return [OptionError(wrong)] if wrong else []


def _all_below(steps: Iterable[StepSpec]) -> Iterator[StepSpec]:
    """The steps and all that they build on, each once; no recursion."""
    met: set[str] = set()
    stack = list(reversed(list(steps)))
    while stack:
        step = stack.pop()
        if step.identity not in met:
            met.add(step.identity)
            yield step
            stack.extend(reversed(step.deps))

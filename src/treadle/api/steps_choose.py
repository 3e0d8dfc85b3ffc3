"""Targets of a stream of steps: which of those that arrive are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from treadle.api.steps_grown import named_steps
from treadle.api.steps_pipe import Places
from treadle.base.errors import OptionError
from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic
from treadle.steps.paths import Places as Where
from treadle.steps.spec import StepSpec

_CANDIDATES = 1000  # names that a mistyped one is compared with


def chosen(steps: Iterable[Any], targets: Sequence[str], places: Places, where: str) -> Iterator[Any]:
    """The steps that the targets name among those that come, and what these have grown.

    `where` is the file, or what else has the steps. Raises `OptionError` at the end for all
    targets that named none.
    """
    unmet = dict.fromkeys(targets)
    others: dict[str, None] = {}
    for step in steps:
        if not isinstance(step, StepSpec):
            yield step  # who pulls refuses it
            continue
        paths = Where(places.prefix, places.workdir)
        names = named_steps([step], paths, places.workdir, unsafe_locks=places.unsafe_locks)
        for target in targets:
            if found := names.find(target):
                unmet.pop(target, None)
                yield from found
        if len(others) < _CANDIDATES:
            others[step.name] = None
    if unmet:
        raise OptionError(
            Diagnostic("unknown-target", f"{name} is no step of {where}", hint=did_you_mean(name, others))
            for name in unmet
        )

"""Names of steps that nobody knows yet: places for what may still grow, and the rules that wait for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from treadle.base.layout import GROWING
from treadle.plan.task import Draft
from treadle.rules.schema import StepPath


class Names(dict[str, StepPath]):
    """What `{step.NAME}` stands for, where steps will still grow: any other name is one of theirs."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name) or f"{GROWING}/{name}"


def awaiting(drafts: Sequence[Draft], growing: Sequence[str]) -> tuple[Draft, ...]:
    """The drafts; those that read what is still to grow await the steps that may grow it."""
    if not growing:
        return tuple(drafts)
    return tuple(
        replace(one, awaits=tuple(sorted({*one.awaits, *growing}))) if _waits(one.inputs) else one
        for one in drafts
    )


def _waits(paths: Iterable[str]) -> bool:
    return any(path.startswith(f"{GROWING}/") for path in paths)

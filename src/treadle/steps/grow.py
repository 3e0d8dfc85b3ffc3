"""Growth: the result of a step makes further steps, in the driver, whenever its artifact is there."""

from __future__ import annotations

from itertools import islice
from typing import Any

from treadle.base.errors import StepError
from treadle.steps.record import ArtifactRecord
from treadle.steps.spec import StepSpec

DEEPEST = 32  # steps that grew out of one another
MOST = 1_000_000  # steps that one step grows


def grown_by(spec: StepSpec, record: ArtifactRecord | None) -> list[StepSpec]:
    """The steps that `spec.grow` makes of the result in the record, in its order.

    Nothing for a step without `grow`, or without a record. Raises `StepError` when `grow` fails, gives what
    is no step, or gives more than a million.
    """
    if spec.grow is None or record is None:
        return []
    from treadle.steps.result import value_of

    value = value_of(record)
    try:
        given: Any = spec.grow(value)
        if isinstance(given, StepSpec):
            given = [given]
        found = [] if given is None else list(islice(given, MOST + 1))
    except Exception as error:
        raise StepError(
            f"grow of step {spec.name_with_hash} failed: {type(error).__name__}: {error}",
            hint="it is called with the result of the step, here, and gives the further steps",
            code="grow-failed",
        ) from error
    if len(found) > MOST:
        raise StepError(
            f"grow of step {spec.name_with_hash} gives more than {MOST:,} steps",
            hint="let it come to an end, or let each step do more",
            code="grow-endless",
        )
    return [_checked(one, number, spec) for number, one in enumerate(found)]


def see_depth(spec: StepSpec, depth: int) -> None:
    """See that a step has not grown too deep. Raises `StepError`."""
    if depth > DEEPEST:
        raise StepError(
            f"{spec.name_with_hash} is grown by a step that was grown, and so on, more than {DEEPEST} deep",
            hint="let grow come to an end: it gives None, or no steps, when there is nothing more to do",
            code="grow-too-deep",
        )


def _checked(one: Any, number: int, spec: StepSpec) -> StepSpec:
    if isinstance(one, StepSpec):
        return one
    raise StepError(
        f"grow of step {spec.name_with_hash}: [{number}]: a step is wanted, not {one!r}",
        hint="give StepSpec objects",
        code="grow-no-step",
    )

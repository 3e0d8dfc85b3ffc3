"""Growth: the result of a step makes further steps, in the driver, whenever its artifact is there."""

from __future__ import annotations

from typing import Any

from treadle.base.errors import StepError
from treadle.steps.record import ArtifactRecord
from treadle.steps.spec import StepSpec


def grown_by(spec: StepSpec, record: ArtifactRecord | None) -> list[StepSpec]:
    """The steps that `spec.grow` makes of the result in the record, in its order.

    Nothing for a step without `grow`, or without a record. Raises `StepError` when `grow` fails, or gives
    what is no step.
    """
    if spec.grow is None or record is None:
        return []
    from treadle.steps.result import value_of

    value = value_of(record)
    try:
        given: Any = spec.grow(value)
        found = [given] if isinstance(given, StepSpec) else list(given) if given is not None else []
    except Exception as error:
        raise StepError(
            f"grow of step {spec.name_with_hash} failed: {type(error).__name__}: {error}",
            hint="it is called with the result of the step, here, and gives the further steps",
            code="grow-failed",
        ) from error
    return [_checked(one, number, spec) for number, one in enumerate(found)]


def _checked(one: Any, number: int, spec: StepSpec) -> StepSpec:
    if isinstance(one, StepSpec):
        return one
    raise StepError(
        f"grow of step {spec.name_with_hash}: [{number}]: a step is wanted, not {one!r}",
        hint="give StepSpec objects",
        code="grow-no-step",
    )

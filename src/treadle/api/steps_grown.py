"""What has grown: the steps that steps with a complete artifact made, as their records tell it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from treadle.api.step_names import StepNames, closure
from treadle.steps.grow import grown_by, see_depth
from treadle.steps.paths import Places
from treadle.steps.record import ArtifactState
from treadle.steps.spec import StepSpec
from treadle.steps.stores import store_for


class Recorded(Struct, frozen=True):
    """`steps`: those given, all below them and all that has grown; `growing`: those of them that are not made
    yet, and will grow. `parents` are the task ids of the steps that grew others, by the id of what grew."""

    steps: list[StepSpec]
    growing: list[StepSpec]
    parents: dict[str, str] = {}


def recorded(steps: Sequence[StepSpec], places: Places, *, unsafe_locks: bool = False) -> Recorded:
    """Look at the artifacts of the steps that grow, and let these grow. Raises what `grown_by` raises."""
    every = {step.identity: step for step in closure(steps)}
    if not any(step.bears_growth for step in steps):
        return Recorded(list(every.values()), [])
    growing: list[StepSpec] = []
    parents: dict[str, str] = {}
    wave = list(every.values())
    depth = 0
    while wave:
        depth += 1
        found: dict[str, StepSpec] = {}
        for step in wave:
            if step.grow is None:
                continue
            path = places.of(step)
            seen = store_for(path, unsafe_locks=unsafe_locks).look(path, step.identity)
            if seen.state is ArtifactState.COMPLETE:
                for one in grown_by(step, seen.record):
                    if one.identity not in every:
                        see_depth(one, depth)
                        found.setdefault(one.identity, one)
                        parents.setdefault(one.task_id, step.task_id)
            else:
                growing.append(step)
        wave = [one for one in closure(list(found.values())) if one.identity not in every]
        every.update((one.identity, one) for one in wave)
    return Recorded(list(every.values()), growing, parents)


def named_steps(
    steps: Sequence[StepSpec], places: Places, workdir: str, *, unsafe_locks: bool = False
) -> StepNames:
    """The steps, and what has grown of them, by their names."""
    found = recorded(steps, places, unsafe_locks=unsafe_locks)
    return StepNames(found.steps, places, workdir, growing=found.growing, parents=found.parents)

"""The value of a step that was made, read where its artifact stands."""

from __future__ import annotations

import os
from typing import Any

from treadle.base.errors import StepError
from treadle.steps.paths import Places, default_prefix, is_url, join
from treadle.steps.record import ArtifactState
from treadle.steps.result import value_of
from treadle.steps.spec import Identified, StepSpec
from treadle.steps.stores import store_for


def load(step: Identified, kind: type[Any] | None, prefix: str = "") -> Any:
    """What the function of a step returned. Raises `StepError` where there is no complete artifact."""
    path = _path(step, prefix)
    seen = store_for(path).look(path, step.identity)
    served = seen.state is ArtifactState.COMPLETE or (
        seen.state is ArtifactState.OTHER and isinstance(step, StepSpec) and step.drift == "warn"
    )
    if served and seen.record is not None:
        return value_of(seen.record, kind)
    why = {
        ArtifactState.OTHER: "the artifact of another identity stands there",
        ArtifactState.TORN: seen.problem,
    }.get(seen.state, "")
    raise StepError(
        f"{step.name_with_hash} has no complete artifact at {path}" + (f": {why}" if why else ""),
        hint="run it first; what was made with another prefix, or in another work folder, is read with "
        'load(prefix="...")',
        code="not-made",
    )


def _path(step: Identified, prefix: str) -> str:
    workdir = os.getcwd()
    if isinstance(step, StepSpec):
        return Places(prefix or default_prefix(workdir), workdir).of(step)
    path = str(step.output_path)
    if prefix and path.endswith(f"/{step.name_with_hash}"):  # else its place was chosen by a person
        path = join(prefix, step.name_with_hash)
    return path if is_url(path) else os.path.abspath(path)

"""The path that `{step.NAME}` stands for, or what is wrong with the name."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.base.names import did_you_mean
from treadle.rules.schema import StepPath

Wrong = tuple[str, str, str]  # code, message, hint


def step_path(name: str, source: str, steps: Mapping[str, StepPath]) -> tuple[str, Wrong | None]:
    """The path of the artifact of step `name`; `source` is the placeholder as the author wrote it."""
    found = steps.get(name)
    if found is None:
        hint = did_you_mean(name, steps) or (
            "" if steps else 'name its file: [[steps]] module = "pipeline.py"'
        )
        hint = hint or f"there are: {', '.join(sorted(steps)[:8])}"
        return "", ("unknown-step", f"{source}: there is no step '{name}'", hint)
    if isinstance(found, tuple):
        names = ", ".join(f"{{step.{one}}}" for one in found)
        return "", (
            "several-steps",
            f"{source}: {len(found)} steps are named '{name}'",
            f"write one of {names}",
        )
    if "://" in found:
        hint = "give the step an output path on a file system that the tasks see"
        return "", (
            "step-not-local",
            f"{source}: the artifact stands at {found}, which no rule can read",
            hint,
        )
    return found, None

"""Which steps are running around us: a function that runs its own step would wait for itself."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar

from treadle.base.errors import StepError

# Identities, outermost first. A thread that the function starts has them where it was given the context.
running: ContextVar[tuple[str, ...]] = ContextVar("treadle_running", default=())


def refuse_own(steps: Iterable[tuple[str, str]]) -> None:
    """Raise `StepError` when a step (name and identity) is to run in a run that it started itself."""
    around = running.get()
    if not around:
        return
    for name, identity in steps:
        if identity in around:
            raise StepError(
                f"step '{name}' is running, and a run that it began is to make it: it would wait for itself",
                hint="what a step needs belongs into its deps; a run inside of it must not ask for it",
                code="runs-itself",
            )

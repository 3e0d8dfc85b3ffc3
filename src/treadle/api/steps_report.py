"""What comes of a run of steps: a report with a line for each, and the error that carries every failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from treadle.base.errors import TreadleError
from treadle.base.place import Diagnostic
from treadle.decide.reason import AnyReason

if TYPE_CHECKING:
    from treadle.steps.spec import StepSpec

_NAMED = 5  # failed steps that the message names


class StepReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one step stands after a run, or before one.

    `step` is its name with hash. `state` is an end (`succeeded`, `up_to_date`, `unchanged`, `failed`,
    `blocked`, `cancelled`), in a dry run `will_run` of what would run. `reason` says in a word why it ran, or
    what is to be known of one that did not (`never_ran`, `forced`, `mutable`, `code_changed`); `taken`: it
    waited for another run and came to what that made. `reasons` are the values behind it. `seconds` of wall
    time are those of the last attempt, `error` is a line of text.
    """

    step: str
    state: str
    reason: str = ""
    path: str = ""
    attempts: int = 0
    seconds: float | None = None
    error: str = ""
    reasons: tuple[AnyReason, ...] = ()


class RunReport(Struct, frozen=True, kw_only=True, dict=True):
    """What came of a run of steps.

    `steps` are in plan order; of a stream only those that failed or were blocked, while `counts` (of steps by
    state) tells of all. `run` is the id of the run (empty: nothing had to run). `truncated`: a dry run pulled
    only the first 10,000 of more steps. `warnings` tell what was served though it changed.
    """

    steps: tuple[StepReport, ...] = ()
    counts: Mapping[str, int] = {}
    run: str = ""
    dry_run: bool = False
    streamed: bool = False
    truncated: bool = False
    warnings: tuple[Diagnostic, ...] = ()

    def __getitem__(self, step: StepSpec | str) -> StepReport:
        """The line of a step, by the step itself, its name with hash, or its name where that is one step's.

        Raises KeyError when it is not in the report.
        """
        name = step if isinstance(step, str) else step.name_with_hash
        found = self._lines.get(name)
        if found is None:
            several = name in self._lines
            raise KeyError(f"several steps are named {name}" if several else f"no step {name} in the report")
        return found

    @property
    def _lines(self) -> dict[str, StepReport | None]:
        """The lines by name with hash, and by name (None: several steps have it)."""
        known: dict[str, StepReport | None] | None = self.__dict__.get("lines")
        if known is None:
            known = self.__dict__["lines"] = {}
            for line in self.steps:
                name = line.step.rpartition("_")[0]
                known[name] = None if name in known else line
            known.update((line.step, line) for line in self.steps)
        return known

    def __iter__(self) -> Iterator[StepReport]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def of(self, *states: str) -> tuple[StepReport, ...]:
        """The lines of the steps that are in one of these states."""
        return tuple([one for one in self.steps if one.state in states])

    @property
    def failed(self) -> tuple[StepReport, ...]:
        return self.of("failed")

    @property
    def ok(self) -> bool:
        """Nothing failed, and nothing was kept from running."""
        return not any(self.counts.get(state) for state in ("failed", "blocked", "cancelled"))

    def __str__(self) -> str:
        told = ", ".join(
            f"{count} {state.replace('_', ' ')}" for state, count in self.counts.items() if count
        )
        more = " (the first 10,000; there are more)" if self.truncated else ""
        return f"{told or 'no steps'}{more}"


class StepWarning(UserWarning):
    """A step is served though it changed: other code made it, or another identity stands at its path."""


class AttemptError(TreadleError):
    """A step failed without an exception of its own: its process died, took too long, never started."""

    exit_code = 1
    code = "step-failed"


class StepRunError(ExceptionGroup):
    """Steps failed: every root failure as it was raised, with its traceback.

    `report` is the whole `RunReport`, `blocked` the names (with hash) of the steps that could not run.
    """

    report: RunReport
    blocked: tuple[str, ...]

    def __new__(cls, message: str, errors: Sequence[Exception], report: RunReport) -> Self:
        made = super().__new__(cls, message, errors)
        made.report = report
        made.blocked = tuple([one.step for one in report.of("blocked")])
        return made

    def __init__(self, message: str, errors: Sequence[Exception], report: RunReport) -> None:
        super().__init__(message, errors)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.exceptions, self.report)

    def derive(self, errors: Sequence[Exception], /) -> Self:  # type: ignore[override]
        return type(self)(self.message, errors, self.report)


def failure_message(report: RunReport, others: Sequence[Exception] = ()) -> str:
    """`2 steps failed, 5 blocked: train_0a1b2c, score_3d4e5f`; `others` are errors that no step raised."""
    failed = [one.step for one in report.failed]
    count, blocked = len(failed), report.counts.get("blocked", 0)
    parts = []
    if count:
        names = ", ".join(failed[:_NAMED]) + (", ..." if count > _NAMED else "")
        more = f", {blocked} blocked" if blocked else ""
        parts.append(f"{count} {'step' if count == 1 else 'steps'} failed{more}: {names}")
    parts += [f"{type(one).__name__}: {one}" for one in others[:_NAMED]]
    return "; ".join(parts)

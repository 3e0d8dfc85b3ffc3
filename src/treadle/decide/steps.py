"""What the artifact of each step says: it stands, it is to be made, or the run is refused.

A step without inputs, and with none below it, is decided by its artifact alone: nothing that runs upstream
touches it, for its identity says what it was built on. One with inputs is a rule's task on top of that: its
evidence counts as well, and what runs upstream of it.
"""

from __future__ import annotations

import os

from treadle.base.errors import StepError
from treadle.base.layout import ArtifactPlaces
from treadle.base.place import Diagnostic, Severity
from treadle.decide.drift import told
from treadle.decide.options import Options
from treadle.decide.reason import (
    Answer,
    AnyReason,
    ArtifactMissing,
    ArtifactTorn,
    FailedBefore,
    LastFailed,
    Mutable,
    NeverRan,
    Verdict,
)
from treadle.plan.task import Call, ScheduledTask
from treadle.records.event import EndReason
from treadle.steps.record import ArtifactRecord, ArtifactState, ArtifactStatus, Seen, Standing

_NOTHING = Seen(ArtifactState.ABSENT)
_NEVER = (NeverRan(),)
_MUTABLE = Mutable()
_NAMED = 5  # steps that a warning names

STANDS = Answer(Verdict.UP_TO_DATE)
DRIFTED = Answer(Verdict.UP_TO_DATE, note="drifted")
CODE_CHANGED = Answer(Verdict.UP_TO_DATE, note="code_changed")


class Artifacts:
    """One look after the other at what stands there for the steps of a plan."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._refused: list[Diagnostic] = []
        self._recoded: list[ScheduledTask] = []
        self._drifted: list[Diagnostic] = []

    def answer(self, task: ScheduledTask, call: Call, seen: Seen | None, known: bool) -> Answer:
        """What the artifact alone says; `known`: evidence here says that the step succeeded once."""
        seen = seen or _NOTHING
        match seen.state:
            case ArtifactState.COMPLETE if seen.record is not None:
                return (
                    Answer(Verdict.WILL_RUN, (_MUTABLE,)) if call.mutable else self._by_code(task, call, seen)
                )
            case ArtifactState.OTHER if seen.record is not None:
                return self._drift(task, call, seen.record)
        reasons = self._reasons(call, seen, known)
        if not self._options.rerun_failed and _failed(seen.status):
            return Answer(Verdict.SKIPPED, (self._failed_before(call, seen.status),))
        return Answer(Verdict.WILL_RUN, (_MUTABLE, *reasons) if call.mutable else reasons)

    def stop(self) -> None:
        """Raise `StepError` with everything that was refused."""
        if self._refused:
            raise StepError(self._refused)

    def notes(self) -> tuple[Diagnostic, ...]:
        """Warnings about what is served though it changed."""
        if not self._recoded:
            return tuple(self._drifted)
        names = [task.id for task in self._recoded[:_NAMED]]
        more = len(self._recoded) - len(names)
        found = Diagnostic(
            "code-changed",
            f"served as other code made it: {', '.join(names)}" + (f" and {more} more" if more else ""),
            self._recoded[0].place,
            "the function changed since; to make it again change the step's version, or run with --force",
            Severity.WARNING,
        )
        return (*self._drifted, found)

    def _reasons(self, call: Call, seen: Seen, known: bool) -> tuple[AnyReason, ...]:
        if seen.state is ArtifactState.TORN:
            return (ArtifactTorn(problem=seen.problem),)
        failed = _failure(seen.status) if seen.status is not None else None
        if failed is not None:
            return (failed,)
        return (ArtifactMissing(),) if known else _NEVER

    def _by_code(self, task: ScheduledTask, call: Call, seen: Seen) -> Answer:
        """The artifact is complete: does the code that made it still stand?"""
        record = seen.record
        assert record is not None
        if not (call.code and record.code) or record.code == call.code or call.code_policy == "ignore":
            return STANDS
        if self._is_forced(task):
            return STANDS  # it is made again anyway
        if call.code_policy == "warn":
            self._recoded.append(task)
            return CODE_CHANGED
        self._refused.append(
            Diagnostic(
                "code-changed",
                f"the artifact of {task.id} was made by other code ({call.path})",
                task.place,
                "to make it again change the version or run with --force; to serve it: code_policy='warn'",
            )
        )
        return STANDS

    def _drift(self, task: ScheduledTask, call: Call, record: ArtifactRecord) -> Answer:
        """Another identity stands at the path."""
        message = f"{call.path} holds the artifact of another step than {task.id}: {told(record, call)}"
        if call.drift == "warn":
            hint = "the old one is served; give the step another output path to make it anew"
            self._drifted.append(Diagnostic("artifact-drift", message, task.place, hint, Severity.WARNING))
            return DRIFTED
        hint = (
            "give the step another output path, remove the old artifact, or serve the old one: drift='warn'"
        )
        self._refused.append(Diagnostic("artifact-drift", message, task.place, hint))
        return STANDS

    def _failed_before(self, call: Call, status: ArtifactStatus | None) -> FailedBefore:
        path = call.path if "://" in call.path else os.path.join(self._options.workdir, call.path)
        return FailedBefore(record=ArtifactPlaces(path).status, error=status.error if status else "")

    def _is_forced(self, task: ScheduledTask) -> bool:
        return self._options.force_all or task.id in self._options.forced


def _failed(status: ArtifactStatus | None) -> bool:
    return status is not None and status.state is Standing.FAILED


def _failure(status: ArtifactStatus) -> LastFailed | None:
    """How the last attempt ended, when it did not end well."""
    match status.state:
        case Standing.FAILED:
            return LastFailed(error=status.error)
        case Standing.INTERRUPTED:
            return LastFailed(how=EndReason.INTERRUPTED, error=status.error)
    return None

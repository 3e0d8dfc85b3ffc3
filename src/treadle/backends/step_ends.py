"""How the attempt at a step ended, where its function did not tell: why, in words, and what is left of it."""

from __future__ import annotations

import os
from contextlib import suppress

from treadle.base.errors import DiskError, StepError
from treadle.base.layout import ArtifactPlaces
from treadle.engine.backend import Submission
from treadle.records.event import EndReason, Outcome
from treadle.steps.book import Entry, StepBook
from treadle.steps.paths import is_url
from treadle.steps.record import ArtifactRecord, ArtifactState, ArtifactStatus, Standing
from treadle.steps.store import ArtifactStore

_TAIL_LINES, _TAIL_BYTES = 20, 4000


def untold_error(submission: Submission, outcome: Outcome) -> StepError:
    """The error of a step whose worker did not tell one: how it ended, and what it wrote last."""
    call = submission.task.call
    name = call.step if call is not None else submission.task.id
    ended = outcome.message or f"exit code {outcome.exit_code}"
    tail = log_tail(submission.log)
    return StepError(
        f"step '{name}' failed ({outcome.reason.value}): {ended}",
        hint=f"its log ends with:\n{tail}" if tail else f"it wrote nothing to its log, {submission.log}",
        code="step-ended",
    )


def warn_of_lost(record: ArtifactRecord, fn: object) -> None:
    """Say, at the function's own line, that what it returned was not kept, having made something, too."""
    import warnings

    lost = record.result.lost if record.result is not None else ""
    message = (
        f"step '{record.name}': what it returned is not kept ({lost}), only what it made at its path; return "
        "what JSON has, or nothing"
    )
    code = getattr(getattr(fn, "__wrapped__", fn), "__code__", None)
    where = (code.co_filename, code.co_firstlineno) if code is not None else ("<step>", 1)
    with suppress(UserWarning):  # made an error by the filters of a person: the loop goes on
        warnings.warn_explicit(message, UserWarning, *where)


def log_tail(log: str) -> str:
    """The last lines of a log (empty: there are none)."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_TAIL_LINES:])


def published_by(store: ArtifactStore, entry: Entry, attempt: str) -> ArtifactRecord | None:
    """The record of an attempt that was killed after it had published, as its last deed."""
    with suppress(DiskError):
        seen = store.look(entry.path, entry.spec.identity, mend=True)
        if seen.state is ArtifactState.COMPLETE and seen.record is not None:
            return seen.record if seen.record.provenance.attempt == attempt else None
    return None


def maker_of(book: StepBook, task: str, attempt: str) -> str:
    """Who made the artifact of a step, where that was not this attempt; else empty."""
    record = book.records.get(task)
    if record is None or record.provenance.attempt == attempt:
        return ""
    made = record.provenance
    return f"{made.user}@{made.host}, {made.attempt}"


def clear_after(store: ArtifactStore, entry: Entry, attempt: str, outcome: Outcome) -> None:
    """Do what a killed worker could not: remove what it made, say how it ended."""
    ours = outcome.reason is EndReason.CANCELLED
    with suppress(DiskError):
        if not entry.spec.resumable and not is_url(entry.path):  # what is staged goes with the process
            store.discard(ArtifactPlaces(entry.path).work(attempt))
        holder = store.holder(entry.path)
        if holder is None or holder.attempt == attempt:  # else someone is at it already
            store.tell(
                entry.path,
                ArtifactStatus(
                    identity=entry.spec.identity,
                    state=Standing.INTERRUPTED if ours else Standing.FAILED,
                    attempt=attempt,
                    started=outcome.start or 0.0,
                    ended=outcome.end or 0.0,
                    error=outcome.message,
                ),
            )

"""`JobRecord`: one attempt as the journal tells it, the same on every backend."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from treadle.base.layout import RunFolder
from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    AttemptSubmitted,
    End,
    EndReason,
    Event,
    FileRecord,
    Outcome,
    TaskSettled,
)


class JobRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, eq=False):
    """One attempt at a task: where it ran, how it ended, what it took.

    `state` is `submitted`, `running`, or an end: `succeeded`, `failed`, `cancelled`. Times are seconds since
    the epoch (None: unknown), `cpu` seconds, `memory` the peak in bytes. `inputs` and `outputs` are those of
    the evidence, of a success only. Two are equal when the same came of the same work: ids, times, host,
    usage, log and backend do not count.
    """

    task: str
    attempt: int
    backend: str = ""
    job: str = ""
    state: str = "submitted"
    reason: EndReason | None = None
    exit_code: int | None = None
    signal: int = 0
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    host: str = ""
    cpu: float | None = None
    memory: int | None = None
    log: str = ""
    inputs: tuple[FileRecord, ...] = ()
    outputs: tuple[FileRecord, ...] = ()

    def __eq__(self, other: object) -> bool:
        return self._what() == other._what() if isinstance(other, JobRecord) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._what())

    def _what(self) -> tuple[object, ...]:
        contents = [
            [(file.path, file.size, file.digest) for file in some] for some in (self.inputs, self.outputs)
        ]
        files = tuple(map(tuple, contents))
        return (self.task, self.attempt, self.state, self.reason, self.exit_code, self.signal, files)


def jobs_of(events: Iterable[Event], folder: RunFolder | None = None) -> list[JobRecord]:
    """The attempts of a journal, in the order in which they were submitted; `folder` tells of their logs."""
    submitted: dict[int, AttemptSubmitted] = {}
    started: dict[int, AttemptStarted] = {}
    ended: dict[int, AttemptEnded | TaskSettled] = {}
    for event in events:
        if isinstance(event, AttemptSubmitted):
            submitted[event.n] = event
        elif isinstance(event, AttemptStarted):
            started[event.n] = event
        elif isinstance(event, AttemptEnded | TaskSettled) and event.n:
            ended[event.n] = event
    return [_job(one, started.get(n), ended.get(n), folder) for n, one in submitted.items()]


def _job(
    intent: AttemptSubmitted,
    start: AttemptStarted | None,
    end: AttemptEnded | TaskSettled | None,
    folder: RunFolder | None,
) -> JobRecord:
    outcome = (end.outcome if end is not None else None) or Outcome()
    evidence = end.evidence if isinstance(end, TaskSettled) else None
    return JobRecord(
        task=intent.task,
        attempt=intent.attempt,
        backend=intent.backend,
        job=start.job if start is not None else "",
        state=_state(start, end),
        reason=outcome.reason if end is not None else None,
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        submitted=intent.time,
        started=outcome.start or (start.time if start is not None else None),
        ended=outcome.end or (end.time if end is not None else None),
        host=outcome.host,
        cpu=outcome.usage.cpu,
        memory=outcome.usage.memory,
        log=folder.attempt_log(intent.n) if folder is not None else "",
        inputs=evidence.inputs if evidence is not None else (),
        outputs=evidence.outputs if evidence is not None else (),
    )


def _state(start: AttemptStarted | None, end: AttemptEnded | TaskSettled | None) -> str:
    if isinstance(end, TaskSettled):
        return end.state.value
    if end is not None:
        return End.FAILED.value
    return "submitted" if start is None else "running"

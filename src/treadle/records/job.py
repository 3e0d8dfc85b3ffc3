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
    Evidence,
    EvidenceWithdrawn,
    FileRecord,
    JobSeen,
    Noticed,
    Outcome,
    OutcomeConfirmed,
    TaskSettled,
)


class JobRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, eq=False):
    """One attempt at a task: where it ran, how it ended, what it took.

    `state` is `submitted`, `running`, or an end: `succeeded`, `failed`, `cancelled`. Times are seconds since
    the epoch (None: unknown), `cpu` seconds, `memory` the peak in bytes. `inputs` and `outputs` are those of
    the evidence, of a success only, and so are `checksums`, where the rule asks for them. Two are equal when
    the same came of the same work: ids, times, host, usage, log and backend do not count.
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
    checksums: tuple[tuple[str, str], ...] = ()

    def __eq__(self, other: object) -> bool:
        return self._what() == other._what() if isinstance(other, JobRecord) else NotImplemented

    def __ne__(self, other: object) -> bool:  # a Struct has one of its own, which does not ask `__eq__`
        return not self == other

    def __hash__(self) -> int:
        return hash(self._what())

    def _what(self) -> tuple[object, ...]:
        """A digest says all of a content; an artifact's record differs in size with the name of its host."""
        contents = [
            [(file.path, file.digest or file.size) for file in some] for some in (self.inputs, self.outputs)
        ]
        files = tuple(map(tuple, contents))
        return (self.task, self.attempt, self.state, self.reason, self.exit_code, self.signal, files)


def jobs_of(events: Iterable[Event], folder: RunFolder | None = None) -> list[JobRecord]:
    """The attempts of a journal, in the order in which they were submitted; `folder` tells of their logs."""
    told: dict[tuple[str, int], _Told] = {}
    for event in events:
        if isinstance(event, AttemptSubmitted):
            told[event.run, event.n] = _Told(event)
        elif isinstance(
            event,
            AttemptStarted | AttemptEnded | TaskSettled | JobSeen | EvidenceWithdrawn | OutcomeConfirmed,
        ) and (one := told.get((event.run, event.n))):
            one.hear(event)
        elif isinstance(event, Noticed) and event.code == "lease_held":
            for one in told.values():
                one.waits(event.task)
    return [_job(one, folder) for one in told.values()]


class _Told:
    """What a journal tells of one attempt."""

    def __init__(self, intent: AttemptSubmitted) -> None:
        self.intent = intent
        self.job = ""
        self.begun: float | None = None
        self.ended: float | None = None
        self.state = "submitted"
        self.outcome: Outcome | None = None
        self.evidence: Evidence | None = None

    def hear(self, event: Event) -> None:
        """Take in the next event of it."""
        match event:
            case AttemptStarted():
                self.job = event.job
                if not event.waiting:
                    self._begins(event.time)
            case JobSeen():
                self.job = event.job or self.job
                if event.state == "running":
                    self._begins(event.time)
            case AttemptEnded(outcome=outcome):
                self._ends(event.time, End.FAILED, outcome)
            case TaskSettled():
                self._ends(event.time, event.state, event.outcome or Outcome())
                self.evidence = event.evidence
            case EvidenceWithdrawn(outcome=outcome):
                self._ends(event.time, End.FAILED, outcome)
                self.evidence = None
            case OutcomeConfirmed(outcome=outcome):
                self.outcome = outcome

    def waits(self, task: str) -> None:
        """Someone else is at that task: an attempt at it has not begun, after all."""
        if self.state == "running" and self.intent.task == task:
            self.state, self.begun = "submitted", None

    def _begins(self, at: float) -> None:
        self.begun = at if self.begun is None else self.begun
        self.state = "running"

    def _ends(self, at: float, state: End, outcome: Outcome) -> None:
        self.ended, self.state, self.outcome = at, state.value, outcome


def _job(told: _Told, folder: RunFolder | None) -> JobRecord:
    intent, outcome, evidence = told.intent, told.outcome or Outcome(), told.evidence
    return JobRecord(
        task=intent.task,
        attempt=intent.attempt,
        backend=intent.backend,
        job=told.job,
        state=told.state,
        reason=outcome.reason if told.outcome is not None else None,
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        submitted=intent.time,
        started=outcome.start or told.begun,
        ended=outcome.end or told.ended,
        host=outcome.host,
        cpu=outcome.usage.cpu,
        memory=outcome.usage.memory,
        log=_log(folder, intent) if folder is not None else "",
        inputs=evidence.inputs if evidence is not None else (),
        outputs=evidence.outputs if evidence is not None else (),
        checksums=evidence.checksums if evidence is not None else (),
    )


def _log(folder: RunFolder, intent: AttemptSubmitted) -> str:
    """Where its log is: in the folder of the run that submitted it."""
    return (folder.beside(intent.run) if intent.run else folder).attempt_log(intent.n)

"""Attempts that were submitted and not seen to end: interrupted with their driver, or jobs that outlive it.

An attempt whose intent tells the identity of its command is one of a backend whose jobs go on without us. It
is in flight until some journal tells its end, or that another run has taken it over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.plan.task import Resources
from treadle.records.event import (
    ENDING,
    AttemptEnded,
    AttemptHandedOver,
    AttemptStarted,
    AttemptSubmitted,
    Event,
    FileRecord,
    JobSeen,
    RunDetached,
    RunStarted,
    TaskSettled,
)
from treadle.records.line import first_of, key_of, open_attempts, outliving


class Interrupted(Struct, frozen=True, kw_only=True):
    """An attempt whose task never settled in the journal of run `holder`, by a run that is gone.

    `run` and `n` are where it was submitted first: its log and its job's folder are there. `job` and
    `started` as the backend told them (empty, 0: killed before it could), on `host` since `boot`. `ended`:
    the attempt itself is known to have ended and only waited for a retry. `outputs` are its declared outputs,
    `artifact` as in the intent, `before` what stood there when it began; `resumable`: they are kept.
    `identity` is that of its command where its job outlives the driver (else empty), `since` when it was
    submitted (seconds since the epoch), `grown` what it asked for where that is not what its task does,
    `workflow` the name of its plan. `doomed`: a driver that gave its backend up asked for its end, which may
    not have been heard.
    """

    run: str
    task: str
    key: str
    attempt: int
    n: int
    name: str
    backend: str
    job: str = ""
    started: int = 0
    host: str = ""
    boot: str = ""
    outputs: tuple[str, ...] = ()
    artifact: str = ""
    before: tuple[FileRecord, ...] = ()
    resumable: bool = False
    ended: bool = False
    holder: str = ""
    identity: str = ""
    since: float = 0.0
    grown: Resources | None = None
    workflow: str = ""
    doomed: bool = False


class Flights:
    """Jobs in flight by the evidence key of their task, folded from journals, the oldest first."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[str, Interrupted] = {}

    def add(self, events: Sequence[Event]) -> None:
        """Take in a journal: what it submitted or took over, and what it saw end."""
        if not events:
            return
        first = first_of(events)
        keys: dict[tuple[str, int], str] = {}
        for event in events:
            if isinstance(event, AttemptSubmitted):
                if event.identity:
                    one = _of(event, first)
                    before = self.by_key.get(one.key)
                    if before is not None and before.doomed and before.name == one.name:
                        one = replace(one, doomed=True)
                    keys[event.run, event.n] = one.key
                    self.by_key[one.key] = one
                elif self.by_key:
                    self.by_key.pop(key_of(event, first), None)
            elif self.by_key and isinstance(
                event, AttemptStarted | JobSeen | AttemptEnded | AttemptHandedOver | TaskSettled
            ):
                self._hear(keys.get((event.run, event.n), ""), event)

    def _hear(
        self, key: str, event: AttemptStarted | JobSeen | AttemptEnded | AttemptHandedOver | TaskSettled
    ) -> None:
        flight = self.by_key.get(key)
        if flight is None or flight.n != event.n:
            return
        if not isinstance(event, AttemptStarted | JobSeen):
            del self.by_key[key]
        else:
            doomed = flight.doomed or (isinstance(event, JobSeen) and event.state == ENDING)
            self.by_key[key] = replace(flight, job=event.job or flight.job, doomed=doomed)

    def of(self, holder: str) -> list[Interrupted]:
        """Those that this run's journal is the last to tell of."""
        return [one for one in self.by_key.values() if one.holder == holder]


def interrupted(events: Sequence[Event]) -> tuple[Interrupted, ...]:
    """The attempts of a journal whose tasks never settled and which ended with their driver, in the order in
    which they were submitted."""
    if not events:
        return ()
    first = first_of(events)
    live = outliving(events)
    started: dict[int, AttemptStarted] = {}
    ended: set[int] = set()
    for event in events:
        if isinstance(event, AttemptStarted):
            started[event.n] = event
        elif isinstance(event, AttemptEnded):
            ended.add(event.n)
    return tuple(
        replace(
            _of(one, first),
            job=started[one.n].job if one.n in started else "",
            started=started[one.n].started if one.n in started else 0,
            ended=one.n in ended,
        )
        for one in sorted(open_attempts(events).values(), key=lambda one: one.n)
        if one.task not in live
    )


def is_left(events: Sequence[Event]) -> bool:
    """Whether a journal stays open for its jobs in flight alone: all else that it tells is copied."""
    return bool(events) and isinstance(last := events[-1], RunDetached) and last.copied


def names(flights: Iterable[Interrupted]) -> list[str]:
    """What their jobs are called."""
    return [one.name for one in flights]


def _of(one: AttemptSubmitted, first: RunStarted) -> Interrupted:
    return Interrupted(
        run=one.run or first.run,
        task=one.task,
        key=key_of(one, first),
        attempt=one.attempt,
        n=one.n,
        name=one.name,
        backend=one.backend,
        host=first.host,
        boot=first.boot,
        outputs=one.outputs,
        artifact=one.artifact,
        before=one.before,
        resumable=one.resumable,
        holder=first.run,
        identity=one.identity,
        since=one.time,
        grown=one.grown,
        workflow=first.workflow,
    )

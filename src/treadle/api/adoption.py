"""Jobs of earlier runs that still live: which of them a run takes over, ends, or leaves alone."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from treadle.api.cluster import local_rules
from treadle.api.pipe import View
from treadle.api.session import Session
from treadle.base.errors import LockError
from treadle.base.place import Diagnostic, Severity
from treadle.decide.reason import Decision, Verdict
from treadle.engine.news import InFlight
from treadle.plan.task import ScheduledPlan, ScheduledTask, Where
from treadle.records.event import (
    AttemptSubmitted,
    End,
    EndReason,
    Event,
    Noticed,
    Outcome,
    TaskSettled,
    key_of_task,
)
from treadle.records.flight import Interrupted
from treadle.records.past import Past
from treadle.records.recover import hand_over

ELSEWHERE = "in-flight-elsewhere"


class Taken(Struct, frozen=True):
    """What becomes of the jobs in flight: by task those that the run takes over, or ends before their task
    runs; `flights` are the same. `watched` are of no task that was asked for: nobody touches them."""

    jobs: dict[str, InFlight] = {}
    flights: tuple[Interrupted, ...] = ()
    watched: tuple[Interrupted, ...] = ()

    @property
    def after(self) -> int:
        """The largest number of an attempt among them."""
        return max((one.n for one in (*self.flights, *self.watched)), default=0)


def taken(plan: ScheduledPlan, decision: Decision, past: Past) -> Taken:
    """What becomes of the jobs in flight, by what was decided."""
    left = dict(past.flights)
    if not left:
        return Taken()
    jobs: dict[str, InFlight] = {}
    flights: list[Interrupted] = []
    for task, answer in decision.answers.items():
        if answer.verdict is Verdict.IN_FLIGHT or answer.verdict is Verdict.WILL_RUN:
            flight = left.pop(key_of_task(plan.name, plan.tasks[task]), None)
            if flight is not None:
                jobs[task] = _in_flight(flight, task, anew=answer.verdict is Verdict.WILL_RUN)
                flights.append(flight)
    return Taken(jobs, tuple(flights), tuple(left.values()))


def _in_flight(flight: Interrupted, task: str, *, anew: bool) -> InFlight:
    intent = AttemptSubmitted(
        time=flight.since,
        task=task,
        attempt=flight.attempt,
        n=flight.n,
        name=flight.name,
        backend=flight.backend,
        outputs=flight.outputs,
        artifact=flight.artifact,
        before=flight.before,
        resumable=flight.resumable,
        identity=flight.identity,
        grown=flight.grown,
        run=flight.run,
    )
    return InFlight(flight.attempt, flight.n, flight.job, intent, anew, flight.doomed)


def watched_notes(found: Taken) -> list[Event]:
    """That there are jobs which are left alone: once for each run that they are of, with one of its tasks."""
    groups: dict[tuple[str, str], list[Interrupted]] = {}
    for one in found.watched:
        groups.setdefault((one.run, one.backend), []).append(one)
    return [
        Noticed(
            time=time.time(),
            code="left_in_flight",
            task=some[0].task,
            values={"run": run, "backend": backend, "tasks": str(len(some))},
        )
        for (run, backend), some in groups.items()
    ]


def elsewhere(view: View, past: Past) -> list[Interrupted]:
    """Jobs in flight on another backend than the one that their task would run on now."""
    if not past.flights:
        return []
    found = taken(view.plan, view.decision, past)
    backends = {task: _backend(view, view.plan.tasks[task]) for task in found.jobs}
    return [
        flight
        for (task, _), flight in zip(found.jobs.items(), found.flights, strict=True)
        if flight.backend != backends[task]
    ]


def refuse_elsewhere(flights: Sequence[Interrupted]) -> None:
    """Raise `LockError` when there are any: they can neither be taken over nor ended from here."""
    if flights:
        message, hint = _told(flights)
        raise LockError(message, hint=hint, code=ELSEWHERE)


def foreseen_elsewhere(view: View) -> tuple[Diagnostic, ...]:
    """The warning of a preview that a run will refuse them."""
    lost = elsewhere(view, view.past)
    if not lost:
        return ()
    message, hint = _told(lost)
    return (Diagnostic(ELSEWHERE, f"a run is refused: {message}", hint=hint, severity=Severity.WARNING),)


def _told(flights: Sequence[Interrupted]) -> tuple[str, str]:
    first = flights[0]
    more = f" and {len(flights) - 1} more" if len(flights) > 1 else ""
    job = f" (job {first.job})" if first.job else ""
    hint = (
        f"run with --backend {first.backend} or its profile, which takes such jobs over; or, if you are "
        "sure that none of them lives: --assume-dead"
    )
    return f"{first.task}{more} of run {first.run} may still be at work on {first.backend}{job}", hint


def give_up(session: Session, flights: Sequence[Interrupted], why: EndReason = EndReason.INTERRUPTED) -> None:
    """Count these jobs as interrupted: the user is sure that they are dead. Raises `DiskError`."""
    session.note(
        TaskSettled(
            time=time.time(),
            task=one.task,
            key=one.key,
            state=End.CANCELLED,
            attempt=one.attempt,
            n=one.n,
            outcome=Outcome(reason=why),
            run=one.run,
        )
        for one in flights
    )
    hand_over(session.state, flights, "", mask=session.mask)
    gone = {one.key for one in flights}
    session.past.flights = {key: one for key, one in session.past.flights.items() if key not in gone}


def _backend(view: View, task: ScheduledTask) -> str:
    """The name of the backend that a task runs on."""
    cluster, here = view.workflow.cluster, local_rules(view.workflow)
    if task.call is not None:
        if task.call.where is not Where.CLIENT:
            return "local"
        if cluster is not None and cluster.is_scheduler:
            return cluster.backend
        from treadle.backends.clients import current_client

        return current_client().name
    return "local" if cluster is None or here is None or task.rule in here else cluster.backend

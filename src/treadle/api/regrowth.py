"""The larger plans of a run in which checkpoint tasks find work: what the engine asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from treadle.api.cluster import beyond_backend
from treadle.api.reentry import Base, found_by, grown, read_found, settled
from treadle.api.view import Planned, View, decided
from treadle.base.errors import DiskError, PlanError, UserError, WorkflowError
from treadle.engine.discoveries import Growth, Reached
from treadle.plan.discovered import Discovered, Found
from treadle.plan.show import plan_head
from treadle.plan.task import ScheduledPlan
from treadle.records.event import (
    AttemptEnded,
    End,
    Event,
    Evidence,
    EvidenceWithdrawn,
    TaskSettled,
    key_of_task,
)
from treadle.records.line import Line, line_of
from treadle.records.past import Past

# Told of each further plan: its head, with its round, and the tasks of it that are new or others.
Note = Callable[[dict[str, Any], ScheduledPlan], None]


class Regrowth:
    """One for a run. `view` is what it began with, `past` what was recorded before it, `note` hears of each
    plan."""

    def __init__(self, view: View, run: str, note: Note) -> None:
        assert view.planned is not None
        base = view.planned.base
        assert base is not None
        self._first = view.planned
        self._planned = view.planned
        self._told = view.plan  # what the file of the run has
        self._run = run
        self._note = note
        self._round = 1
        self._before = view.past
        self._past: Past | None = None
        self._lines: list[Line] = []
        self._base = base

    def grow(
        self,
        reached: Sequence[Reached],
        made: frozenset[str],
        pending: frozenset[str],
        check: Callable[[ScheduledPlan], None],
    ) -> Growth:
        """As `engine.discoveries.Grower` says: with all of them, and where that is no plan, one by one."""
        evidence, refused = self._read(reached)
        waiting = [one for one in reached if one.task.id in evidence]
        past = self._known(waiting, evidence)

        def trip(some: Sequence[Reached]) -> View:
            found = [self._found(one, evidence[one.task.id]) for one in some]
            view = self._view(grown(self._planned, found, made, pending), past, made, pending)
            view = settled(view, lambda planned: self._view(planned, past, made, pending), pending)
            if problems := beyond_backend(view):
                raise PlanError(problems)
            check(view.plan)
            return view

        view, words = _tried(trip, waiting)
        for one in waiting if view is None else ():
            if len(waiting) == 1:
                refused[one.task.id] = words
                continue
            alone, words = _tried(trip, [one])
            if alone is None or alone.planned is None:
                refused[one.task.id] = words
            else:
                view, self._planned = alone, alone.planned
        for task in refused:
            evidence.pop(task, None)
        if view is None or view.planned is None:
            return Growth(refused=refused)
        self._planned = view.planned
        self._round += 1
        head = {"round": self._round, **plan_head(view.plan)}
        self._note(head, _new_in(view.plan, self._told))
        self._told = view.plan
        return Growth(
            evidence=evidence,
            refused=refused,
            plan=view.plan,
            decision=view.decision,
            digest=head["digest"],
            fewer=view.expansion.fewer,
            records=view.facts.records,
        )

    def heard(self, events: Sequence[Event]) -> None:
        """Keep what settles tasks; a checkpoint task whose success was taken back found nothing."""
        for event in events:
            line = line_of(event, self._run)
            if line is not None:
                self._lines.append(line)
            if isinstance(event, EvidenceWithdrawn | AttemptEnded) or (
                isinstance(event, TaskSettled) and event.state is End.FAILED
            ):
                self._forget(event.task)

    def _read(self, reached: Sequence[Reached]) -> tuple[dict[str, Evidence | None], dict[str, str]]:
        """The evidence of each with what it found; and why it found nothing that can be used."""
        evidence: dict[str, Evidence | None] = {}
        refused: dict[str, str] = {}
        for one in reached:
            task = one.task
            if task.call is not None or one.evidence is None:  # what grows is in the record of its artifact
                evidence[task.id] = one.evidence
                continue
            try:
                found = one.evidence.discovered
                if one.ran:
                    found = read_found(self._base, task, self._planned.workdir)
                if found is None:
                    raise WorkflowError(f"the record of {task.id} does not tell what it found")
                evidence[task.id] = replace(one.evidence, discovered=found)
            except (WorkflowError, DiskError) as error:
                refused[task.id] = str(error)
        return evidence, refused

    def _found(self, one: Reached, evidence: Evidence | None) -> Found:
        base = self._planned.base
        assert base is not None
        values = evidence.discovered if evidence is not None else None
        return found_by(one.task, values or Discovered(), base.found)

    def _view(self, planned: Planned, past: Past, made: frozenset[str], pending: frozenset[str]) -> View:
        base = planned.base
        assert base is not None
        return decided(planned, base.request, past, made=made, pending=pending)

    def _known(self, reached: Sequence[Reached], evidence: Mapping[str, Evidence | None]) -> Past:
        """What is recorded by now, as if these tasks had ended already."""
        if self._past is None:
            self._past = Past()
            self._past.add(self._before.lines())
        name = self._planned.plan.name
        ends = (
            TaskSettled(
                time=0.0,
                task=one.task.id,
                key=key_of_task(name, one.task),
                state=End.SUCCEEDED if one.ran else End.UNCHANGED,
                evidence=evidence[one.task.id],
            )
            for one in reached
        )
        self._past.add(self._lines)
        self._lines = []
        self._past.add([line for end in ends if (line := line_of(end, self._run)) is not None])
        return self._past

    def _forget(self, task: str) -> None:
        """Go back to a plan without what this task found, and without what was found by that."""
        base = self._planned.base
        if base is None or all(one.task != task for one in base.found):
            return
        lost, kept = {task}, []
        for one in base.found:
            born = self._planned.plan.tasks[one.task].born if one.task in self._planned.plan.tasks else ()
            if one.task in lost or not lost.isdisjoint(born):
                lost.add(one.task)
            else:
                kept.append(one)
        try:
            self._planned = _again(self._first, kept)
        except UserError:  # they make no plan without it: each has to come again
            self._planned = self._first


def _new_in(plan: ScheduledPlan, before: ScheduledPlan) -> ScheduledPlan:
    """The plan with those tasks alone that are new in it, or others."""
    known = before.tasks
    fresh = {task: one for task, one in plan.tasks.items() if known.get(task) != one}
    return replace(plan, order=tuple(fresh), tasks=fresh)


def _again(first: Planned, kept: Sequence[Found]) -> Planned:
    """The plan with these discoveries on the first one, in their order."""
    base = first.base
    assert isinstance(base, Base)
    known = {one.task for one in base.found}
    planned = first
    for one in kept:
        if one.task not in known:
            planned = grown(planned, [one])
    return planned


def _tried(trip: Callable[[Sequence[Reached]], View], some: Sequence[Reached]) -> tuple[View | None, str]:
    """The view, or in words why there is none."""
    if not some:
        return None, ""
    try:
        return trip(some), ""
    except (UserError, DiskError) as error:
        return None, str(error)


def append_plan(path: str, text: Iterable[bytes]) -> None:
    """Add the plan of a further round to the file of the run. Raises nothing: a record for people only."""
    try:
        with open(path, "ab") as file:
            file.writelines(text)
    except OSError:
        pass

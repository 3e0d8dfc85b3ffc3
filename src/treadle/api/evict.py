"""Deleting outputs on purpose: a tombstone for each first, so that none counts as missing afterwards.

Outputs that were deleted by hand are accepted in the same way: the decision is asked as if their
tombstones stood already, and these are written when it agrees.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.named import Named, refuse_steps
from treadle.api.pipe import Planned, Request, View, mask_of, plan_of, view_of, with_recorded
from treadle.api.session import Recovered, Session, hold
from treadle.base.errors import OptionError
from treadle.base.files import remove
from treadle.base.names import listing
from treadle.decide.look import place_of
from treadle.decide.reason import AnyReason, Verdict
from treadle.decide.tombstones import removable
from treadle.engine.check import Eyes, same
from treadle.engine.slate import recorded_outputs
from treadle.plan.graph import upstream
from treadle.plan.select import select
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.event import End, Evidence, FileRecord, OutputEvicted, key_of_task
from treadle.records.line import Evicted
from treadle.records.lock import LockNews
from treadle.records.past import Past


class Burial(Struct, frozen=True):
    """An output that may go, and its tombstone; `there`: it is still to be removed."""

    task: str
    key: str
    record: FileRecord
    there: bool


class Kept(Struct, frozen=True):
    """An output that must stay: its own task is not done (`reasons`), or `needed_by` is not, or it is a
    folder that `holds` a file which stood there before its task ever ran."""

    task: str
    path: str
    reasons: tuple[AnyReason, ...] = ()
    needed_by: str = ""
    holds: str = ""


class Eviction(Struct, frozen=True):
    """What is to be evicted and what must stay. `done`: it was carried out."""

    burials: tuple[Burial, ...]
    kept: tuple[Kept, ...]
    done: bool = False


class Front(Protocol):
    """Whoever asked for it."""

    def say(self, news: LockNews | Recovered) -> None:
        """Something happened before anything could start."""
        ...

    def agree(self, found: Eviction) -> bool:
        """This is what would be evicted; False: do not."""
        ...


def evict(request: Request, front: Front, *, wait: bool = False, assume_dead: bool = False) -> Eviction:
    """Delete the outputs that the targets name, where everything that reads them is done.

    All dependents in the whole plan count, not only those of the targets. Raises `OptionError` without
    targets and for a plan over a selection of samples, which is not the whole one.
    """
    if not request.targets:
        raise OptionError("evict needs a rule, a task or a path", hint=f"{listing(request.file)} lists them")
    if request.samples:
        raise OptionError(
            "evict looks at the whole plan, so it takes no --samples", hint="name the tasks or paths instead"
        )
    planned = plan_of(request)
    mask = mask_of(planned.workflow)
    with hold(planned.workdir, mask=mask, wait=wait, assume_dead=assume_dead, say=front.say) as session:
        if session.outdated:
            planned = plan_of(request)
        view, found = _survey(with_recorded(planned, session.past), request, session.past)
        if not found.burials or not front.agree(found):
            return found
        return _bury(session, view, found)


def _survey(planned: Planned, request: Request, past: Past) -> tuple[View, Eviction]:
    """What may go, decided as if what was deleted by hand had its tombstone already."""
    plan, workdir = planned.plan, planned.workdir
    named = Named(plan, request.targets, workdir)
    refuse_steps(named.tasks(), "evict")
    lost = list(_deleted_by_hand(plan, named, past, workdir))
    past.add(lost)
    concerned = select(plan, request.targets, workdir=workdir, downstream=True)
    checkpoints = [task.id for task in plan.tasks.values() if task.manifest]
    concerned |= upstream(plan, checkpoints) if checkpoints else frozenset()
    view = view_of(replace(planned, selected=concerned), request, past)
    answers = view.decision.answers
    ends = {task: End.UP_TO_DATE for task, one in answers.items() if one.verdict is Verdict.UP_TO_DATE}
    rules = frozenset(task.rule for task in named.tasks())
    # A checkpoint that is still to find something may find somebody who reads them.
    finder = next((task for task in checkpoints if task in answers and task not in ends), "")
    free = {(task.id, path) for task, path in removable(plan, ends, rules)} if not finder else set()
    burials: list[Burial] = []
    kept: list[tuple[ScheduledTask, str]] = []
    holding: list[Kept] = []
    by_hand = {line.record.path for line in lost}
    for task in named.tasks():
        for path in named.outputs(task):
            record = view.facts.records.get(path)
            if record is None or (path in view.facts.evicted and path not in by_hand):
                continue  # it was never made, or has its tombstone
            if holds := _foreign_in(path, view.facts.evidence.get(task.id)):
                holding.append(Kept(task.id, path, holds=holds))
            elif (task.id, path) in free:
                burials.append(Burial(task.id, _key(plan, task), record, path not in by_hand))
            else:
                kept.append((task, path))
    return view, Eviction(tuple(burials), (*holding, *_reasons(view, kept, ends, finder)))


def _foreign_in(path: str, evidence: Evidence | None) -> str:
    """The first file in an output folder that its task did not make; empty: there is none."""
    foreign = evidence.foreign if evidence is not None else ()
    return next((one for one in foreign if one.startswith(f"{path}/")), "")


def _deleted_by_hand(plan: ScheduledPlan, named: Named, past: Past, workdir: str) -> Iterator[Evicted]:
    """Tombstones for the outputs that evidence knows and the disk does not."""
    for task in named.tasks():
        key = _key(plan, task)
        recorded = recorded_outputs(past.evidence(key))
        for path in named.outputs(task):
            missing = path in recorded and past.tombstone(path) is None
            if missing and not os.path.lexists(place_of(path, workdir)):
                yield Evicted(key, task.id, "", recorded[path])


def _reasons(
    view: View, kept: Iterable[tuple[ScheduledTask, str]], ends: Mapping[str, End], finder: str
) -> Iterator[Kept]:
    """Why each of these must stay: its own task first, else the first dependent that is not done."""
    waiting: dict[str, str] = {}
    for other in view.plan.order:
        if other not in ends and view.plan.tasks[other].skip is None:
            for need in view.plan.tasks[other].needs:
                waiting.setdefault(need, other)
    for task, path in kept:
        answer = view.decision.answers.get(task.id)
        own = answer.reasons if answer is not None and task.id not in ends else ()
        yield Kept(task.id, path, own, "" if own else waiting.get(task.id, finder))


def _bury(session: Session, view: View, found: Eviction) -> Eviction:
    """Write the tombstones, see them onto the disk, then remove what still stands there.

    What was changed since it was looked at stays.
    """
    eyes = Eyes(view.workdir, view.workflow.folder, view.facts.records)
    burials = tuple(
        one for one in found.burials if not one.there or same(one.record, eyes.at(one.record.path))
    )
    now = time.time()
    session.note(OutputEvicted(time=now, task=one.task, key=one.key, record=one.record) for one in burials)
    for one in burials:
        if one.there:
            remove(eyes.place(one.record.path))
    return replace(found, burials=burials, done=True)


def _key(plan: ScheduledPlan, task: ScheduledTask) -> str:
    return key_of_task(plan.name, task)

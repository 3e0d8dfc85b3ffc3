"""The pipe gone down again with what checkpoint tasks found: strata of plans, each on top of the one before.

plan_of -> view_of -> who of the checkpoint tasks is up to date, and what its record says that it found
              ^                                             |
              '---- expand, build, with these values <------'

A preview, the start of a run and the middle of one all come through `grown` and `settled`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.modules import rules_of_modules
from treadle.api.pipe import built
from treadle.api.still_to_grow import awaiting
from treadle.api.view import Planned, Request, View
from treadle.base.errors import OptionError, UserError, WorkflowError
from treadle.base.place import Diagnostic
from treadle.decide.reason import Verdict
from treadle.plan import graph
from treadle.plan.discovered import Discovered, Found
from treadle.plan.select import select
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.event import key_of_task
from treadle.records.past import Past
from treadle.rules.expand.expand import Expansion, expand
from treadle.rules.expand.manifest import read_manifest
from treadle.rules.expand.strata import Stratum, ground, on_top
from treadle.rules.pattern.constraint import read_constraints
from treadle.rules.pattern.listing import Listing
from treadle.rules.schema import Workflow
from treadle.rules.selection import Selection

if TYPE_CHECKING:
    from treadle.api.mixed import Modules, StepDrafts

DEEPEST = 32  # how deep a task may be: one more than the checkpoint task that found its values


class Base(Struct, frozen=True, kw_only=True):
    """What every trip begins with, and what it stands on: `found` makes the drafts of `stratum`.

    `lost` are targets that name nothing so far; `reopened` are steps that had grown others and run again.
    """

    workflow: Workflow
    listing: Listing
    selection: Selection
    modules: Modules | None
    request: Request
    stratum: Stratum
    steps: StepDrafts | None = None
    found: tuple[Found, ...] = ()
    lost: tuple[str, ...] = ()
    reopened: tuple[str, ...] = ()


def on_base(
    planned: Planned,
    expansion: Expansion,
    listing: Listing,
    selection: Selection,
    modules: Modules | None,
    steps: StepDrafts | None,
    request: Request,
) -> Planned:
    """The plan of a workflow that has checkpoint rules, as it is before anything was found."""
    base = Base(
        workflow=planned.workflow,
        listing=listing,
        selection=selection,
        modules=modules,
        request=request,
        stratum=ground(expansion.drafts),
        steps=steps,
    )
    return _selected(replace(planned, base=base))


def grown(
    planned: Planned, found: Sequence[Found], made: Collection[str] = (), pending: Collection[str] = ()
) -> Planned:
    """The plan with what was found besides, and what steps have grown. `made` are the tasks that ran in this
    run, `pending` those that have not ended in it.

    Raises WorkflowError, StepError and PlanError where that makes no plan.
    """
    base = planned.base
    assert base is not None
    above = graph.upstream(planned.plan, [one.task for one in found])
    known = (*base.found, *found)
    reopened = () if made or pending else base.reopened
    workflow, growing = base.workflow, ()  # type: Workflow, tuple[str, ...]
    if base.modules is not None:
        names, growing = base.modules.named(pending or reopened)
        workflow = replace(workflow, steps=names)
    expansion = expand(workflow, base.listing, base.selection, found=known)
    expansion = replace(expansion, drafts=awaiting(expansion.drafts, growing))
    stratum = on_top(base.stratum, above, expansion.drafts, found)
    expansion = replace(expansion, drafts=tuple(stratum.drafts.values()))
    steps = base.steps
    if base.modules is not None and steps is not None:
        steps = base.modules.more_drafts(expansion.drafts, steps, made, pending or reopened)
    plan = built(base.workflow, expansion, planned.workdir, steps.drafts if steps else ())
    after = replace(
        planned,
        expansion=replace(expansion, drafts=()),
        plan=plan,
        book=steps.book if steps else planned.book,
        seen=steps.seen if steps else planned.seen,
        roots=steps.roots if steps else planned.roots,
        parents=steps.parents if steps else planned.parents,
        base=replace(base, stratum=stratum, found=known, steps=steps, reopened=reopened),
    )
    return _selected(after)


def read_found(base: Base, task: ScheduledTask, workdir: str) -> Discovered:
    """What stands in the manifest of a checkpoint task. Raises WorkflowError."""
    workflow = base.workflow
    constraints = read_constraints(workflow.constraints, workflow.places, [])
    adds = next((rule.adds for rule in workflow.rules if rule.name == task.rule), ())
    return read_manifest(workdir, task.manifest, adds, constraints)


def recorded(planned: Planned, past: Past) -> Planned:
    """The plan with all that the records tell was found, whether or not it will be found anew; of what makes
    no plan any more only what comes before it."""
    while planned.base is not None:
        known = {one.task for one in planned.base.found}
        found = []
        try:
            for task in planned.plan.tasks.values():
                if task.manifest and task.id not in known and not task.awaits:
                    evidence = past.evidence(key_of_task(planned.plan.name, task))
                    if evidence is not None and evidence.discovered is not None:
                        found.append(found_by(task, evidence.discovered, planned.base.found))
            if not found:
                break
            planned = grown(planned, found)
        except UserError:
            break
    return planned


def settled(view: View, look: Callable[[Planned], View], pending: Collection[str] = ()) -> View:
    """The view with everything that the records tell was found. `look` decides about a plan; what is
    `pending` has not ended in this run.

    Raises as `grown` does, and OptionError for a target that names nothing.
    """
    while view.planned is not None and (found := _standing(view, pending)):
        view = look(grown(view.planned, found, (), pending))
    planned = view.planned
    if planned is not None and planned.base is not None and planned.base.lost and not open_checkpoints(view):
        select(planned.plan, planned.base.lost, workdir=planned.workdir)
    return view


def reopened(view: View, look: Callable[[Planned], View]) -> View:
    """The view, where steps that had grown others will run again: nobody knows what they grow then."""
    planned = view.planned
    again = [task for task in open_checkpoints(view) if task in set(view.parents.values())]
    if planned is None or planned.base is None or not again:
        return view
    base = replace(planned.base, reopened=tuple(again))
    return look(grown(replace(planned, base=base), ()))


def open_checkpoints(view: View) -> list[str]:
    """The checkpoint tasks, and the steps that grow others, that will run, or may, in plan order."""
    return [
        task
        for task, answer in view.decision.answers.items()
        if view.plan.tasks[task].finds and answer.verdict in (Verdict.WILL_RUN, Verdict.IN_FLIGHT)
    ]


def at_work(view: View) -> Planned | None:
    """The plan of tasks at which jobs of an earlier run are at work, and which a checkpoint found that is to
    run again: it may find them anew, and two jobs would write the same. None: there are none."""
    flights, planned = view.past.flights, view.planned
    if planned is None or not flights or not open_checkpoints(view):
        return None
    name, here = planned.plan.name, planned.plan.tasks
    whole = recorded(planned, view.past)
    lost = [
        task.id
        for task in whole.plan.tasks.values()
        if task.id not in here and key_of_task(name, task) in flights
    ]
    return replace(whole, selected=frozenset(lost)) if lost else None


def found_by(task: ScheduledTask, values: Discovered, known: Iterable[Found]) -> Found:
    """What a checkpoint task found, and how deep the tasks are that come of it. Raises WorkflowError where
    that is too deep."""
    births = {one.task: one.depth for one in known if one.task in task.born}
    depth = 1 + max(births.values(), default=0)
    if depth > DEEPEST and values.size:
        raise WorkflowError(
            [
                Diagnostic(
                    "too-deep-discovery",
                    f"what {task.id} found would make tasks {depth} deep, each found by the one before; "
                    f"{DEEPEST} are the most",
                    task.place,
                    "a checkpoint rule that finds work for itself must come to an end: an empty manifest",
                )
            ]
        )
    return Found(task=task.id, rule=task.rule, values=values, wildcards=task.wildcards, depth=depth)


def _standing(view: View, pending: Collection[str]) -> list[Found]:
    """What up-to-date checkpoint tasks found, as their records tell, as far as the plan does not have it."""
    base = view.planned.base if view.planned is not None else None
    if base is None:
        return []
    known = {one.task for one in base.found}
    found = []
    for task in view.plan.tasks.values():
        if not task.manifest or task.id in known or task.awaits or task.id in pending:
            continue
        answer = view.decision.answers.get(task.id)
        evidence = view.facts.evidence.get(task.id)
        if answer is None or answer.verdict is not Verdict.UP_TO_DATE or evidence is None:
            continue
        if evidence.discovered is not None:
            found.append(found_by(task, evidence.discovered, base.found))
    return found


def _selected(planned: Planned) -> Planned:
    """The tasks that the targets name; and the checkpoint tasks that may bring more of them."""
    base, plan = planned.base, planned.plan
    assert base is not None
    request, workdir = base.request, planned.workdir
    known, lost = named(plan, request.targets, workdir)
    more = rules_of_modules(request.modules, base.workflow, plan)
    chosen: frozenset[str] = frozenset()
    if known or more or not request.targets:
        chosen = select(plan, (*known, *more), workdir=workdir)
    coming = planned.expansion.coming
    if lost:
        bringing = {rule for rules in coming.values() for rule in rules}
    else:
        wanted = {*request.targets, *more} if request.targets or more else _marked(base.workflow)
        bringing = {rule for name in wanted for rule in coming.get(name, ())}
    extra = [task.id for task in plan.tasks.values() if task.manifest and task.rule in bringing]
    if extra:
        chosen |= graph.upstream(plan, extra)
    if planned.parents:
        from treadle.api.steps_born import with_born  # only where steps have grown

        chosen = with_born(chosen, plan, planned.parents)
    return replace(planned, selected=chosen, base=replace(base, lost=lost))


def _marked(workflow: Workflow) -> set[str]:
    return {rule.name for rule in workflow.rules if rule.policy.target}


def named(
    plan: ScheduledPlan, targets: Sequence[str], workdir: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The targets that name something, and those that do not yet."""
    known, lost = [], []
    for target in dict.fromkeys(targets):
        try:
            select(plan, (target,), workdir=workdir, upstream=False)
            known.append(target)
        except OptionError:
            lost.append(target)
    return tuple(known), tuple(lost)

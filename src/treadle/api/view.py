"""What one trip down the pipe is asked and what it sees, and its second half: gather, decide.

Apart from the first half, so that runs of steps alone start without all that reads workflow files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.errors import OptionError, PlanError
from treadle.base.layout import StateFolder
from treadle.base.machine import gpus_here, usable_cpus, usable_memory
from treadle.base.mask import Mask
from treadle.base.place import Diagnostic, Severity
from treadle.decide.decide import Options as DecideOptions
from treadle.decide.decide import decide
from treadle.decide.facts import Facts, gather
from treadle.decide.protected import overwritten
from treadle.decide.reason import Decision
from treadle.plan.select import select, with_pieces
from treadle.plan.task import Resources, ScheduledPlan
from treadle.records.past import Past
from treadle.rules.schema import Rule, Workflow

if TYPE_CHECKING:
    from treadle.api.reentry import Base
    from treadle.rules.expand.expansion import Expansion
    from treadle.rules.smells import Machine
    from treadle.steps.book import StepBook
    from treadle.steps.record import Seen


class Request(Struct, frozen=True, kw_only=True):
    """What a person asks for: which workflow or pipeline, how it is set, which part of it.

    `file` as typed (empty: `main.oxoflow`, else the only `*.oxoflow` here; `*.py` and `*.py:NAME` are
    pipelines). `prefix` is where artifacts of steps stand (empty: as `TREADLE_PREFIX` says). `config` are
    (key, text) pairs and `declared` those of them that came as options (`--database refs/nt`), each with
    a hint for the case that the workflow declares no such key, `bare` those that came without a value, and
    `typed` are options of our own, as they were typed;
    `targets` are rule names, task ids or output paths, `modules` names of included files, all rules of which
    are targets. `profiles` are names, those that count most last;
    `backend` stands above theirs; `settings` are (rule, field of its resources, text).
    """

    file: str = ""
    workdir: str = ""
    config: tuple[tuple[str, str], ...] = ()
    declared: tuple[tuple[str, str], ...] = ()
    bare: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    force: bool = False
    rerun_failed: bool = True
    cutoff: bool = True
    adopt: bool = False
    overwrite_cohort: bool = False
    strict: bool = False
    prefix: str = ""
    unsafe_locks: bool = False
    profiles: tuple[str, ...] = ()
    backend: str = ""
    settings: tuple[tuple[str, str, str], ...] = ()


class View(Struct, frozen=True, kw_only=True):
    """Everything that one trip down the pipe saw: the basis of preview, run, why and status.

    `beyond` are warnings of requests that this machine cannot meet: a run cuts or refuses them. `book`,
    `seen`, `asked`, `parents` and `stream` as in `Planned`.
    """

    workflow: Workflow
    expansion: Expansion
    plan: ScheduledPlan
    selected: frozenset[str] | None
    workdir: str
    past: Past
    facts: Facts
    decision: Decision
    warnings: tuple[Diagnostic, ...] = ()
    beyond: tuple[Diagnostic, ...] = ()
    book: StepBook | None = None
    seen: dict[str, Seen] = {}
    asked: tuple[str, ...] = ()
    parents: dict[str, str] = {}
    stream: bool = False
    planned: Planned | None = None

    @property
    def state(self) -> StateFolder:
        return StateFolder(self.workdir)


class Planned(Struct, frozen=True, kw_only=True):
    """The half of the pipe that needs no records: workflow to plan.

    `book` has the steps of the plan (None: it has none), `seen` what stood at their paths, by task id, and
    `asked` the ids of those that a pipeline was asked for. Of steps alone `workflow` is one without rules:
    the file, its folder and a name. `roots` are the ids of the steps asked for and of those that have grown,
    `parents` those of who grew a step. `stream`: they arrive as the run goes on. `base` is what further trips
    begin with, where there are checkpoint rules.
    """

    workflow: Workflow
    expansion: Expansion
    plan: ScheduledPlan
    selected: frozenset[str] | None
    workdir: str
    book: StepBook | None = None
    seen: dict[str, Seen] = {}
    asked: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    parents: dict[str, str] = {}
    stream: bool = False
    base: Base | None = None

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What was found on the way that does not stop it."""
        return (*self.workflow.warnings, *self.expansion.notes, *self.plan.notes)


def work_folder(file: str, workdir: str) -> str:
    """The work folder: `--workdir`, else the folder of the workflow file."""
    folder = os.path.abspath(workdir or os.path.dirname(file) or ".")
    if not os.path.isdir(folder):
        what = "is a file, not a folder" if os.path.exists(folder) else "does not exist"
        raise OptionError(f"the work folder {folder} {what}", hint="make it first, or mend --workdir")
    return folder


def view_of(
    planned: Planned,
    request: Request,
    past: Past,
    *,
    fallen: frozenset[str] = frozenset(),
    running: Set[str] = frozenset(),
) -> View:
    """Go down the second half of the pipe: gather, decide; and again with what checkpoint tasks found, as the
    records tell.

    `fallen` are steps of earlier batches that failed before and are not tried again, and `running` those that
    run and on whose artifacts evidence hangs.
    """
    view = decided(planned, request, past, fallen=fallen, running=running)
    if planned.base is None:
        return view
    from treadle.api.reentry import reopened, settled  # workflows without checkpoint rules do not need it

    def look(more: Planned) -> View:
        return decided(more, request, past)

    return settled(reopened(view, look), look)


def decided(
    planned: Planned,
    request: Request,
    past: Past,
    *,
    fallen: frozenset[str] = frozenset(),
    running: Set[str] = frozenset(),
    made: Set[str] = frozenset(),
    pending: Set[str] = frozenset(),
) -> View:
    """Gather and decide about one plan. `made` and `pending` as in `DecideOptions`."""
    forced: frozenset[str] = frozenset()
    if request.force:
        targets = planned.asked if planned.asked and planned.selected is not None else request.targets
        if request.modules:
            from treadle.api.modules import rules_of_modules  # not for those who select nothing by it

            targets = (*targets, *rules_of_modules(request.modules, planned.workflow, planned.plan))
        forced = with_pieces(planned.plan, _forced(planned, targets))
    selected = planned.selected
    options = DecideOptions(
        selected=selected if selected is not None and len(selected) < len(planned.plan.tasks) else None,
        forced=forced,
        cutoff=request.cutoff,
        adopt=request.adopt,
        narrowed=planned.expansion.narrowed,
        overwrite_cohort=request.overwrite_cohort,
        rerun_failed=request.rerun_failed,
        fallen=fallen,
        running=running,
        made=made,
        pending=pending,
        workdir=planned.workdir,
        flowdir=planned.workflow.folder,
    )
    facts = gather(planned.plan, past, options, artifacts=planned.seen)
    decision = decide(planned.plan, facts, past, options)
    if planned.parents:
        from treadle.api.steps_born import without_withdrawn  # only where steps have grown

        while (kept := without_withdrawn(planned, decision, selected, made, pending)) != selected:
            selected = kept
            decision = decide(planned.plan, facts, past, replace(options, selected=kept))
    if planned.book is not None:
        from treadle.api.steps_pipe import note_rebuilds  # workflows without steps do not need it

        note_rebuilds(planned.book, planned.seen, decision)
    beyond = (
        *_beyond_this_machine(planned, decision),
        *_lacking(planned, decision),
        *overwritten(planned.plan, facts, options, decision),
    )
    if request.strict and beyond:
        raise PlanError(replace(one, severity=Severity.ERROR) for one in beyond)
    view = View(
        workflow=planned.workflow,
        expansion=planned.expansion,
        plan=planned.plan,
        selected=selected,
        workdir=planned.workdir,
        past=past,
        facts=facts,
        decision=decision,
        warnings=(*planned.warnings, *decision.notes),
        beyond=beyond,
        book=planned.book,
        seen=planned.seen,
        asked=planned.asked,
        parents=planned.parents,
        stream=planned.stream,
        planned=planned if planned.base is not None else None,
    )
    if past.flights:
        from treadle.api.adoption import foreseen_elsewhere  # only where jobs are in flight

        view = replace(view, beyond=(*beyond, *foreseen_elsewhere(view)))
    return view


def _forced(planned: Planned, targets: tuple[str, ...]) -> frozenset[str]:
    """What is made again though it is up to date."""
    if planned.base is not None:
        from treadle.api.reentry import named

        known, lost = named(planned.plan, targets, planned.workdir)
        if lost and not known:
            return frozenset()
        targets = known
    return select(planned.plan, targets, workdir=planned.workdir, upstream=False)


def _beyond_this_machine(planned: Planned, decision: Decision) -> tuple[Diagnostic, ...]:
    """Requests of rules that will run which this machine, or the site, cannot meet."""
    if not planned.workflow.rules:
        return ()
    run = {planned.plan.tasks[task].rule for task in decision.to_run()}
    return beyond_here(planned.workflow, [rule for rule in planned.workflow.rules if rule.name in run])


def beyond_here(workflow: Workflow, rules: Sequence[Rule]) -> tuple[Diagnostic, ...]:
    """Requests of these rules which the site, or this machine where they would run on it, cannot meet."""
    asking = [rule for rule in rules if rule.resources != Resources() and not rule.starts_nothing]
    if not asking:
        return ()
    from treadle.rules.smells import too_large

    cluster = workflow.cluster
    if cluster is not None and cluster.backend != "local":
        from treadle.rules.profile.partitions import beyond_site

        there = [rule for rule in asking if not rule.policy.localrule]
        asking = [rule for rule in asking if rule.policy.localrule]
        if cluster.is_scheduler and (found := [one for rule in there for one in beyond_site(rule, cluster)]):
            return tuple(found)
    if not asking:
        return ()
    machine = this_machine()
    return tuple(found for rule in asking for found in too_large(rule, machine))


def _lacking(planned: Planned, decision: Decision) -> tuple[Diagnostic, ...]:
    """What environments want and this machine does not have."""
    if all(rule.policy.environment is None for rule in planned.workflow.rules):
        return ()
    from treadle.api.environments import lacking  # workflows without environments do without

    return lacking(planned.workflow, planned.plan, decision, planned.workdir)


def this_machine() -> Machine:
    """What one task may have here."""
    from treadle.rules.smells import Machine

    return Machine(usable_cpus(), usable_memory(), len(gpus_here()))


def secrets_of(workflow: Workflow) -> dict[str, str]:
    """Sensitive config values by the environment variable that hands them to a job."""
    if not workflow.sensitive:
        return {}
    from treadle.rules.text.holes import secret_variable
    from treadle.rules.text.placeholder import spelled

    return {secret_variable(key): spelled(workflow.config[key]) for key in sorted(workflow.sensitive)}


def mask_of(workflow: Workflow) -> Mask:
    """The mask that knows all sensitive config values; of an array each item, too."""
    mask = Mask()
    if not workflow.sensitive:
        return mask
    from treadle.rules.text.placeholder import spelled

    for key in sorted(workflow.sensitive):
        value = workflow.config[key]
        for one in (value, *value) if isinstance(value, tuple) else (value,):
            mask.add(spelled(one))
    return mask

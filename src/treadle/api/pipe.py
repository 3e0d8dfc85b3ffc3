"""The pipe as one readable function: look() goes down it; running goes down the same, and acts.

read -> list -> expand -> build -> gather -> decide        (look: a preview)
                                               `-> drive   (run)
"""

from __future__ import annotations

import os
from collections.abc import Set
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.cluster import choose_client, with_cluster_checked
from treadle.api.errors import with_the_rest
from treadle.base.disk import disk_error
from treadle.base.errors import OptionError, PlanError, WorkflowError
from treadle.base.layout import StateFolder
from treadle.base.machine import gpus_here, usable_cpus, usable_memory
from treadle.base.mask import Mask
from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic, Severity
from treadle.decide.decide import Options as DecideOptions
from treadle.decide.decide import decide
from treadle.decide.facts import Facts, gather
from treadle.decide.reason import Decision
from treadle.plan.build import build
from treadle.plan.select import select
from treadle.plan.task import Draft, Resources, ScheduledPlan
from treadle.records.past import Past, load_past
from treadle.rules.expand.expand import Expansion, expand
from treadle.rules.file.read import ReadOptions, read, read_sound, without_rules
from treadle.rules.pattern.listing import DiskListing
from treadle.rules.profile.partitions import beyond_site
from treadle.rules.schema import Workflow
from treadle.rules.selection import parse_selection
from treadle.rules.smells import Machine, too_large
from treadle.rules.text.holes import secret_variable
from treadle.rules.text.placeholder import spelled

if TYPE_CHECKING:
    from treadle.api.mixed import Modules
    from treadle.steps.book import StepBook
    from treadle.steps.record import Seen


class Request(Struct, frozen=True, kw_only=True):
    """What a person asks for: which workflow or pipeline, how it is set, which part of it.

    `file` as typed (empty: `main.oxoflow`, else the only `*.oxoflow` here; `*.py` and `*.py:NAME` are
    pipelines). `prefix` is where artifacts of steps stand (empty: as `TREADLE_PREFIX` says). `config` are
    (key, text) pairs and `declared` those of them that came as options (`--database refs/nt`), each with
    a hint for the case that the workflow declares no such key;
    `targets` are rule names, task ids or output paths. `profiles` are names, those that count most last;
    `backend` stands above theirs; `settings` are (rule, field of its resources, text).
    """

    file: str = ""
    workdir: str = ""
    config: tuple[tuple[str, str], ...] = ()
    declared: tuple[tuple[str, str], ...] = ()
    samples: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
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
    `seen`, `asked` and `stream` as in `Planned`.
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
    stream: bool = False

    @property
    def state(self) -> StateFolder:
        return StateFolder(self.workdir)


class Planned(Struct, frozen=True, kw_only=True):
    """The half of the pipe that needs no records: workflow to plan.

    `book` has the steps of the plan (None: it has none), `seen` what stood at their paths, by task id, and
    `asked` the ids of those that a pipeline was asked for. Of steps alone `workflow` is one without rules:
    the file, its folder and a name. `stream`: they arrive as the run goes on.
    """

    workflow: Workflow
    expansion: Expansion
    plan: ScheduledPlan
    selected: frozenset[str] | None
    workdir: str
    book: StepBook | None = None
    seen: dict[str, Seen] = {}
    asked: tuple[str, ...] = ()
    stream: bool = False

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What was found on the way that does not stop it."""
        return (*self.workflow.warnings, *self.expansion.notes, *self.plan.notes)


def find_file(file: str) -> str:
    """The workflow file: the one named, else `main.oxoflow`, else the only `*.oxoflow` here."""
    if file:
        return file
    if os.path.exists("main.oxoflow"):
        return "main.oxoflow"
    try:
        found = sorted(name for name in os.listdir(".") if name.endswith(".oxoflow"))
    except PermissionError as error:
        raise disk_error("look into", os.getcwd(), error) from error
    if len(found) == 1:
        return found[0]
    if found:
        raise OptionError(f"several workflow files here: {', '.join(found)}", hint="name the one you mean")
    raise OptionError(
        "no workflow file here", hint="name one (treadle run FILE.oxoflow), or make one: treadle init"
    )


def work_folder(file: str, workdir: str) -> str:
    """The work folder: `--workdir`, else the folder of the workflow file."""
    folder = os.path.abspath(workdir or os.path.dirname(file) or ".")
    if not os.path.isdir(folder):
        what = "is a file, not a folder" if os.path.exists(folder) else "does not exist"
        raise OptionError(f"the work folder {folder} {what}", hint="make it first, or mend --workdir")
    return folder


def plan_of(request: Request) -> Planned:
    """Go down the first half of the pipe: read, list, expand, build. Of a pipeline: load, expand, build."""
    if is_pipeline(request.file):
        from treadle.api.pipeline_plan import pipeline_planned  # workflows do without all that it brings

        return pipeline_planned(request)
    file = find_file(request.file)
    workdir = work_folder(file, request.workdir)
    sheets = tuple(
        word for text in request.samples for word in text.split(",") if word.lstrip("+")[:1] == "@"
    )
    options = ReadOptions(
        config=request.config,
        strict=request.strict,
        sheets=sheets,
        workdir=workdir,
        profiles=request.profiles,
        backend=request.backend,
        settings=request.settings,
    )
    listing = DiskListing(workdir)

    def go_on(sound: Workflow) -> ScheduledPlan:
        return _plan(sound, expand(sound, listing, lenient=True), workdir)

    try:
        workflow = _read(file, options, dict(request.declared))
    except WorkflowError as error:
        raise with_the_rest(error, read_sound(file, options), go_on) from None
    workflow = with_cluster_checked(workflow)
    modules = _modules(workflow, request, workdir)
    if modules is not None:
        workflow = replace(workflow, steps=modules.names)
    try:
        expansion = expand(workflow, listing, parse_selection(request.samples))
    except WorkflowError as error:
        raise with_the_rest(error, without_rules(workflow, error.diagnostics), go_on) from None
    steps = None if modules is None else modules.drafts(expansion.drafts, request)
    plan = _plan(workflow, expansion, workdir, steps.drafts if steps else ())
    selected = select(plan, request.targets, workdir=workdir)
    planned = Planned(
        workflow=workflow,
        expansion=replace(expansion, drafts=()),  # they are tasks by now, and large ones weigh
        plan=plan,
        selected=selected,
        workdir=workdir,
        book=steps.book if steps else None,
        seen=steps.seen if steps else {},
    )
    if request.strict and planned.warnings:
        raise WorkflowError(replace(one, severity=Severity.ERROR) for one in planned.warnings)
    return planned


def is_pipeline(word: str) -> bool:
    """Whether a word names a pipeline: `pipeline.py`, `pipeline.py:train`."""
    return word.endswith(".py") or ".py:" in word


def _modules(workflow: Workflow, request: Request, workdir: str) -> Modules | None:
    """The Python files of the workflow, loaded; None when it names none."""
    if not workflow.modules:
        return None
    from treadle.api.mixed import Modules

    choose_client(request, workflow.folder)
    return Modules(workflow, request, workdir)


def _plan(
    workflow: Workflow, expansion: Expansion, workdir: str, steps: tuple[Draft, ...] = ()
) -> ScheduledPlan:
    file = os.path.abspath(workflow.file)
    return build(
        workflow.name,
        [*expansion.drafts, *steps] if steps else expansion.drafts,
        pools=workflow.pools,
        rules=[rule.name for rule in workflow.rules],
        protected=(file, os.path.realpath(file)),
        roots=tuple(dict.fromkeys((workdir, os.path.realpath(workdir)))),
    )


def _read(file: str, options: ReadOptions, declared: dict[str, str]) -> Workflow:
    """Read the file; `declared` are config keys that came as options, each with the nearest real option."""
    try:
        workflow = read(file, options)
        wrong = {name: _undeclared(name, workflow) for name in declared.keys() - workflow.declared}
    except WorkflowError as error:
        wrong = {one.place.key: one.hint for one in error.diagnostics if one.code == "unknown-config"}
        if wrong.keys().isdisjoint(declared):
            raise
    for name, hint in declared.items():
        if name in wrong:
            option = f"--{name.replace('_', '-')}"
            raise OptionError(
                f"{option} is neither an option nor a config key that the workflow declares",
                hint=wrong[name] or hint,
            )
    return workflow


def _undeclared(name: str, workflow: Workflow) -> str:
    """A hint for an option that names no declared key; one that is not declared can be set all the same."""
    if name in workflow.config:
        return f"set the config key with {name}=VALUE behind the file, or --config {name}=VALUE"
    return did_you_mean(name, workflow.declared)


def view_of(
    planned: Planned,
    request: Request,
    past: Past,
    *,
    fallen: frozenset[str] = frozenset(),
    running: Set[str] = frozenset(),
) -> View:
    """Go down the second half of the pipe: gather, decide.

    `fallen` are steps of earlier batches that failed before and are not tried again, and `running` those that
    run and on whose artifacts evidence hangs.
    """
    forced: frozenset[str] = frozenset()
    if request.force:
        targets = planned.asked if planned.asked and planned.selected is not None else request.targets
        forced = select(planned.plan, targets, workdir=planned.workdir, upstream=False)
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
        workdir=planned.workdir,
        flowdir=planned.workflow.folder,
    )
    facts = gather(planned.plan, past, options, artifacts=planned.seen)
    decision = decide(planned.plan, facts, past, options)
    if planned.book is not None:
        from treadle.api.steps_pipe import note_rebuilds  # workflows without steps do not need it

        note_rebuilds(planned.book, planned.seen, decision)
    beyond = _beyond_this_machine(planned, decision)
    if request.strict and beyond:
        raise PlanError(replace(one, severity=Severity.ERROR) for one in beyond)
    return View(
        workflow=planned.workflow,
        expansion=planned.expansion,
        plan=planned.plan,
        selected=planned.selected,
        workdir=planned.workdir,
        past=past,
        facts=facts,
        decision=decision,
        warnings=(*planned.warnings, *decision.notes),
        beyond=beyond,
        book=planned.book,
        seen=planned.seen,
        asked=planned.asked,
        stream=planned.stream,
    )


def _beyond_this_machine(planned: Planned, decision: Decision) -> tuple[Diagnostic, ...]:
    """Requests of rules that will run which this machine, or the site, cannot meet."""
    run = {planned.plan.tasks[task].rule for task in decision.to_run()}
    asking = [rule for rule in planned.workflow.rules if rule.name in run and rule.resources != Resources()]
    cluster = planned.workflow.cluster
    if cluster is not None and cluster.backend != "local":
        there = [rule for rule in asking if not rule.policy.localrule]
        asking = [rule for rule in asking if rule.policy.localrule]
        if cluster.is_scheduler and (found := [one for rule in there for one in beyond_site(rule, cluster)]):
            return tuple(found)
    if not asking:
        return ()
    machine = this_machine()
    return tuple(found for rule in asking for found in too_large(rule, machine))


def this_machine() -> Machine:
    """What one task may have here."""
    return Machine(usable_cpus(), usable_memory(), len(gpus_here()))


def look(request: Request) -> View:
    """What would run and why. Takes no lock and writes nothing."""
    planned = plan_of(request)
    return view_of(planned, request, load_past(StateFolder(planned.workdir)))


def secrets_of(workflow: Workflow) -> dict[str, str]:
    """Sensitive config values by the environment variable that hands them to a job."""
    return {secret_variable(key): spelled(workflow.config[key]) for key in sorted(workflow.sensitive)}


def mask_of(workflow: Workflow) -> Mask:
    """The mask that knows all sensitive config values; of an array each item, too."""
    mask = Mask()
    for key in sorted(workflow.sensitive):
        value = workflow.config[key]
        for one in (value, *value) if isinstance(value, tuple) else (value,):
            mask.add(spelled(one))
    return mask

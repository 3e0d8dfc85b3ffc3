"""The pipe as one readable function: look() goes down it; running goes down the same, and acts.

read -> list -> expand -> build -> gather -> decide        (look: a preview)
                                               `-> drive   (run)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.api.cluster import choose_client, with_cluster_checked
from treadle.api.errors import with_texts, with_the_rest
from treadle.api.modules import rules_of_modules
from treadle.api.view import (
    Planned,
    Request,
    View,
    mask_of,
    secrets_of,
    this_machine,
    view_of,
    work_folder,
)
from treadle.base.disk import disk_error
from treadle.base.errors import OptionError, WorkflowError
from treadle.base.layout import StateFolder
from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic, Place, Severity
from treadle.plan.build import build
from treadle.plan.select import select
from treadle.plan.task import Draft, ScheduledPlan
from treadle.records.past import Past, load_past
from treadle.rules.expand.expand import Expansion, expand, look_at_texts
from treadle.rules.file.read import ReadOptions, read, read_again, without_rules
from treadle.rules.pattern.listing import DiskListing
from treadle.rules.schema import Workflow
from treadle.rules.selection import parse_selection

if TYPE_CHECKING:
    from treadle.api.mixed import Modules

__all__ = [
    "Planned",
    "Request",
    "View",
    "find_file",
    "is_pipeline",
    "look",
    "mask_of",
    "plan_of",
    "secrets_of",
    "this_machine",
    "view_of",
    "with_recorded",
    "work_folder",
]


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


def plan_of(request: Request) -> Planned:
    """Go down the first half of the pipe: read, list, expand, build. Of a pipeline: load, expand, build."""
    if is_pipeline(request.file):
        if request.modules:
            raise OptionError("--module is for workflow files, and a pipeline includes none")
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
        return built(sound, expand(sound, listing, lenient=True), workdir)

    try:
        workflow = _read(file, options, dict(request.declared))
        _check_options(workflow, request)
    except WorkflowError as error:
        again = read_again(file, options)
        more = with_texts(error, again.understood, lambda known: look_at_texts(known, listing))
        raise with_the_rest(more, again.workflow or again.sound, go_on) from None
    workflow = with_cluster_checked(workflow)
    modules = _modules(workflow, request, workdir)
    if modules is not None:
        workflow = replace(workflow, steps=modules.names)
    try:
        selection = parse_selection(request.samples)
        expansion = expand(workflow, listing, selection)
    except WorkflowError as error:
        raise with_the_rest(error, without_rules(workflow, error.diagnostics), go_on) from None
    if modules is not None and modules.growing:
        from treadle.api.still_to_grow import awaiting  # only where steps grow

        expansion = replace(expansion, drafts=awaiting(expansion.drafts, modules.growing))
    steps = None if modules is None else modules.drafts(expansion.drafts, request)
    plan = built(workflow, expansion, workdir, steps.drafts if steps else ())
    targets = (*request.targets, *rules_of_modules(request.modules, workflow, plan))
    finds = any(rule.manifest for rule in workflow.rules) or (modules is not None and modules.grows)
    selected = None if finds else select(plan, targets, workdir=workdir)
    planned = Planned(
        workflow=workflow,
        expansion=replace(expansion, drafts=()),  # they are tasks by now, and large ones weigh
        plan=plan,
        selected=selected,
        workdir=workdir,
        book=steps.book if steps else None,
        seen=steps.seen if steps else {},
    )
    if steps is not None and steps.parents:
        from treadle.api.steps_born import with_born  # only where steps have grown

        wanted = with_born(selected, plan, steps.parents) if selected is not None else None
        planned = replace(planned, selected=wanted, roots=steps.roots, parents=steps.parents)
    if finds:
        from treadle.api.reentry import on_base  # workflows without checkpoint rules do not need it

        planned = on_base(planned, expansion, listing, selection, modules, steps, request)
    if request.strict and planned.warnings:
        raise WorkflowError(replace(one, severity=Severity.ERROR) for one in planned.warnings)
    return planned


def with_recorded(planned: Planned, past: Past) -> Planned:
    """The plan with all tasks that checkpoint rules found once, as the records tell: for those who look after
    what was made, and run nothing."""
    if planned.base is None:
        return planned
    from treadle.api.reentry import recorded

    return recorded(planned, past)


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


def built(
    workflow: Workflow, expansion: Expansion, workdir: str, steps: tuple[Draft, ...] = ()
) -> ScheduledPlan:
    """The plan of the drafts of the rules, and of those of steps."""
    files = [os.path.abspath(workflow.file), *(one.file for one in workflow.includes[1:])]
    return build(
        workflow.name,
        [*expansion.drafts, *steps] if steps else expansion.drafts,
        pools=workflow.pools,
        sequences=workflow.sequences,
        ceilings=workflow.ceilings,
        rules=[rule.name for rule in workflow.rules],
        protected=tuple(dict.fromkeys(one for file in files for one in (file, os.path.realpath(file)))),
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


def _check_options(workflow: Workflow, request: Request) -> None:
    """Refuse options that may mean a declared key or one of ours, and keys without the value that they need.

    Raises OptionError with all of them.
    """
    given = {key for key, _ in request.config}
    found = []
    for option in dict.fromkeys(request.typed):
        key = option.removeprefix("--").replace("-", "_")
        if key in workflow.declared and key not in given:
            place = Place("the command line", 0, "", option)
            message = f"{option} is an option of treadle, and the workflow declares a config key '{key}'"
            hint = f"to set the key: --config {key}=VALUE; beside that, {option} is the option"
            found.append(Diagnostic("option-or-key", message, place, hint))
    for key in request.bare:
        if key in workflow.declared and not isinstance(workflow.config.get(key), bool):
            option = f"--{key.replace('_', '-')}"
            place = Place("the command line", 0, "", option)
            message = f"{option} sets the config key '{key}', and has no value"
            found.append(Diagnostic("option-without-value", message, place, f"write {option} VALUE"))
    if found:
        raise OptionError(found)


def _undeclared(name: str, workflow: Workflow) -> str:
    """A hint for an option that names no declared key; one that is not declared can be set all the same."""
    if name in workflow.config:
        return f"set the config key with {name}=VALUE behind the file, or --config {name}=VALUE"
    return did_you_mean(name, workflow.declared)


def look(request: Request) -> View:
    """What would run and why. Takes no lock and writes nothing."""
    planned = plan_of(request)
    return view_of(planned, request, load_past(StateFolder(planned.workdir)))

"""From what a person asks of a pipeline to the plan of its steps: the front half of the pipe for `*.py`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.api import pipeline
from treadle.api.cluster import choose_client
from treadle.api.pipe import Planned, Request, work_folder
from treadle.api.steps_grown import named_steps
from treadle.api.steps_pipe import Places, client_is_local, steps_planned
from treadle.base.errors import OptionError, StepError
from treadle.base.place import Diagnostic, Severity
from treadle.plan.select import select
from treadle.rules.schema import Workflow
from treadle.steps import paths
from treadle.steps.spec import StepSpec


class Opened(Struct, frozen=True):
    """A pipeline that was loaded, and where its steps run."""

    pipeline: pipeline.Pipeline
    places: Places
    targets: tuple[str, ...]

    @property
    def workflow(self) -> Workflow:
        """What stands for the file where a workflow is wanted."""
        file, pools = self.pipeline.file, self.pipeline.groups
        return Workflow(file=file, folder=self.places.workdir, name=os.path.basename(file), pools=pools)


def open_pipeline(request: Request) -> Opened:
    """Load the file that a request names, in the work folder: the current one, or `--workdir`."""
    if request.samples:
        raise OptionError("a pipeline has no samples", hint="set a parameter of its function: KEY=VALUE")
    file, entry = pipeline.split(request.file)
    workdir = work_folder("", request.workdir)
    if request.workdir:
        file = os.path.abspath(file)
        os.chdir(workdir)  # what the file reads is seen from where its steps will run
    choose_client(request, os.path.dirname(os.path.abspath(file)))
    found = pipeline.load(file, entry, request.config)
    return Opened(found, places_of(request, workdir), (*request.targets, *filter(None, (found.picked,))))


def places_of(request: Request, workdir: str, prefix: str = "") -> Places:
    """Where steps run and their artifacts stand: `--prefix`, else `prefix`, else `TREADLE_PREFIX`."""
    found = request.prefix or prefix or paths.default_prefix(workdir)
    return Places(
        workdir=workdir,
        prefix=found if paths.is_url(found) else os.path.join(workdir, found),
        unsafe_locks=request.unsafe_locks,
        client_is_local=client_is_local(),
    )


def pipeline_planned(request: Request) -> Planned:
    """The plan of the steps that a request names; of a stream the first 10,000."""
    opened = open_pipeline(request)
    steps, more = opened.pipeline.pulled()
    planned = planned_steps(opened, steps, request)
    if more:
        cut = Diagnostic(
            "stream-cut",
            f"{opened.pipeline.file} yields more steps than these {len(steps):,}: no more are looked at here",
            hint="a run takes them all",
            severity=Severity.WARNING,
        )
        planned = replace(planned, expansion=replace(planned.expansion, notes=(cut,)))
    return planned


def planned_steps(opened: Opened, steps: Sequence[StepSpec], request: Request) -> Planned:
    """The plan of these steps; where targets are named, of what these name among them, below, and grown."""
    asked, places, parents = list(steps), opened.places, {}
    if opened.targets:
        where = paths.Places(places.prefix, places.workdir)
        names = named_steps(steps, where, places.workdir, unsafe_locks=places.unsafe_locks)
        asked = names.chosen(opened.targets, opened.pipeline.file)
        parents = {one.task_id: names.parents[one.task_id] for one in asked if one.task_id in names.parents}
    forced = (
        frozenset([step.task_id for step in asked]) if request.force and opened.targets else request.force
    )
    planned = steps_planned(asked, places, workflow=opened.workflow, forced=forced)
    ids = tuple(dict.fromkeys(step.task_id for step in asked))
    selected = select(planned.plan, planned.roots, workdir=places.workdir) if opened.targets else None
    if request.strict and planned.warnings:
        raise StepError(replace(one, severity=Severity.ERROR) for one in planned.warnings)
    return replace(planned, selected=selected, asked=ids, parents={**parents, **planned.parents})

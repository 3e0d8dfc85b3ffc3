"""Where the artifacts of steps stand. In an object store the record says it, which is looked at."""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from treadle.api.mixed import Modules
from treadle.api.pipe import Request, find_file, is_pipeline, work_folder
from treadle.api.pipeline_plan import open_pipeline
from treadle.api.steps_grown import named_steps
from treadle.base.errors import DiskError, OptionError
from treadle.rules.file.read import ReadOptions, read
from treadle.steps import paths
from treadle.steps.record import ArtifactState
from treadle.steps.spec import StepSpec
from treadle.steps.stores import store_for


class StepPath(Struct, frozen=True):
    """A step by its name with hash, and where its artifact stands: an absolute path, or a URL."""

    step: str
    path: str


def step_paths(request: Request) -> list[StepPath]:
    """The paths of the steps that the targets name, in their order; without targets of all that are listed.

    Raises `OptionError` for names that no step has.
    """
    if is_pipeline(request.file):
        opened = open_pipeline(request)
        steps, _ = opened.pipeline.pulled()
        places = paths.Places(opened.places.prefix, opened.places.workdir)
        chosen = list(steps)
        if opened.targets:
            names = named_steps(steps, places, opened.places.workdir, unsafe_locks=opened.places.unsafe_locks)
            chosen = names.chosen(opened.targets, opened.pipeline.file)
        return [StepPath(step.name_with_hash, _stands(step, places.of(step))) for step in chosen]
    file = find_file(request.file)
    workdir = work_folder(file, request.workdir)
    workflow = read(file, ReadOptions(config=request.config, workdir=workdir))
    if not workflow.modules:
        raise OptionError(f"{file} has no steps", hint='name their file: [[steps]] module = "pipeline.py"')
    modules = Modules(workflow, request, workdir)
    found = modules.chosen(request.targets, file)
    return [StepPath(step.name_with_hash, _stands(step, path)) for step, path in found]


def _stands(step: StepSpec, path: str) -> str:
    """Below its output path in an object store, in the folder of the attempt that made it; where there is
    no artifact yet, or it cannot be seen, the output path."""
    if not paths.is_url(path):
        return path
    with suppress(DiskError):
        store = store_for(path)
        seen = store.look(path, step.identity)
        if seen.state is ArtifactState.COMPLETE and seen.record is not None:
            return store.url(seen.record)
    return path

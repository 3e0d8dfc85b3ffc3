"""Where the artifacts of steps stand, without a look at any of them."""

from __future__ import annotations

from msgspec import Struct

from treadle.api.mixed import Modules
from treadle.api.pipe import Request, find_file, is_pipeline, work_folder
from treadle.api.pipeline_plan import open_pipeline
from treadle.api.step_names import StepNames
from treadle.base.errors import OptionError
from treadle.rules.file.read import ReadOptions, read
from treadle.steps import paths


class StepPath(Struct, frozen=True):
    """A step by its name with hash, and its output path: absolute, or a URL."""

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
        names = StepNames(steps, places, opened.places.workdir)
        chosen = names.chosen(opened.targets, opened.pipeline.file) if opened.targets else steps
        return [StepPath(step.name_with_hash, places.of(step)) for step in chosen]
    file = find_file(request.file)
    workdir = work_folder(file, request.workdir)
    workflow = read(file, ReadOptions(config=request.config, workdir=workdir))
    if not workflow.modules:
        raise OptionError(f"{file} has no steps", hint='name their file: [[steps]] module = "pipeline.py"')
    modules = Modules(workflow, request, workdir)
    return [StepPath(step.name_with_hash, path) for step, path in modules.chosen(request.targets, file)]

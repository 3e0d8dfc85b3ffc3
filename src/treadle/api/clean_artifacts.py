"""Deleting artifacts of steps: those that are named, or those that no step of the files names any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.clean import Cleaning, Left, Stays
from treadle.api.mixed import Modules
from treadle.api.pipe import Request, find_file, is_pipeline, work_folder
from treadle.api.pipeline_plan import open_pipeline
from treadle.api.steps_grown import named_steps, recorded
from treadle.base.errors import LockError, OptionError
from treadle.base.place import Diagnostic
from treadle.rules.file.read import ReadOptions, read
from treadle.steps.paths import Places
from treadle.steps.record import ArtifactRecord, ArtifactState
from treadle.steps.spec import StepSpec
from treadle.steps.stores import store_for


class Front(Protocol):
    """Whoever asked for it."""

    def agree(self, found: Cleaning) -> bool:
        """This is what would be deleted; False: do not."""
        ...


class _Steps(Struct, frozen=True):
    """Steps of one file, and where their artifacts stand below one prefix."""

    file: str
    steps: Sequence[StepSpec]
    prefix: str
    workdir: str
    whole: bool = True

    @property
    def places(self) -> Places:
        return Places(self.prefix, self.workdir)


def clean_artifacts(request: Request, front: Front, *, unreachable: bool = False) -> Cleaning:
    """Delete the artifacts of the steps that the targets name.

    `unreachable`: instead, all below the prefixes that no step of the files names, nor what these build on or
    grow; further pipelines may stand among the targets. What is being made stays, and a development version.
    Records of runs are kept.
    """
    files = [one for one in request.targets if is_pipeline(one)]
    if unreachable and len(files) < len(request.targets):
        raise OptionError(
            "--unreachable takes files alone", hint="name further pipelines that share the prefix"
        )
    if not unreachable and not request.targets and not is_pipeline(request.file.rpartition(":")[0]):
        hint = "name steps, or add --unreachable for those that no step names any more"
        raise OptionError("clean --artifacts needs a step", hint=hint)
    if unreachable:
        groups = [
            one for file in (request.file, *files) for one in _loaded(replace(request, file=file, targets=()))
        ]
        found = _unreachable(groups)
    else:
        found = _named(_loaded(request), request)
    if not found.paths or not front.agree(found):
        return found
    held = list(_removed(found.paths))
    gone = tuple(path for path in found.paths if path not in held)
    return Cleaning(gone, (*found.left, *(Left(path, Stays.HELD) for path in held)), done=True)


def _removed(paths: Iterable[str]) -> Iterator[str]:
    """Remove them; those that cannot be removed because they are being made."""
    for path in paths:
        try:
            store_for(path).remove(path)
        except LockError:
            yield path


def _loaded(request: Request) -> list[_Steps]:
    """The steps of a pipeline, or of the files of a workflow."""
    if is_pipeline(request.file):
        opened = open_pipeline(request)
        steps, more = opened.pipeline.pulled()
        places = opened.places
        if opened.targets:
            names = named_steps(steps, Places(places.prefix, places.workdir), places.workdir)
            steps = tuple(names.chosen(opened.targets, opened.pipeline.file))
        return [_Steps(opened.pipeline.file, steps, places.prefix, places.workdir, whole=not more)]
    file = find_file(request.file)
    workdir = work_folder(file, request.workdir)
    workflow = read(file, ReadOptions(config=request.config, workdir=workdir))
    groups = Modules(workflow, request, workdir).groups()
    if not groups:
        raise OptionError(f"{file} has no steps", hint='name their file: [[steps]] module = "pipeline.py"')
    return [_Steps(file, steps, places.prefix, workdir) for steps, places in groups]


def _named(groups: Sequence[_Steps], request: Request) -> Cleaning:
    """The artifacts of the steps that are meant."""
    paths: list[str] = []
    left: list[Left] = []
    for group in groups:
        steps: Sequence[StepSpec] = group.steps
        if request.targets and not is_pipeline(request.file):
            names = named_steps(group.steps, group.places, group.workdir)
            steps = [step for target in request.targets for step in names.find(target)]
        for step in steps:
            path = group.places.of(step)
            seen = store_for(path).look(path, step.identity)
            if seen.state in (ArtifactState.COMPLETE, ArtifactState.TORN):
                _sort_in(path, paths, left)
    return Cleaning(tuple(dict.fromkeys(paths)), tuple(left))


def _sort_in(path: str, paths: list[str], left: list[Left]) -> None:
    if store_for(path).holder(path) is not None:
        left.append(Left(path, Stays.HELD))
    else:
        paths.append(path)


def _unreachable(groups: Sequence[_Steps]) -> Cleaning:
    identities: set[str] = set()
    reached: set[str] = set()
    prefixes: dict[str, None] = {}
    for group in groups:
        _see_whole(group)
        for step in _grown(group):
            identities.add(step.identity)
            reached.add(group.places.of(step))
            if step.output_path_prefix:
                prefixes[step.output_path_prefix] = None
        prefixes[group.prefix] = None
    paths: list[str] = []
    left: list[Left] = []
    for record in _records(prefixes):
        if record.identity in identities or record.path in reached:
            continue
        if record.version == "dev" or record.version.endswith("-dev"):
            left.append(Left(record.path, Stays.MUTABLE))
        else:
            _sort_in(record.path, paths, left)
    return Cleaning(tuple(dict.fromkeys(paths)), tuple(left))


def _see_whole(group: _Steps) -> None:
    if not group.whole:
        message = (
            f"{group.file} yields more steps than can be looked at, so nobody knows what it does not name"
        )
        raise OptionError(message, hint="name the steps whose artifacts are to go")


def _grown(group: _Steps) -> list[StepSpec]:
    """All steps of the group, those below them, and those that they have grown.

    Raises `OptionError` when a step that grows is not complete: nobody knows what it will grow.
    """
    found = recorded(group.steps, group.places)
    if found.growing:
        raise OptionError(
            Diagnostic(
                "grows-unknown",
                f"{step.name_with_hash} grows further steps, and is not made yet: these are not known",
                hint="run the pipeline first",
            )
            for step in found.growing
        )
    return found.steps


def _records(prefixes: Iterable[str]) -> Iterator[ArtifactRecord]:
    """The records below the prefixes, of artifacts that stand there."""
    for prefix in prefixes:
        bare = prefix.rstrip("/")
        for record in store_for(prefix).records(prefix):
            if record.path.startswith(f"{bare}/"):
                yield record

"""Deleting what tasks made: outputs, logs and benchmarks that the plan declares, never anything else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.named import Named, refuse_steps
from treadle.api.pipe import Planned, Request, is_pipeline, mask_of, plan_of, with_recorded
from treadle.api.session import Recovered, hold
from treadle.base.errors import OptionError
from treadle.base.files import look, remove, set_aside_from
from treadle.decide.evidence import changed
from treadle.decide.look import look_at, place_of
from treadle.engine.scratch import kept_scratch
from treadle.engine.slate import recorded_outputs
from treadle.plan.paths import PathIndex, relative_to
from treadle.plan.task import ScheduledTask
from treadle.records.event import key_of_task
from treadle.records.lock import LockNews
from treadle.records.past import Past


class Stays(StrEnum):
    """Why something that a task declares is not deleted."""

    UNRECORDED = "unrecorded"  # nobody knows that it was made here
    CHANGED = "changed"  # it is not as its task left it
    SOURCE = "source"  # a task reads it that no task makes, or it belongs to the workflow
    MUTABLE = "mutable"  # the artifact of a development version
    HELD = "held"  # somebody makes that artifact just now


class Left(Struct, frozen=True):
    """What stays, and why."""

    path: str
    why: Stays


class Cleaning(Struct, frozen=True):
    """What is to be deleted and what stays; `folders` were left empty and are gone, too. `done`: it was
    carried out."""

    paths: tuple[str, ...]
    left: tuple[Left, ...] = ()
    folders: tuple[str, ...] = ()
    done: bool = False


class Front(Protocol):
    """Whoever asked for it."""

    def say(self, news: LockNews | Recovered) -> None:
        """Something happened before anything could start."""
        ...

    def agree(self, found: Cleaning) -> bool:
        """This is what would be deleted; False: do not."""
        ...


def clean(
    request: Request,
    front: Front,
    *,
    unrecorded: bool = False,
    failed: bool = False,
    wait: bool = False,
    assume_dead: bool = False,
) -> Cleaning:
    """Delete what the tasks made that the targets name (all tasks without targets).

    `unrecorded`: also what nobody recorded or somebody changed since. `failed`: only what was set aside
    (`*.failed`), and private folders that were kept. Records stay: what is deleted here is made again by the
    next run.
    """
    if request.samples:
        raise OptionError("clean takes no --samples", hint="name the tasks or paths instead")
    if is_pipeline(request.file):
        hint = "add --artifacts and name steps, or --artifacts --unreachable"
        raise OptionError("steps have artifacts, not outputs", hint=hint)
    planned = plan_of(request)
    mask = mask_of(planned.workflow)
    with hold(planned.workdir, mask=mask, wait=wait, assume_dead=assume_dead, say=front.say) as session:
        if session.outdated:
            planned = plan_of(request)
        planned = with_recorded(planned, session.past)
        named = Named(planned.plan, request.targets, planned.workdir)
        if request.targets:
            refuse_steps(named.tasks(), "clean without --artifacts")
        sources = _Sources(planned, session.past)
        if failed:
            aside = _set_aside(named, sources, planned.workdir)
            found = Cleaning((*aside, *_private(named, planned, session.past)))
        else:
            found = _survey(planned, named, sources, session.past, unrecorded)
        if not found.paths or not front.agree(found):
            return found
        session.check()
        for path in found.paths:
            remove(place_of(path, planned.workdir))
        return replace(found, folders=tuple(_prune(found.paths, sources, planned.workdir)), done=True)


class _Sources:
    """What is never deleted: inputs that no task makes, the workflow file, scripts, what stood in output
    folders before; and what holds any."""

    def __init__(self, planned: Planned, past: Past) -> None:
        plan, workdir, flowdir = planned.plan, planned.workdir, planned.workflow.folder
        scripts = (task.command.script_file for task in plan.tasks.values())
        files = {place_of(one, workdir, flowdir) for one in scripts if one}
        files.add(os.path.abspath(planned.workflow.file))
        self._paths = {*plan.sources, *(relative_to(one, workdir) for one in files)} - plan.producer.keys()
        for task in plan.tasks.values():
            evidence = past.evidence(key_of_task(plan.name, task))
            self._paths.update(evidence.foreign if evidence is not None else ())
        self._index = PathIndex(self._paths)

    def hold(self, path: str) -> bool:
        """Whether `path` is one of them, or a folder with one inside."""
        return path in self._paths or self._index.has_below(path)


def _survey(planned: Planned, named: Named, sources: _Sources, past: Past, unrecorded: bool) -> Cleaning:
    going: dict[str, None] = {}
    left: dict[str, Left] = {}
    for task in named.tasks():
        for path, why in _declared(task, named, past, planned):
            if not os.path.lexists(place_of(path, planned.workdir)):
                continue
            if sources.hold(path):
                left[path] = Left(path, Stays.SOURCE)
            elif why is None or unrecorded:
                going[path] = None
            else:
                left[path] = Left(path, why)
    return Cleaning(tuple(going), tuple(one for path, one in left.items() if path not in going))


def _declared(
    task: ScheduledTask, named: Named, past: Past, planned: Planned
) -> Iterator[tuple[str, Stays | None]]:
    """Outputs, log and benchmark of a task, each with what speaks against deleting it."""
    for path in named.outputs(task):
        yield path, _doubt(task, path, past, planned)
    if named.is_whole(task):
        tried = past.attempt(key_of_task(planned.plan.name, task)) is not None
        for path in (task.log, task.benchmark):
            if path:
                yield path, None if tried else Stays.UNRECORDED


def _doubt(task: ScheduledTask, path: str, past: Past, planned: Planned) -> Stays | None:
    """Why it is not sure that this output is what a task made of it; None: it is sure."""
    maker = past.maker(path)
    before = recorded_outputs(past.evidence(maker)).get(path) if maker is not None else None
    if before is None:
        return Stays.UNRECORDED
    now = look_at(path, before, task.policy.digest_limit, planned.workdir, flowdir=planned.workflow.folder)
    return Stays.CHANGED if now is not None and changed(before, now) else None


def _set_aside(named: Named, sources: _Sources, workdir: str) -> Iterator[str]:
    """What failed attempts left beside the outputs."""
    names: dict[str, list[str]] = {}
    for task in named.tasks():
        for output in named.outputs(task):
            folder, name = os.path.split(output)
            if folder not in names:
                names[folder] = _names_aside(place_of(folder, workdir))
            for one in names[folder]:
                path = os.path.join(folder, one)
                if set_aside_from(one) == name and not sources.hold(path):
                    yield path


def _private(named: Named, planned: Planned, past: Past) -> Iterator[str]:
    """Private folders of failed attempts; where a job of an earlier run is at work, its folder stays."""
    workdir = planned.workdir
    for task in named.tasks():
        key = key_of_task(planned.plan.name, task)
        if task.policy.scratch and key not in past.flights:
            yield from (os.path.relpath(path, workdir) for path in kept_scratch(workdir, key))


def _names_aside(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if set_aside_from(name))
    except OSError:
        return []


def _prune(paths: Iterable[str], sources: _Sources, workdir: str) -> Iterator[str]:
    """Remove the folders of the work folder that are empty now: those of `paths`, then those above."""
    for path in paths:
        folder = os.path.dirname(path)
        while folder and not folder.startswith(("/", "..")) and not sources.hold(folder):
            stat = look(os.path.join(workdir, folder))
            if stat is not None:
                try:
                    os.rmdir(os.path.join(workdir, folder))
                except OSError:  # it is not empty, or not ours to remove
                    break
                yield folder
            folder = os.path.dirname(folder)

"""One task in front: its command and its environment as a run would make them, and nothing recorded."""

from __future__ import annotations

import os
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.pipe import Planned, Request, mask_of, plan_of, secrets_of, with_recorded
from treadle.backends.local_start import environment as whole_environment
from treadle.base.errors import OptionError, PlanError
from treadle.base.files import disk_error, look, make_parents, write_whole
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.machine import gpus_here, usable_cpus, usable_memory
from treadle.base.mask import Mask
from treadle.base.names import listing
from treadle.base.place import Diagnostic
from treadle.decide.look import place_of
from treadle.engine.backend import Submission
from treadle.engine.budget import Budget, impossible
from treadle.engine.compose import ATTEMPT, Composed, Place, compose, environment
from treadle.engine.scratch import Scratch, scratch_of
from treadle.plan.select import select
from treadle.plan.task import Command, ScheduledTask
from treadle.plan.tokens import shown
from treadle.records.lock import told
from treadle.records.owner import Life, life, read_owner
from treadle.records.past import load_past

_SHOWN = 10


class What(StrEnum):
    """What is wanted of the task."""

    RUN = "run"
    SHELL = "shell"  # an interactive shell in its environment
    SCRIPT = "script"  # only to see what would be executed


class Prepared(Struct, frozen=True, kw_only=True):
    """What to execute: `submission` with what is added to the environment, `env` the whole of it.

    `busy` names the run that is at work in the folder at this moment, if any is.
    """

    submission: Submission
    env: dict[str, str]
    mask: Mask
    busy: str = ""


def chosen(request: Request) -> tuple[Planned, ScheduledTask]:
    """The one task that the targets name, and its plan.

    Raises `OptionError` when the targets name no task or several.
    """
    planned = plan_of(request)
    if planned.base is not None:
        planned = with_recorded(planned, load_past(StateFolder(planned.workdir)))
    return planned, _one(planned, planned.asked or request.targets, request.file)


def prepare(planned: Planned, task: ScheduledTask, what: What = What.RUN) -> Prepared:
    """Make a task of a rule ready to be executed.

    Takes no lock and writes nothing under `.treadle/`. Raises `PlanError` when an input is missing that a run
    of it needs.
    """
    if what is What.RUN:
        _refuse_missing(planned, task)
    gpus = gpus_here()
    budget = Budget(threads=usable_cpus(), memory=usable_memory(), gpus=len(gpus))
    if refused := impossible(budget, [task]):
        raise PlanError(refused)
    for path in (*task.outputs, task.log, task.benchmark) if what is not What.SCRIPT else ():
        if path:
            make_parents(place_of(path, planned.workdir))
    submission = _submission(planned, _as_shell(task) if what is What.SHELL else task, budget)
    own = tuple(gpus[: task.resources.gpus])
    return Prepared(
        submission=submission,
        env=whole_environment(os.environ, submission, own, pooled=bool(gpus)),
        mask=mask_of(planned.workflow),
        busy=_busy(StateFolder(planned.workdir)),
    )


def _busy(state: StateFolder) -> str:
    seen = read_owner(state.lock)
    return told(seen.owner) if seen is not None and life(seen.owner) is Life.ALIVE else ""


def _one(planned: Planned, targets: tuple[str, ...], file: str) -> ScheduledTask:
    plan = planned.plan
    if not targets:
        raise OptionError("exec needs a task", hint=f"{listing(file)} lists them")
    named = select(plan, targets, workdir=planned.workdir, upstream=False)
    found = [task for task in plan.order if task in named]
    if len(found) > 1:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise OptionError(
            f"{' '.join(targets)} names {len(found)} tasks, and exec runs one",
            hint=f"name one of them: {', '.join(found[:_SHOWN])}{more}",
            code="several-tasks",
        )
    task = plan.tasks[found[0]]
    if task.skip is not None:
        raise OptionError(f"{task.id} is skipped, so there is nothing to run", hint=f"treadle why {task.id}")
    return task


def _refuse_missing(planned: Planned, task: ScheduledTask) -> None:
    missing = [path for path in task.inputs if look(place_of(path, planned.workdir)) is None]
    found = [_finding(planned, task, path) for path in missing]
    script = task.command.script_file
    if script and look(place_of(script, planned.workdir, planned.workflow.folder)) is None:
        message = f"the script {shown(script)} of {task.id} does not exist"
        found.append(Diagnostic("missing-script", message, task.place))
    if found:
        raise PlanError(found)


def _finding(planned: Planned, task: ScheduledTask, path: str) -> Diagnostic:
    maker = planned.plan.producer.get(path)
    message = f"the input {path} of {task.id} does not exist"
    hint = "no task makes it: it comes from outside"
    if maker is not None:
        hint = f"{maker} makes it: treadle run --force {maker}"
    return Diagnostic("missing-input", message, task.place, hint)


def _as_shell(task: ScheduledTask) -> ScheduledTask:
    """The task with an interactive shell for its command, after the same prelude."""
    kind = replace(task.policy.shell, strict=False)
    command = Command(text=f"exec {kind.executable} -i", env=task.command.env, secrets=task.command.secrets)
    return replace(task, command=command, policy=replace(task.policy, shell=kind))


def _submission(planned: Planned, task: ScheduledTask, budget: Budget) -> Submission:
    place = Place(planned.workdir, planned.workflow.folder, usable_memory())
    resources = budget.cap(task.resources)
    aside = f"/tmp/treadle-exec-{os.urandom(6).hex()}"
    made = compose(
        task,
        resources,
        place,
        text_file=f"{aside}/text.sh",
        input_list=f"{aside}/inputs",
        scratch=_scratch(planned, task, place, aside),
    )
    _write_aside(aside, task, made)
    added = environment(task, resources, place, run="", n=0, secrets=secrets_of(planned.workflow))
    del added[ATTEMPT]  # it belongs to no run; in a task of a run it stays that task's
    return Submission(
        task=task,
        attempt=1,
        n=0,
        name=task.id,
        argv=made.argv or ("true",),
        env=added,
        cwd=planned.workdir,
        log=os.devnull,
        resources=resources,
    )


def _scratch(planned: Planned, task: ScheduledTask, place: Place, aside: str) -> Scratch | None:
    """A private folder that is none of the attempts', which would be removed with it."""
    found = scratch_of(task, place, planned.plan.name, RunFolder(aside), 0)
    return None if found is None else replace(found, key=f"{found.key}-exec")


def _write_aside(folder: str, task: ScheduledTask, made: Composed) -> None:
    """The files that a command needs beside itself; they are left for the system to clean up."""
    if not (made.text_file or made.input_list or made.scratch_file):
        return
    try:
        os.mkdir(folder, 0o700)
    except OSError as error:
        raise disk_error("make the folder", folder, error) from error
    if made.text_file:
        write_whole(made.text_file, made.text.encode())
    if made.scratch_file:
        make_parents(made.scratch_file)
        write_whole(made.scratch_file, made.scratch_text.encode())
    if made.input_list:
        write_whole(made.input_list, "".join(f"{one}\n" for one in task.inputs).encode())

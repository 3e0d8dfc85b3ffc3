"""What a run would send to its scheduler: the same scripts and commands, made the same way, and not sent."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.backend_of import scheduler_of
from treadle.api.cluster import local_rules, scratch_dir
from treadle.api.pipe import View, mask_of, secrets_of
from treadle.base.errors import OptionError
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.machine import usable_memory
from treadle.base.names import job_name
from treadle.engine.backend import Submission
from treadle.engine.compose import Place, compose, environment
from treadle.engine.node import Node, link
from treadle.engine.scratch import scratch_of
from treadle.engine.units import Fits, Unit, can_join, units_of
from treadle.plan.task import ScheduledTask

RUN = "00000000T000000Z-0000"
"""What stands for the id of the run that there is not yet."""


class Sending(Struct, frozen=True):
    """One submission: its script as text, and the command, which may read a file as its standard input.

    `level` counts the stages of the plan from 1.
    """

    level: int
    script: str
    argv: tuple[str, ...]
    stdin: str = ""

    @property
    def command(self) -> str:
        """The command as it would be typed."""
        words = shlex.join(self.argv)
        return f"{words} < {shlex.quote(self.stdin)}" if self.stdin else words


class Sendings(Struct, frozen=True):
    """All submissions of a run, stage by stage, and the tasks that would run on this machine."""

    sent: tuple[Sending, ...]
    here: tuple[str, ...]


def sendings_of(view: View) -> Sendings:
    """What a run of this view would send, if the tasks of each stage became ready together.

    Nothing is written, and no scheduler asked. Raises OptionError where no scheduler is chosen.
    """
    cluster = view.workflow.cluster
    if cluster is None or not cluster.is_scheduler:
        message = "nothing is sent anywhere: the run is local"
        raise OptionError(message, hint="choose a scheduler with --profile or --backend")
    here = local_rules(view.workflow) or frozenset()
    run = view.state.run(RUN)
    mask = mask_of(view.workflow)
    backend = scheduler_of(view, cluster, mask=mask)
    try:
        number = 0
        sent: list[Sending] = []
        for level, jobs in enumerate(_stages(view, here, backend.fits_together), 1):
            batch: list[Submission] = []
            for job in jobs:
                unit = number + 1 if len(job) > 1 else 0
                numbers = {task.id: number + at for at, task in enumerate(job, 1)}
                for task in job:
                    after = tuple(numbers[need] for need in task.needs if need in numbers)
                    alone = _submission(view, task, run, numbers[task.id])
                    batch.append(replace(alone, unit=unit, after=after))
                number += len(job)
            for one in backend.drafts(batch):
                argv = tuple(map(mask.text, one.argv))
                sent.append(Sending(level, mask.text(one.script), argv, one.stdin))
    finally:
        backend.close()
    at_home = [task for task in view.decision.to_run() if _stays(view.plan.tasks[task], here)]
    return Sendings(tuple(sent), tuple(at_home))


def _stays(task: ScheduledTask, here: frozenset[str]) -> bool:
    return task.call is not None or task.rule in here


def _stages(view: View, here: frozenset[str], fits: Fits) -> Iterator[list[list[ScheduledTask]]]:
    """The jobs that go to the scheduler, by the level in the plan at which all of their tasks can begin, but
    for what they need of each other."""
    plan, running = view.plan, frozenset(view.decision.to_run())
    level = {task: at for at, tasks in enumerate(plan.groups) for task in tasks}
    stages: dict[int, list[list[ScheduledTask]]] = {}
    joined: set[str] = set()
    for unit in _units(view, here, fits):
        own = {node.task.id for node in unit.members}
        joined |= own
        first = [level[unit.members[0].task.id]]
        outer = [level[need] + 1 for node in unit.members for need in node.task.needs if need not in own]
        stages.setdefault(max(first + outer), []).append([node.task for node in unit.members])
    for task, at in level.items():
        if task in running and task not in joined and not _stays(plan.tasks[task], here):
            stages.setdefault(at, []).append([plan.tasks[task]])
    for at in sorted(stages):
        yield stages[at]


def _units(view: View, here: frozenset[str], fits: Fits) -> list[Unit]:
    """What goes as one job, as the engine has it."""
    tasks = view.plan.tasks
    nodes = {task: Node(tasks[task], view.decision.answers[task]) for task in view.decision.to_run()}
    gated = {rule for one in view.plan.sequences for rule in one.rules}
    link(nodes, nodes.values())

    def joins(node: Node) -> bool:
        return can_join(node, cutoff=True) and not _stays(node.task, here) and node.task.rule not in gated

    return units_of(nodes, joins, fits)[0]


def _submission(view: View, task: ScheduledTask, run: RunFolder, n: int) -> Submission:
    """The first attempt at a task, as the engine would hand it in."""
    place = Place(view.workdir, view.workflow.folder, usable_memory(), scratch_dir(view.workflow))
    relative = StateFolder("").run(RUN)  # from the work folder, where commands run
    made = compose(
        task,
        task.resources,
        place,
        text_file=run.attempt_text(n),
        input_list=relative.input_list(n),
        scratch=scratch_of(task, place, view.plan.name, run, n),
    )
    private = bool(task.command.secrets)
    return Submission(
        task=task,
        attempt=1,
        n=n,
        name=job_name(RUN, n),
        argv=made.argv,
        env=environment(task, task.resources, place, run=RUN, n=n, secrets=secrets_of(view.workflow)),
        cwd=view.workdir,
        log=run.private_log(n) if private else run.attempt_log(n),
        resources=task.resources,
        private_log=private,
    )

"""What a run would send to its scheduler: the same scripts and commands, made the same way, and not sent."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec import Struct

from treadle.api.backend_of import scheduler_of
from treadle.api.cluster import local_rules, scratch_dir
from treadle.api.pipe import View, mask_of, secrets_of
from treadle.base.errors import OptionError
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.machine import usable_memory
from treadle.base.names import job_name
from treadle.engine.backend import Submission
from treadle.engine.compose import Place, compose, environment
from treadle.engine.scratch import scratch_of
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
        for level, tasks in enumerate(_stages(view, here), 1):
            batch = [_submission(view, task, run, number + at) for at, task in enumerate(tasks, 1)]
            number += len(batch)
            for one in backend.drafts(batch):
                argv = tuple(map(mask.text, one.argv))
                sent.append(Sending(level, mask.text(one.script), argv, one.stdin))
    finally:
        backend.close()
    at_home = [task for task in view.decision.to_run() if _stays(view.plan.tasks[task], here)]
    return Sendings(tuple(sent), tuple(at_home))


def _stays(task: ScheduledTask, here: frozenset[str]) -> bool:
    return task.call is not None or task.rule in here


def _stages(view: View, here: frozenset[str]) -> Iterator[list[ScheduledTask]]:
    """The tasks that go to the scheduler, by their level in the plan."""
    running = frozenset(view.decision.to_run())
    for level in view.plan.groups:
        tasks = [view.plan.tasks[task] for task in level if task in running]
        if sent := [task for task in tasks if not _stays(task, here)]:
            yield sent


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

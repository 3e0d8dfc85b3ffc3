"""Tasks that make environments: they run where one that will run needs what is not there, and never else."""

from __future__ import annotations

import os
from collections.abc import Mapping

from treadle.decide.look import place_of
from treadle.decide.reason import Answer, EnvironmentNeeded, Verdict
from treadle.plan.environment import Making
from treadle.plan.task import ScheduledPlan

IDLE = Answer(Verdict.UP_TO_DATE, note="made")
_LONGEST = 4096  # bytes of the file that says that one is whole


def is_made(making: Making, workdir: str, flowdir: str) -> bool:
    """Whether the environment stands there whole, and where it was made: most cannot be moved."""
    place, probe, ready = (
        place_of(path, workdir, flowdir) for path in (making.place, making.probe, making.ready)
    )
    try:
        with open(ready, "rb") as file:
            said = file.read(_LONGEST)
    except OSError:
        return False
    return said == f"{making.digest} {place}\n".encode() and os.path.exists(probe)


def wake(plan: ScheduledPlan, answers: dict[str, Answer], made: Mapping[str, bool]) -> None:
    """Let the makings run that a task needs which will run, and those that are there for no task of the
    selection: they were selected themselves."""
    wanted: set[str] = set()
    for task, answer in list(answers.items()):
        environment = plan.tasks[task].policy.environment
        making = environment.making if environment is not None else None
        if making is None:
            continue
        wanted.add(making.task)
        if answer.verdict is Verdict.WILL_RUN and _is_due(making.task, answers, made):
            answers[making.task] = Answer(Verdict.WILL_RUN, (EnvironmentNeeded(by=task),))
    for task in made:
        if task not in wanted and _is_due(task, answers, made):
            answers[task] = Answer(Verdict.WILL_RUN, (EnvironmentNeeded(),))


def _is_due(task: str, answers: Mapping[str, Answer], made: Mapping[str, bool]) -> bool:
    return answers.get(task) is IDLE and not made.get(task, True)

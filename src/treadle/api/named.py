"""Which outputs a person means by rule names, task ids, patterns and paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from treadle.base.errors import OptionError
from treadle.base.place import Diagnostic
from treadle.plan.paths import PathIndex
from treadle.plan.select import path_of, select
from treadle.plan.task import ScheduledPlan, ScheduledTask

_SIGNS = frozenset("*?[")


class Named:
    """The tasks that targets name (not what they need), and which of their outputs.

    A rule, a task id and a pattern over ids stand for all outputs of their tasks, a path for itself or for
    the outputs below it; no targets for everything in the plan. Raises OptionError for what names nothing,
    and for a part of an output folder.
    """

    def __init__(self, plan: ScheduledPlan, targets: Sequence[str], workdir: str) -> None:
        self._plan = plan
        rules = {task.rule for task in plan.tasks.values()}
        names: list[str] = []
        paths: list[str] = []
        for one in dict.fromkeys(targets):
            is_name = one in plan.tasks or one in rules or f"@{one}" in rules or not _SIGNS.isdisjoint(one)
            (names if is_name else paths).append(one)
        self._found = frozenset(plan.tasks)
        if targets:
            self._found = select(plan, targets, workdir=workdir, upstream=False)  # tells all that is wrong
        self._whole = self._found
        self._paths: frozenset[str] = frozenset()
        if paths:
            makers = select(plan, paths, workdir=workdir, upstream=False)
            self._paths = _outputs_at(plan, paths, makers, workdir)
            self._whole = select(plan, names, workdir=workdir, upstream=False) if names else frozenset()

    def tasks(self) -> Iterator[ScheduledTask]:
        """The tasks, in plan order."""
        return (self._plan.tasks[task] for task in self._plan.order if task in self._found)

    def is_whole(self, task: ScheduledTask) -> bool:
        """Whether the task itself is meant, not only some outputs of it."""
        return task.id in self._whole

    def outputs(self, task: ScheduledTask) -> tuple[str, ...]:
        """Which outputs of one of these tasks are meant."""
        if self.is_whole(task):
            return task.outputs
        return tuple(path for path in task.outputs if path in self._paths)


def refuse_steps(tasks: Iterable[ScheduledTask], deed: str) -> None:
    """Raise `OptionError` where steps are named for what is done with the outputs of rules."""
    if names := [task.id for task in tasks if task.call is not None]:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise OptionError(
            f"{', '.join(names[:3])}{more}: {deed} is for outputs of rules, and steps have artifacts",
            hint="a complete artifact needs no record here; treadle clean --artifacts deletes artifacts",
            code="steps-have-artifacts",
        )


def _outputs_at(
    plan: ScheduledPlan, targets: Sequence[str], makers: frozenset[str], workdir: str
) -> frozenset[str]:
    """The outputs of the makers that stand at the paths or below them."""
    made = {path for task in makers for path in plan.tasks[task].outputs}
    index = PathIndex(made)
    found: set[str] = set()
    wrong = []
    for target in targets:
        path = path_of(plan, target, workdir)
        outputs = [path] if path in made else index.below(path)
        found.update(outputs)
        if not outputs:
            whole = index.nearest(path)
            message = f"{target} is only a part of the output {whole}"
            wrong.append(Diagnostic("part-of-output", message, hint=f"name the whole output: {whole}"))
    if wrong:
        raise OptionError(wrong)
    return frozenset(found)

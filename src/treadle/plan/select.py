"""Targets to tasks: what a person names on the command line, with all that it needs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice

from treadle.base.errors import OptionError
from treadle.base.names import did_you_mean, encode
from treadle.base.place import Diagnostic
from treadle.plan import graph
from treadle.plan.paths import PathIndex, is_url, normal, relative_to
from treadle.plan.task import ScheduledPlan

_CANDIDATES = 2000  # names that a mistyped one is compared with: each costs some 20 us


def select(
    plan: ScheduledPlan,
    targets: Sequence[str] = (),
    *,
    workdir: str = "",
    upstream: bool = True,
    downstream: bool = False,
) -> frozenset[str]:
    """The ids of the tasks that `targets` name, with all that these need, and on wish all that needs them.

    A target is a task id, the name of a rule or a step, an output or artifact path (relative to the work
    folder, or absolute below `workdir`), a folder with outputs below it, a file in an output folder, or a
    pattern over ids (`align/sample=S1*`). A name means a rule before a step (`@name` is the step alone), and
    both before a path (`./name`).
    Without targets: the tasks of rules marked `target`, of all rules if none is.
    Raises OptionError that tells every target which names nothing, with the nearest name.
    """
    found = set(_named(plan, targets, workdir)) if targets else _default(plan)
    if len(found) == len(plan.tasks):
        return frozenset(found)
    if downstream:
        found |= graph.downstream(plan, found)
    return graph.upstream(plan, found) if upstream else frozenset(found)


def with_pieces(plan: ScheduledPlan, tasks: frozenset[str]) -> frozenset[str]:
    """The tasks, and those that make pieces for them: parts of a rule are named `RULE.map` and `RULE.cut`."""
    found = set(tasks)
    for task in tasks:
        begin = f"{plan.tasks[task].rule}."
        waiting = [task]
        while waiting:
            more = [
                need for need in plan.tasks[waiting.pop()].needs if plan.tasks[need].rule.startswith(begin)
            ]
            waiting += [need for need in more if need not in found]
            found.update(more)
    return frozenset(found)


def path_of(plan: ScheduledPlan, target: str, workdir: str) -> str:
    """A path that a person names, as the plan spells it: relative where it leads below the work folder."""
    path = target if is_url(target) else normal(target)
    if not workdir or not path.startswith("/") or path in plan.producer:
        return path
    inside = relative_to(path, workdir)
    if inside.startswith("/"):  # a symbolic link may lead to the work folder, or the name of it be one
        folder, name = os.path.split(path)
        inside = relative_to(os.path.join(os.path.realpath(folder), name), os.path.realpath(workdir))
    return path if inside.startswith("/") else inside


def _default(plan: ScheduledPlan) -> set[str]:
    marked = {task.id for task in plan.tasks.values() if task.policy.target}
    return marked or set(plan.tasks)


def _named(plan: ScheduledPlan, targets: Sequence[str], workdir: str) -> set[str]:
    finder = _Finder(plan, workdir)
    found: set[str] = set()
    wrong = []
    for target in dict.fromkeys(targets):
        tasks = finder.find(target)
        if tasks:
            found.update(tasks)
        else:
            wrong.append(Diagnostic("unknown-target", finder.unknown(target), hint=finder.hint(target)))
    if wrong:
        raise OptionError(wrong)
    return found


class _Finder:
    """The names of a plan, indexed when the first is looked up."""

    def __init__(self, plan: ScheduledPlan, workdir: str) -> None:
        self._plan = plan
        self._workdir = workdir
        self._rules: dict[str, list[str]] = {}
        self._skipped: dict[str, list[str]] = {}
        for task in plan.tasks.values():
            self._rules.setdefault(task.rule, []).append(task.id)
            if task.skip:
                for path in task.outputs:
                    self._skipped.setdefault(path, []).append(task.id)
        self._made = PathIndex(plan.producer)

    def find(self, target: str) -> Iterable[str]:
        """The tasks that one target names; none when it names nothing."""
        if target in self._plan.tasks:
            return (target,)
        if target in self._rules:
            return self._rules[target]
        if tasks := self._step(target):
            return tasks
        return self._makers(self._path(target)) or self._matching(target)

    def _step(self, target: str) -> Iterable[str]:
        """The step tasks of this name, which may be that of one task (`train_0f3c9a1b2d4e`)."""
        named = self._rules.get(f"@{target}")
        if named:
            return named
        task = f"@{encode(target.removeprefix('@'))}"
        return (task,) if task in self._plan.tasks else ()

    def _path(self, target: str) -> str:
        return path_of(self._plan, target, self._workdir)

    def _makers(self, path: str) -> list[str]:
        """Who makes a path, the folder around it or what lies in it; else who would, but is skipped."""
        maker = self._plan.producer
        own = maker.get(path) or maker.get(self._made.nearest(path))
        if own:
            return [own]
        if self._made.has_below(path):
            return [maker[inside] for inside in self._made.below(path)]
        return self._skipped.get(path, [])

    def _matching(self, target: str) -> list[str]:
        if not any(sign in target for sign in "*?["):
            return []
        found = [task for task in self._plan.order if fnmatchcase(task, target)]
        return found or [task for task in self._plan.order if fnmatchcase(task, f"@{target}")]

    def unknown(self, target: str) -> str:
        """What is wrong with a target that names nothing."""
        if self._path(target) in self._plan.sources:
            return f"no task makes {target}: it is an input from outside"
        if any(sign in target for sign in "*?["):
            return f"no task id matches {target}"
        kinds = "rule, step, task or output" if any(map(_is_step, self._rules)) else "rule, task or output"
        return f"{target} is no {kinds} of this plan"

    def hint(self, target: str) -> str:
        """The nearest name of the same kind."""
        near = did_you_mean(target, islice(self._candidates(target), _CANDIDATES))
        return near or "treadle plan --tasks lists what there is"

    def _candidates(self, target: str) -> Iterator[str]:
        """Rules; then ids of the rule, or outputs of the folder, that the target begins with."""
        yield from self._rules
        yield from (rule[1:] for rule in self._rules if _is_step(rule))
        rule = target.partition("/")[0]
        yield from self._rules.get(rule, ())
        folder = self._path(target).rpartition("/")[0] or "."
        yield from self._made.below(folder)
        yield from self._plan.order


def _is_step(rule: str) -> bool:
    return rule.startswith("@")

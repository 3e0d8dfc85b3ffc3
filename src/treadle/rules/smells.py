"""What smells in a workflow that can be run: a rule nobody reaches, an output nobody reads, and such."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from treadle.base.place import Diagnostic, Place, Severity
from treadle.base.units import format_size
from treadle.plan.paths import PathIndex, normal
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.rules.schema import Rule, Workflow
from treadle.rules.text.placeholder import Mark, scan, spelled

_Tasks = Mapping[str, Sequence[ScheduledTask]]


class Machine(Struct, frozen=True):
    """What there is at most for one task: CPUs, bytes of memory, GPUs."""

    threads: int
    memory: int
    gpus: int


def smells(workflow: Workflow, plan: ScheduledPlan, coming: Container[str] = ()) -> list[Diagnostic]:
    """All that smells, rule by rule in the order of the file.

    `coming` are rules of which checkpoints may bring tasks: those may be what reads an output, too.
    """
    tasks: dict[str, list[ScheduledTask]] = {rule.name: [] for rule in workflow.rules}
    for task in plan.tasks.values():
        tasks.setdefault(task.rule, []).append(task)
    found: list[Diagnostic] = []
    unread = _Unread(workflow, plan)
    for rule in workflow.rules:
        if rule.name not in coming:
            found += _unreachable(rule, tasks[rule.name])
        if not coming:
            found += unread.of(rule, tasks[rule.name])
        found += _paths_that_are_no_inputs(rule, tasks[rule.name], workflow)
    return found


def _smell(code: str, message: str, place: Place, hint: str = "") -> Diagnostic:
    return Diagnostic(code, message, place, hint, Severity.WARNING)


def _unreachable(rule: Rule, tasks: Sequence[ScheduledTask]) -> Iterator[Diagnostic]:
    """No task of the rule can ever run: there is none, or its condition is false for each.

    A condition that asks the config is a switch, and being off is what it is for.
    """
    if "config." in rule.when:
        return
    if not tasks:
        message = f"rule {rule.name} makes no task: the sources of its wildcards have no values for it"
        yield _smell("unreachable-rule", message, rule.place, "fill the source, or take the rule out")
    if tasks and all(task.skip and task.skip.why == "when" for task in tasks):
        whom = "its one task" if len(tasks) == 1 else f"all of its {len(tasks)} tasks"
        message = f"rule {rule.name} never runs: its condition is false for {whom}"
        yield _smell("unreachable-rule", message, rule.at("when"))


class _Unread:
    """Outputs that no task reads and no target names; where no rule is a target, all outputs are wanted."""

    def __init__(self, workflow: Workflow, plan: ScheduledPlan) -> None:
        self._asked = any(rule.policy.target for rule in workflow.rules)
        self._read: set[str] = set()
        self._awaited: set[str] = set()
        for task in plan.tasks.values() if self._asked else ():
            if task.skip is None:
                self._read.update(task.inputs)
                self._awaited |= task.ordered
        self._index = PathIndex(self._read)

    def of(self, rule: Rule, tasks: Sequence[ScheduledTask]) -> Iterator[Diagnostic]:
        """One finding for each entry of `output` of which no path is read."""
        live = [task for task in tasks if task.skip is None]
        if not self._asked or rule.policy.target or not live:
            return
        if any(task.id in self._awaited for task in live):
            return
        for at, spec in enumerate(rule.outputs):
            paths = [task.outputs[at] for task in live if len(task.outputs) == len(rule.outputs)]
            if paths and not any(map(self._is_read, paths)):
                message = f"nobody reads {spec.text}, and rule {rule.name} is no target"
                hint = f"mark rule {rule.name} with target = true if it is a result of its own"
                yield _smell("unread-output", message, spec.place, hint)

    def _is_read(self, path: str) -> bool:
        return path in self._read or self._index.has_below(path) or bool(self._index.nearest(path))


def too_large(rule: Rule, machine: Machine) -> Iterator[Diagnostic]:
    """A request that this machine cannot meet."""
    wanted = rule.resources
    found = []
    if wanted.threads > machine.threads:
        found.append(("threads", f"{wanted.threads} threads", f"{machine.threads}"))
    if wanted.memory is not None and wanted.memory > machine.memory:
        there = f"{machine.memory / 1024**3:.1f}G"
        found.append(("memory", f"{format_size(wanted.memory)} of memory", there))
    if wanted.gpus > machine.gpus:
        found.append(("gpu", f"{wanted.gpus} GPUs" if wanted.gpus > 1 else "a GPU", f"{machine.gpus}"))
    for key, asked, there in found:
        place = rule.places.get(key) or rule.at("resources")
        message = f"this rule asks for {asked}, and this machine has {there}"
        hint = "it cannot run here" if key == "gpu" else "here it gets what there is; elsewhere it may fit"
        yield _smell("too-large", message, place, hint)


def _paths_that_are_no_inputs(
    rule: Rule, tasks: Sequence[ScheduledTask], workflow: Workflow
) -> Iterator[Diagnostic]:
    """A path-typed config key in a command whose file is none of the rule's: its change re-runs nothing."""
    paths = [key for key, one in workflow.declared.items() if one.type == "path" or one.must_exist]
    if not paths or not tasks:
        return
    config = workflow.config_of(rule)
    inputs = {key for spec in rule.inputs for key in _config_keys(spec.text)}
    inputs |= {key for entry in rule.fan_in for key in _config_keys(entry.pattern)}
    for field, text in _texts(rule):
        for key in _config_keys(text):
            if key not in paths or key in inputs or _is_declared(config.get(key), tasks):
                continue
            inputs.add(key)  # told once
            message = (
                f"the command of rule {rule.name} uses the path {{config.{key}}}, which is no input of it: "
                "when that file changes, nothing runs again"
            )
            hint = f'add "{{config.{key}}}" to its input'
            yield _smell("config-path-not-input", message, rule.at(field), hint)


def _texts(rule: Rule) -> Iterator[tuple[str, str]]:
    """The texts of a rule that are executed, or go into what is, each with its field."""
    for field in ("shell", "script", "pre_exec", "on_success", "on_failure"):
        yield field, getattr(rule, field)
    for value in rule.params.values():
        yield "params", spelled(value)
    for text in rule.envvars.values():
        yield "envvars", text


def _config_keys(text: str) -> Iterator[str]:
    for piece in scan(text):
        if isinstance(piece, Mark) and piece.root == "config" and piece.braces % 2:
            yield piece.attr


def _is_declared(value: object, tasks: Iterable[ScheduledTask]) -> bool:
    """Whether a task of the rule reads or makes that path, something in it, or (an index) what begins so."""
    path = normal(spelled(value))
    return any(
        one.startswith(path) or path.startswith(f"{one}/")
        for task in tasks
        for one in (*task.inputs, *task.outputs, task.log, task.benchmark)
        if one
    )

"""The plan for others to read: one JSON object, stable to the byte, and the digest of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import NODEFAULT, Raw, Struct
from msgspec.json import Encoder
from msgspec.structs import astuple

from treadle.base.digest import blake2b
from treadle.plan.environment import Environment
from treadle.plan.sequence import WORTH_SHARING
from treadle.plan.task import Call, Resources, ScheduledPlan, ScheduledTask
from treadle.plan.tokens import shown

SCHEMA = 1
_RECIPE = "treadle plan 1"
_AT_A_TIME = 1000  # tasks, on which the digest hangs
_IN_A_PIECE = 100
_DEFAULTS: dict[type[Struct], tuple[Any, ...]] = {}


def plan_object(plan: ScheduledPlan) -> dict[str, Any]:
    """The object of `plan --json` without the decision, ready for `msgspec.json.encode`.

    `schema`, `name`, `digest`, `order`, `groups`, `pools`, and `tasks` in plan order, each a dict of its
    own to which a caller may add. A token in a command stands as `{name}`. Places in files are left out:
    they hang on how the file was named.
    """
    return {**plan_head(plan), "tasks": list(task_objects(plan))}


def plan_head(plan: ScheduledPlan) -> dict[str, Any]:
    """The object of `plan_object` without its tasks."""
    return {
        "schema": SCHEMA,
        "name": plan.name,
        "digest": digest(plan),
        "order": plan.order,
        "groups": plan.groups,
        "pools": dict(plan.pools),
    }


def plan_texts(head: dict[str, Any], plan: ScheduledPlan) -> Iterator[str]:
    """The JSON of `head` with the tasks of the plan, in one line, piece by piece."""
    encode = Encoder().encode
    yield encode(head).decode()[:-1] + ',"tasks":['
    tasks, divider = task_objects(plan), ""
    while some := list(islice(tasks, _IN_A_PIECE)):
        yield divider + encode(some).decode()[1:-1]
        divider = ","
    yield "]}\n"


def task_objects(plan: ScheduledPlan) -> Iterator[dict[str, Any]]:
    """The tasks of `plan_object`, one by one: of a large plan, all at once would take much memory."""
    known: dict[int, Any] = {}
    return (_task_object(plan.tasks[task], known) for task in plan.order)


def digest(plan: ScheduledPlan) -> str:
    """The plan's identity: BLAKE2b-256 in hex over its name, its pools and its tasks in plan order.

    Commands count with their tokens unbound. Places in files and notes do not count, nor does the work
    folder. Fields at their defaults are left out, so a field that is added later changes no digest.
    """
    encoder = Encoder(order="deterministic")
    summed = blake2b(encoder.encode((_RECIPE, plan.name, plan.pools)), digest_size=32)
    known: dict[int, Any] = {}
    for start in range(0, len(plan.order), _AT_A_TIME):
        some = plan.order[start : start + _AT_A_TIME]
        summed.update(encoder.encode([_canonical(plan.tasks[task], known) for task in some]))
    return summed.hexdigest()


def _canonical(task: ScheduledTask, known: dict[int, Any]) -> dict[str, Any]:
    row = _fields(task)
    if task.call is None:
        row["command"] = _fields(task.command)
    else:
        row["call"] = _call(task.call)
    if "resources" in row:
        row["resources"] = _said(task.resources, known)
    if "policy" in row:
        row["policy"] = _said(task.policy, known)
    row.pop("place", None)
    return row


def _fields(value: Struct) -> dict[str, Any]:
    """The fields of a struct that are not at their defaults, whatever object holds the default."""
    defaults = _DEFAULTS.get(type(value)) or _DEFAULTS.setdefault(type(value), _defaults(type(value)))
    fields = zip(value.__struct_fields__, astuple(value), defaults)
    return {name: part for name, part, default in fields if part is not default and part != default}


def _defaults(kind: type[Struct]) -> tuple[Any, ...]:
    given = kind.__struct_defaults__
    return (NODEFAULT,) * (len(kind.__struct_fields__) - len(given)) + given


def _task_object(task: ScheduledTask, known: dict[int, Any]) -> dict[str, Any]:
    """What every task has, then what this one sets. A step has a call and no command."""
    command = task.command
    found: dict[str, Any] = {
        "id": task.id,
        "rule": task.rule,
        "wildcards": dict(task.wildcards),
        "inputs": task.inputs,
        "outputs": task.outputs,
        "needs": task.needs,
        "resources": {"threads": task.resources.threads, **_resources(task.resources, known)},
    }
    if task.call is not None:
        found["call"] = _call(task.call)
        optional: dict[str, Any] = {
            "ancient": sorted(task.ancient),
            "ordered": sorted(task.ordered),
            "policy": _said(task.policy, known),
            "skip": task.skip and {"why": task.skip.why, "what": task.skip.what},
        }
        found.update((key, value) for key, value in optional.items() if value)
        return found
    found["command"] = shown(command.text)
    optional = {
        "script": [shown(argument) for argument in command.script],
        "script_file": shown(command.script_file),
        "pre_exec": shown(command.pre_exec),
        "on_success": shown(command.on_success),
        "on_failure": shown(command.on_failure),
        "env": {name: shown(text) for name, text in command.env},
        "secrets": command.secrets,
        "ancient": sorted(task.ancient),
        "ordered": _sorted(task.ordered, known),
        "temporary": task.temporary,
        "protected": task.protected,
        "log": task.log,
        "benchmark": task.benchmark,
        "manifest": task.manifest,
        "born": sorted(task.born),
        "awaits": task.awaits,
        "environment": _environment(task.policy.environment, known),
        "makes": shown(task.making.place) if task.making else "",
        "policy": {name: value for name, value in _said(task.policy, known).items() if name != "environment"},
        "skip": task.skip and {"why": task.skip.why, "what": task.skip.what},
    }
    found.update((key, value) for key, value in optional.items() if value)
    return found


def _sorted(names: frozenset[str], known: dict[int, Any]) -> list[str]:
    """The names in order, which takes long where there are many: once for all the tasks that share them."""
    if len(names) <= WORTH_SHARING:
        return sorted(names)
    found: list[str] = known.get(id(names)) or known.setdefault(id(names), sorted(names))
    return found


def _environment(one: Environment | None, known: dict[int, Any]) -> dict[str, Any]:
    """What the command runs in, with the text that enters it: `"$@"` stands for the command there."""
    if one is None:
        return {}
    said = known.get(id(one.entry))
    if said is None:
        said = {"kind": one.kind, **dict(one.said)}
        optional = {"content": one.content, "made_by": one.making and one.making.task}
        said.update((key, value) for key, value in optional.items() if value)
        said["entry"] = shown(one.entry)
        known[id(one.entry)] = said
    return said


def _call(call: Call) -> dict[str, Any]:
    """What a step's task calls; without its code, which hangs on the Python that reads it."""
    found: dict[str, Any] = {
        "step": call.step,
        "identity": call.identity,
        "path": call.path,
        "version": call.version,
        "attrs": Raw(call.attrs.encode()),
        "where": call.where.value,
    }
    if call.mutable:
        found["mutable"] = True
    if call.grows:
        found["grows"] = True
    return found


def _resources(resources: Resources, known: dict[int, Any]) -> dict[str, Any]:
    said = _said(resources, known)
    return {**said, "groups": dict(resources.groups)} if resources.groups else said


def _said(value: Struct, known: dict[int, Any]) -> dict[str, Any]:
    """What a struct sets, structs in it too; made once for all the tasks that share the struct."""
    said = known.get(id(value))
    if said is None:
        said = {
            name: _said(part, known) if isinstance(part, Struct) else part
            for name, part in _fields(value).items()
        }
        known[id(value)] = said
    return said

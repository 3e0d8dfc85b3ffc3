"""What the tasks of each rule took against what they had asked for, from the records of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct

from treadle.base.files import read_regular
from treadle.base.layout import RunFolder
from treadle.plan.task import Resources
from treadle.records.event import End
from treadle.records.job import JobRecord

_MIB = 1024**2
_MUCH_MEMORY = 512 * _MIB  # so much asked for in vain is worth a word
_MUCH_TIME = 1800.0
_ENOUGH_RUN = 10.0  # seconds: shorter runs say little about CPU
_ROOM = 1.25  # a request should leave so much room


class Span(Struct, frozen=True):
    """The middle and the largest of several figures."""

    median: float
    most: float


class Hint(Struct, frozen=True):
    """A request that is far off: the field of `resources`, what would do, and which way it is off.

    `value` in threads, bytes or seconds. `tight`: hardly any room is left; else too much was asked for.
    """

    field: str
    asked: int
    used: float
    value: int
    tight: bool = False


class RuleUsage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The attempts of one rule that ran to their end; of what they asked for, the most.

    `memory` is the peak in bytes, `cpu` the CPUs that were busy on average, `waited` and `ran` in seconds.
    None: no attempt tells.
    """

    rule: str
    attempts: int
    threads: int
    asked_memory: int | None = None
    asked_time: int | None = None
    memory: int | None = None
    cpu: Span | None = None
    waited: Span | None = None
    ran: Span | None = None
    hints: tuple[Hint, ...] = ()


class _Task(Struct, frozen=True):
    id: str
    rule: str
    resources: Resources = Resources()


class _Plan(Struct, frozen=True):
    tasks: list[_Task]


def requests_of(folder: RunFolder) -> dict[str, tuple[str, Resources]]:
    """Rule and request of each task, by its id; empty where the plan of the run cannot be read."""
    try:
        rounds = [msgspec.json.decode(line) for line in read_regular(folder.plan).splitlines()]
        plans = [msgspec.convert(_readable(plan), type=_Plan) for plan in rounds]
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return {task.id: (task.rule, task.resources) for plan in plans for task in plan.tasks}


def _readable(plan: Any) -> Any:
    """Counted groups are a table there."""
    for task in plan["tasks"] if isinstance(plan, dict) and "tasks" in plan else ():
        task.get("resources", {}).pop("groups", None)
    return plan


def usage_of(jobs: Iterable[JobRecord], requests: Mapping[str, tuple[str, Resources]]) -> list[RuleUsage]:
    """What each rule took, in the order in which they first ran."""
    rules: dict[str, list[JobRecord]] = {}
    for job in jobs:
        if job.state in (End.SUCCEEDED, End.FAILED) and job.started is not None and job.ended is not None:
            rule = requests.get(job.task, (job.task.partition("/")[0], Resources()))[0]
            rules.setdefault(rule, []).append(job)
    return [_usage(rule, some, requests) for rule, some in rules.items()]


def _usage(rule: str, jobs: list[JobRecord], requests: Mapping[str, tuple[str, Resources]]) -> RuleUsage:
    asked = [requests[job.task][1] for job in jobs if job.task in requests] or [Resources()]
    memory = [job.memory for job in jobs if job.memory is not None]
    ran = [job.ended - job.started for job in jobs if job.ended is not None and job.started is not None]
    waited = [
        max(0.0, job.started - job.submitted)
        for job in jobs
        if job.started is not None and job.submitted is not None
    ]
    busy = [
        job.cpu / seconds
        for job, seconds in zip(jobs, ran, strict=True)
        if job.cpu is not None and seconds >= _ENOUGH_RUN
    ]
    found = RuleUsage(
        rule=rule,
        attempts=len(jobs),
        threads=max(one.threads for one in asked),
        asked_memory=max((one.memory for one in asked if one.memory is not None), default=None),
        asked_time=max((one.time_limit for one in asked if one.time_limit is not None), default=None),
        memory=max(memory, default=None),
        cpu=_span(busy),
        waited=_span(waited),
        ran=_span(ran),
    )
    return msgspec.structs.replace(found, hints=tuple(_hints(found)))


def _span(figures: list[float]) -> Span | None:
    return Span(median(figures), max(figures)) if figures else None


def _hints(one: RuleUsage) -> Iterable[Hint]:
    """Requests that are far off."""
    asked, used = one.asked_memory, one.memory
    if asked is not None and used is not None:
        enough = _nice(used * _ROOM)
        if used > 0.9 * asked:
            yield Hint("memory", asked, used, max(enough, asked + 1), tight=True)
        elif enough <= asked / 2 and asked - enough >= _MUCH_MEMORY:
            yield Hint("memory", asked, used, enough)
    if one.cpu is not None and one.threads > 1 and one.cpu.most <= one.threads / 2:
        yield Hint("threads", one.threads, one.cpu.most, max(1, math.ceil(one.cpu.most)))
    if one.asked_time is not None and one.ran is not None:
        if one.ran.most > 0.9 * one.asked_time:
            yield Hint("time_limit", one.asked_time, one.ran.most, _minutes(one.ran.most), tight=True)
        elif _minutes(one.ran.most) <= one.asked_time / 4 and one.asked_time >= _MUCH_TIME:
            yield Hint("time_limit", one.asked_time, one.ran.most, _minutes(one.ran.most))


def _nice(size: float) -> int:
    """Rounded up: to 128 MiB, above 2 GiB to whole ones of these."""
    unit = 128 * _MIB if size < 2048 * _MIB else 1024 * _MIB
    return math.ceil(size / unit) * unit


def _minutes(seconds: float) -> int:
    """Half as long again, rounded up to five minutes."""
    return math.ceil(seconds * 1.5 / 300) * 300

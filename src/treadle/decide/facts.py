"""One pass over the disk: all that the selected tasks read and make, beside what they left last time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.base.files import look
from treadle.decide.environments import is_made
from treadle.decide.look import Look, place_of, record_of
from treadle.decide.options import Options
from treadle.decide.scan import Scan
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.event import Evidence, FileRecord, key_of_task
from treadle.records.past import Past

if TYPE_CHECKING:
    from treadle.steps.record import Seen

_NO_ARTIFACTS: dict[str, Seen] = {}
_HINTS = 20  # missing sources whose folders are listed, to name what is there instead


class Recorded:
    """What past successes left, by task: read anew whenever somebody asks, since all of it at once weighs as
    much as the plan."""

    __slots__ = ("_keys", "_past")

    def __init__(self, past: Past) -> None:
        self._past = past
        self._keys: dict[str, str] = {}

    def add(self, task: str, key: str) -> Evidence | None:
        """Know a task by its evidence key, and give what it left."""
        self._keys[task] = key
        return self._past.evidence(key)

    def get(self, task: str) -> Evidence | None:
        """What the last success of a task left; None: there was none, or it does not count."""
        key = self._keys.get(task)
        return self._past.evidence(key) if key is not None else None


_NOTHING_RECORDED = Recorded(Past())


class Facts(Struct, frozen=True):
    """The disk as it was when it was looked at, and the evidence that it is to be compared with.

    `records` has every path that was looked at, scripts under their path with tokens: its record, with a
    digest where it is known; of what was removed on purpose (`evicted`) the tombstone; None where nothing
    is. `unread` are paths that are there and whose content is not known. `own` has, by task, folders as that
    task sees them (its own outputs left out). `nearby` are the names in the folders of missing sources,
    sorted. `evidence` is that of the last success, by task. `artifacts` has what stands at the path of each
    step's artifact, by task. `environments` says of each task that makes one whether it is made.
    """

    records: dict[str, FileRecord | None]
    evidence: Recorded = _NOTHING_RECORDED
    evicted: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    own: dict[str, dict[str, FileRecord]] = {}
    nearby: dict[str, tuple[str, ...]] = {}
    artifacts: Mapping[str, Seen] = {}
    environments: Mapping[str, bool] = {}

    def record(self, path: str) -> FileRecord | None:
        """What stands at `path`; None: it is not there, or was not looked at."""
        return None if path in self.evicted else self.records.get(path)

    def there(self, task: ScheduledTask, path: str) -> bool:
        """Whether something stands at `path`, a path of `task`."""
        if self.records.get(path) is not None and path not in self.evicted:
            return True
        return bool(self.own) and path in self.own.get(task.id, ())

    def look_for(self, task: ScheduledTask) -> Look:
        """A look with the eyes of `task`: tombstones stand in for what was removed on purpose."""
        own = self.own.get(task.id) if self.own else None
        if own is None:
            return self.records.get
        return lambda path: own.get(path) or self.records.get(path)


def gather(
    plan: ScheduledPlan,
    past: Past,
    options: Options,
    *,
    read: bool = False,
    artifacts: Mapping[str, Seen] = _NO_ARTIFACTS,
) -> Facts:
    """Look at the inputs, outputs and scripts of the selected tasks.

    `read`: contents are read even where there is no record to compare them with, so that evidence can be
    taken of them. `artifacts` were looked at already, when the steps were expanded. Raises `DiskError` for a
    path that cannot be looked at or read.
    """
    scan = Scan(options, read)
    recorded = Recorded(past)
    made: dict[str, bool] = {}
    for task in chosen(plan, options):
        if task.making is not None:
            made[task.id] = is_made(task.making, options.workdir, options.flowdir)
        elif task.skip is None and (task.inputs or task.call is None):
            scan.task(task, recorded.add(task.id, key_of_task(plan.name, task)))
    scan.read_contents()
    absent = [path for path, record in scan.seen.items() if record is None]
    evicted = {path: tomb for path in absent if (tomb := past.tombstone(path)) is not None}
    scan.seen.update(evicted)
    return Facts(
        records=scan.seen,
        evidence=recorded,
        evicted=frozenset(evicted),
        unread=frozenset(scan.fresh),
        own=scan.own,
        nearby=_nearby(plan, absent, options),
        artifacts=artifacts,
        environments=made,
    )


def glance(plan: ScheduledPlan, options: Options) -> Facts:
    """Which inputs and scripts of the selected tasks are there; no content is read, and no folder walked.

    Raises `DiskError` for a path that cannot be looked at.
    """
    tasks = [task for task in chosen(plan, options) if task.skip is None]
    paths = dict.fromkeys(path for task in tasks for path in (*task.inputs, task.command.script_file) if path)
    records: dict[str, FileRecord | None] = {}
    for path in paths:
        stat = look(place_of(path, options.workdir, options.flowdir))
        records[path] = None if stat is None else record_of(path, stat)
    absent = [path for path, record in records.items() if record is None]
    return Facts(records=records, nearby=_nearby(plan, absent, options))


def chosen(plan: ScheduledPlan, options: Options) -> Iterator[ScheduledTask]:
    """The selected tasks, in plan order."""
    tasks, selected = plan.tasks, options.selected
    if selected is None:
        return map(tasks.__getitem__, plan.order)
    return (tasks[task] for task in plan.order if task in selected)


def _nearby(plan: ScheduledPlan, absent: list[str], options: Options) -> dict[str, tuple[str, ...]]:
    """The names in the folders of the first missing sources that somebody must have."""
    missing = {path for path in absent if path in plan.sources}
    found: dict[str, tuple[str, ...]] = {}
    if not missing:
        return found
    readers = (task for task in chosen(plan, options) if not task.policy.optional)
    sought = dict.fromkeys(path for task in readers for path in task.inputs if path in missing)
    for path in islice(sought, _HINTS):
        folder = os.path.dirname(path)
        if folder not in found:
            try:
                found[folder] = tuple(sorted(os.listdir(place_of(folder, options.workdir) or ".")))
            except OSError:
                continue
    return found

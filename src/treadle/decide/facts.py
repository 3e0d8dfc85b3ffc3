"""One pass over the disk: every path of the selected tasks is looked at once, and read only where it must be.

A file is read only when its stat differs from a record whose digest it is to be compared with (or that
record was too young to be trusted), its size does not, and the task's digest limit allows it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice, repeat

from msgspec import Struct

from treadle.base.files import look
from treadle.decide.folder import folder_stat, own_below
from treadle.decide.look import Look, digest_of, look_at, place_of, proves, readable, record_of
from treadle.decide.options import Options
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.plan.tokens import MARK
from treadle.records.event import Evidence, FileRecord, evidence_key
from treadle.records.past import Past

_MANY = 64  # files to be read, from which on several threads read
_LARGE = 8 * 1024 * 1024  # bytes to be read, likewise
_THREADS = 4
_HINTS = 20  # missing sources whose folders are listed, to name what is there instead

_UNSEEN = FileRecord("", -1, 0, 0)
_NOT_BELOW = "/" + MARK  # how paths begin that are not relative to the work folder


class Facts(Struct, frozen=True):
    """The disk as it was when it was looked at, and the evidence that it is to be compared with.

    `records` has every path that was looked at, scripts under their path with tokens: its record, with a
    digest where it is known; of what was removed on purpose (`evicted`) the tombstone; None where nothing
    is. `unread` are paths that are there and whose content is not known. `own` has, by task, folders as that
    task sees them (its own outputs left out). `nearby` are the names in the folders of missing sources,
    sorted. `evidence` is that of the last success, by task.
    """

    records: dict[str, FileRecord | None]
    evidence: dict[str, Evidence] = {}
    evicted: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    own: dict[str, dict[str, FileRecord]] = {}
    nearby: dict[str, tuple[str, ...]] = {}

    def record(self, path: str) -> FileRecord | None:
        """What stands at `path`; None: it is not there, or was not looked at."""
        return None if path in self.evicted else self.records.get(path)

    def there(self, task: ScheduledTask, path: str) -> bool:
        """Whether something stands at `path`, a path of `task`."""
        return self.record(path) is not None or (bool(self.own) and path in self.own.get(task.id, ()))

    def look_for(self, task: ScheduledTask) -> Look:
        """A look with the eyes of `task`: tombstones stand in for what was removed on purpose."""
        own = self.own.get(task.id) if self.own else None
        if own is None:
            return self.records.get
        return lambda path: own.get(path) or self.records.get(path)


def gather(plan: ScheduledPlan, past: Past, options: Options, *, read: bool = False) -> Facts:
    """Look at the inputs, outputs and scripts of the selected tasks.

    `read`: contents are read even where there is no record to compare them with, so that evidence can be
    taken of them. Raises `DiskError` for a path that cannot be looked at or read.
    """
    scan = _Scan(options, read)
    found: dict[str, Evidence] = {}
    for task in chosen(plan, options):
        if task.skip is None:
            evidence = past.evidence(evidence_key(plan.name, task.id, task.outputs))
            scan.task(task, evidence)
            if evidence is not None:
                found[task.id] = evidence
    scan.read_contents()
    absent = [path for path, record in scan.seen.items() if record is None]
    evicted = {path: tomb for path in absent if (tomb := past.tombstone(path)) is not None}
    scan.seen.update(evicted)
    return Facts(
        records=scan.seen,
        evidence=found,
        evicted=frozenset(evicted),
        unread=frozenset(scan.fresh),
        own=scan.own,
        nearby=_nearby(plan, absent, options),
    )


def chosen(plan: ScheduledPlan, options: Options) -> Iterator[ScheduledTask]:
    """The selected tasks, in plan order."""
    tasks, selected = plan.tasks, options.selected
    if selected is None:
        return map(tasks.__getitem__, plan.order)
    return (tasks[task] for task in plan.order if task in selected)


class _Scan:
    """What has been seen so far. `fresh` are paths whose content is not known; `wanted` those of them that
    must be read, with the digest limit."""

    def __init__(self, options: Options, read: bool) -> None:
        self.workdir = options.workdir
        self.flowdir = options.flowdir
        self.root = os.path.join(options.workdir, "")
        self.read = read
        self.read_new = read or options.adopt
        self.seen: dict[str, FileRecord | None] = {}
        self.own: dict[str, dict[str, FileRecord]] = {}
        self.fresh: set[str] = set()
        self.wanted: dict[str, int | None] = {}
        self.now = time.time_ns()

    def task(self, task: ScheduledTask, evidence: Evidence | None) -> None:
        """Look at all that a task reads and makes, beside what it left last time."""
        limit, script = task.policy.digest_limit, task.command.script_file
        if evidence is None:
            self.paths(task.inputs, (), limit, self.read_new, task)
            self.paths(task.outputs, (), limit, self.read_new, None)
            if script:
                self.paths((script,), (), None, self.read_new, None)
        else:
            self.paths(task.inputs, evidence.inputs, limit, self.read, task)
            self.paths(task.outputs, evidence.outputs, limit, self.read, None)
            if script:
                self.paths((script,), (evidence.script,) if evidence.script else (), None, self.read, None)

    def paths(
        self,
        paths: tuple[str, ...],
        records: tuple[FileRecord, ...],
        limit: int | None,
        read: bool,
        reader: ScheduledTask | None,
    ) -> None:
        """Look at paths, those that nobody has looked at yet, and see whether the records tell what is in
        them, or ask to read it. (The one loop that every file goes through: it counts.)"""
        seen, fresh, root = self.seen, self.fresh, self.root
        known: dict[str, FileRecord] | None = None
        old: FileRecord | None
        for path, old in zip(paths, records if len(records) == len(paths) else repeat(None)):
            if old is None or old.path != path:
                if known is None:
                    known = {record.path: record for record in records}
                old = known.get(path)
            now = seen.get(path, _UNSEEN)
            if now is not _UNSEEN:
                if now is not None and (now.folder or path in fresh):
                    self.again(now, old, limit, read, reader)
                continue
            plain = path[0] not in _NOT_BELOW
            stat = look(root + path if plain else place_of(path, self.workdir, self.flowdir))
            if stat is None:
                seen[path] = None
            elif old is not None and proves(old, stat) and not stat.folder:
                seen[path] = old
            elif stat.folder:
                self.folder(path, old, limit, read, reader)
            else:
                now = seen[path] = record_of(path, stat)
                fresh.add(path)
                self.weigh(now, old, limit, read)

    def again(
        self,
        now: FileRecord,
        old: FileRecord | None,
        limit: int | None,
        read: bool,
        reader: ScheduledTask | None,
    ) -> None:
        if now.folder:
            self.folder(now.path, old, limit, read, reader)
        else:
            self.weigh(now, old, limit, read)

    def folder(
        self,
        path: str,
        old: FileRecord | None,
        limit: int | None,
        read: bool,
        reader: ScheduledTask | None,
    ) -> None:
        """The same for a folder; one that holds what its reader makes is looked at for this reader alone."""
        place = place_of(path, self.workdir, self.flowdir)
        without = own_below(reader, place, self.workdir) if reader is not None else ()
        if reader is not None and without:
            if old is None and not read:
                now: FileRecord | None = record_of(path, folder_stat(place, without))
            else:
                now = look_at(path, old, limit, self.workdir, flowdir=self.flowdir, reader=reader)
            if now is not None:
                self.own.setdefault(reader.id, {})[path] = now
            return
        now = self.seen.get(path)
        if now is None:
            now = self.seen[path] = record_of(path, folder_stat(place))
            self.fresh.add(path)
        if path in self.fresh:
            self.weigh(now, old, limit, read)

    def weigh(self, now: FileRecord, old: FileRecord | None, limit: int | None, read: bool) -> None:
        path = now.path
        if old is not None and proves(old, now):
            self.seen[path] = old
            self.fresh.discard(path)
            self.wanted.pop(path, None)
            return
        comparable = old is not None and old.digest and old.size == now.size and old.folder == now.folder
        if (read or comparable) and readable(now, limit):
            self.wanted.setdefault(path, limit)

    def read_contents(self) -> None:
        """Read what must be read; on several threads where that is much (reading and digesting let go of
        the interpreter's lock)."""
        if not self.wanted:
            return
        work = [(self.seen[path], limit) for path, limit in self.wanted.items()]
        size = sum(record.size for record, _ in work if record)
        if len(work) < _MANY and (size < _LARGE or len(work) == 1):
            digests = list(map(self.digest, self.wanted.items()))
        else:
            from concurrent.futures import ThreadPoolExecutor  # 10 ms of start-up for those who need it

            with ThreadPoolExecutor(_THREADS) as pool:
                digests = list(pool.map(self.digest, self.wanted.items(), chunksize=16))
        for path, digest in zip(self.wanted, digests):
            now = self.seen[path]
            if now is not None:
                self.seen[path] = record_of(path, now, digest, self.now)
        self.fresh.difference_update(self.wanted)

    def digest(self, item: tuple[str, int | None]) -> str:
        path, limit = item
        now = self.seen[path]
        return digest_of(place_of(path, self.workdir, self.flowdir), now is not None and now.folder, limit)


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

"""The scan of the disk: each path is looked at once, and read only where that decides something.

A file is read only when its stat differs from a record whose digest it is to be compared with (or that
record was too young to be trusted), its size does not, and the digest limit of a task allows it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from itertools import repeat

from treadle.base.errors import DiskError
from treadle.base.files import look
from treadle.base.layout import is_artifact_record
from treadle.decide.folder import folder_stat, own_below
from treadle.decide.look import digest_of, look_at, place_of, proves, readable, record_of
from treadle.decide.options import Options
from treadle.plan.task import ScheduledTask
from treadle.plan.tokens import MARK
from treadle.records.event import Evidence, FileRecord

_MANY = 64  # files to be read, from which on several threads read
_LARGE = 8 * 1024 * 1024  # bytes to be read, likewise
_THREADS = 4
_TOGETHER = 16  # files that one thread reads in a row at most: handing one over costs as much as reading it

_UNSEEN = FileRecord("", -1, 0, 0)
_NOT_BELOW = "/" + MARK  # how paths begin that are not relative to the work folder


class Scan:
    """What has been seen so far. `fresh` are paths whose content is not known; `wanted` those of them that
    must be read, with the digest limit."""

    def __init__(self, options: Options, read: bool) -> None:
        self.workdir = options.workdir
        self.flowdir = options.flowdir
        self.root = os.path.join(options.workdir, "")
        self.read = read
        self.adopt = options.adopt
        self.seen: dict[str, FileRecord | None] = {}
        self.own: dict[str, dict[str, FileRecord]] = {}
        self.fresh: set[str] = set()
        self.wanted: dict[str, int | None] = {}
        self.now = time.time_ns()

    def task(self, task: ScheduledTask, evidence: Evidence | None) -> None:
        """Look at all that a task reads and makes, beside what it left last time."""
        limit, script = task.policy.digest_limit, task.command.script_file
        if evidence is None:
            self.paths(task.outputs, (), limit, self.read, None)
            read = self.read or (self.adopt and all(map(self.seen.get, task.outputs)))
            if read:
                self.paths(task.outputs, (), limit, read, None)
            self.paths(task.inputs, (), limit, read, task)
            if script:
                self.paths((script,), (), None, read, None)
        else:
            self.paths(task.inputs, evidence.inputs, limit, self.read, task)
            self.paths(task.outputs, evidence.outputs, limit, self.read, None)
            if script:
                self.paths((script,), (evidence.script,) if evidence.script else (), None, True, None)

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
            if records and (old is None or old.path != path):
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
        comparable = (
            old is not None
            and old.digest
            and old.folder == now.folder
            and (old.size == now.size or is_artifact_record(path))  # that holds times as well
        )
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
            digests = self.digests(self.wanted.items())
        else:
            from concurrent.futures import ThreadPoolExecutor  # 10 ms of start-up for those who need it

            items = list(self.wanted.items())
            size = min(_TOGETHER, len(items) // _THREADS + 1)
            parts = [items[at : at + size] for at in range(0, len(items), size)]
            with ThreadPoolExecutor(_THREADS) as pool:
                digests = [digest for part in pool.map(self.digests, parts) for digest in part]
        for path, digest in zip(self.wanted, digests):
            now = self.seen[path]
            if now is not None:
                self.seen[path] = None if digest is None else record_of(path, now, digest, self.now)
        self.fresh.difference_update(self.wanted)

    def digests(self, items: Iterable[tuple[str, int | None]]) -> list[str | None]:
        return list(map(self.digest, items))

    def digest(self, item: tuple[str, int | None]) -> str | None:
        """None: it went away since it was looked at, as outputs do under a run: it is not there."""
        path, limit = item
        now = self.seen[path]
        place = place_of(path, self.workdir, self.flowdir)
        try:
            return digest_of(place, now is not None and now.folder, limit)
        except DiskError as error:
            if isinstance(error.__cause__, FileNotFoundError) and not os.path.isdir(place):
                return None
            raise

"""What is looked at before and after an attempt: inputs and script, outputs, their digests, the evidence.

Before it only stats are taken. Contents are read after a success, and only those that nobody in this run
has read: an input that kept its stat meanwhile is still what the attempt read. What one task made is
known to those that read it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.digest import blake2b
from treadle.base.files import look, set_aside_from
from treadle.decide.evidence import take
from treadle.decide.folder import folder_stat, own_below
from treadle.decide.look import digest_of, place_of, readable, record_of
from treadle.engine.backend import Witnessed
from treadle.engine.checksum import Checksum, Summing, large, summing
from treadle.engine.witness import moved_inputs, with_digests
from treadle.plan.task import ScheduledTask
from treadle.records.event import Evidence, FileRecord

# What may be read on the loop's own thread after one task: about a quarter of a millisecond of digesting.
SMALL = 256 * 1024
FEW = 32
NOTHING = blake2b(digest_size=32).hexdigest()


class Reading(Struct, frozen=True):
    """A content that must be read: where it stands, and its record without digest.

    `made`: an attempt just made it, so that size 0 means empty (in /proc, of which nothing is made, it does
    not); marks that a task is done are read without being opened, which would be a twentieth of its cost.
    """

    record: FileRecord
    place: str
    limit: int | None
    without: tuple[str, ...] = ()
    made: bool = False

    def read(self) -> FileRecord:
        """The record with its digest. Raises `DiskError`."""
        record = self.record
        if self.made and not record.size and not record.folder:
            digest = NOTHING
        else:
            digest = digest_of(self.place, record.folder, self.limit, self.without)
        return record_of(record.path, record, digest, time.time_ns())


class Contents(Struct, frozen=True):
    """What was read after a success: records with digests, and the checksums that the rule asks for."""

    records: list[FileRecord]
    checksums: tuple[Checksum, ...] = ()


class Made(Struct, frozen=True):
    """What an attempt left after exit 0.

    `missing` outputs fail it; `untouched` ones stood there before and are as they were. `later` has the
    inputs as they are now, where any of them was changed meanwhile. `foreign` as in the evidence, before
    which `readings` are to be done. `lagging` outputs do not look as the job says that it left them, and
    `moved` inputs were others when it began than when it was sent off. `summing`: what a rule with `checksum`
    wants to know.
    """

    task: ScheduledTask
    before: dict[str, FileRecord]
    after: dict[str, FileRecord]
    later: dict[str, FileRecord] | None
    missing: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()
    foreign: tuple[str, ...] = ()
    lagging: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    summing: Summing | None = None

    @property
    def is_small(self) -> bool:
        """Whether reading it all takes no longer than the loop may stand still."""
        size = 0
        if self.summing is not None and large((path for path, _ in self.summing.paths), self.after, SMALL):
            return False
        for one in self.readings:
            if one.record.folder:
                return False
            size += one.record.size
        return size <= SMALL and len(self.readings) <= FEW

    def read(self) -> Contents:
        """Read what must be read. Raises `DiskError`."""
        sums = self.summing.sums() if self.summing is not None else ()
        return Contents([one.read() for one in self.readings], sums)


class Eyes:
    """Looks at the paths of tasks, and remembers what was read. One for a run, on the loop's thread."""

    def __init__(
        self, workdir: str, flowdir: str, known: Mapping[str, FileRecord | None] | None = None
    ) -> None:
        self.workdir = workdir
        self.flowdir = flowdir
        self._known = {path: record for path, record in (known or {}).items() if record and record.digest}
        self.made: dict[str, FileRecord] = {}  # temporary outputs of this run
        self.foreign: set[str] = set()  # what stood in output folders before this run made them

    def place(self, path: str) -> str:
        """Where a path of the plan stands."""
        return place_of(path, self.workdir, self.flowdir)

    def known(self, path: str) -> FileRecord | None:
        """What was read of `path` last; whether it still is that is told by its stat alone."""
        return self._known.get(path)

    def learn(self, records: Iterable[FileRecord]) -> None:
        """Remember digests that were just taken."""
        for record in records:
            if record.digest:
                self._known[record.path] = record

    def at(self, path: str, reader: ScheduledTask | None = None) -> FileRecord | None:
        """What stands at `path`: with its digest where that is known for this very stat. Raises `DiskError`.

        A folder that `reader` reads is looked at without what the task itself makes in it.
        """
        place = place_of(path, self.workdir, self.flowdir)
        stat = look(place)
        if stat is None:
            return None
        if stat.folder:
            stat = folder_stat(place, own_below(reader, place, self.workdir) if reader is not None else ())
        known = self._known.get(path)
        if (
            known is not None
            and known.mtime == stat.mtime
            and known.size == stat.size
            and known.inode == stat.inode
            and known.folder == stat.folder
        ):
            return known
        return record_of(path, stat)

    def before(self, task: ScheduledTask) -> dict[str, FileRecord]:
        """The inputs and the script as an attempt finds them; what is not there is left out."""
        found: dict[str, FileRecord] = {}
        for path in task.inputs:
            record = self.at(path, task)
            if record is not None:
                found[path] = record
        if task.command.script_file:
            record = self.at(task.command.script_file)
            if record is not None:
                found[task.command.script_file] = record
        return found

    def unread_bytes(self, task: ScheduledTask) -> int:
        """How much would have to be read to know the contents of a task's inputs and outputs."""
        records = (self.at(path, task) for path in (*task.inputs, *task.outputs))
        limit = task.policy.digest_limit
        return sum(one.size for one in records if one and not one.digest and readable(one, limit))

    def after(
        self,
        task: ScheduledTask,
        before: dict[str, FileRecord],
        standing: Mapping[str, FileRecord],
        foreign: Collection[str] = (),
        written: Witnessed | None = None,
    ) -> Made:
        """Look at what exit 0 left. `standing` are the outputs that stood there when it began, and with a
        folder what was in it; `foreign` what the last success knew as such; `written` what the job noted."""
        after: dict[str, FileRecord] = {}
        missing: list[str] = []
        untouched: list[str] = []
        for path in task.outputs:
            record = self.at(path)
            if record is None:
                missing.append(path)
                continue
            after[path] = record
            if standing and same(standing.get(path), record):
                untouched.append(path)
        if missing:
            return Made(task, before, after, None, tuple(missing))
        lagging: tuple[str, ...] = ()
        if written is not None:
            after, lagging = with_digests(task, after, written)
        now = self.before(task)
        moved = now != before and (
            len(now) != len(before) or any(not same(record, now.get(path)) for path, record in before.items())
        )
        return Made(
            task,
            before,
            after,
            now if moved else None,
            (),
            tuple(untouched),
            tuple(self._unread(task, before, now, after)),
            self._foreign(task, standing, foreign),
            lagging,
            moved_inputs(task, before, written) if written is not None else (),
            summing(task, after, {path: self.place(path) for path in after}, written)
            if task.policy.checksum
            else None,
        )

    def _foreign(
        self, task: ScheduledTask, standing: Mapping[str, FileRecord], known: Collection[str]
    ) -> tuple[str, ...]:
        """The files below output folders that are as they stood there before, but for what earlier attempts
        left: of a resumable task anything, of others what was set aside."""
        inside = [one for path, one in standing.items() if path not in task.outputs]
        if task.policy.resumable:
            inside = [one for one in inside if one.path in known]
        return tuple(
            sorted(
                one.path
                for one in inside
                if self._stands(one) and not any(map(set_aside_from, one.path.split("/")))
            )
        )

    def _stands(self, record: FileRecord) -> bool:
        """Whether a file is still the one of the record, links not followed."""
        try:
            stat = os.lstat(self.place(record.path))
        except OSError:
            return False
        return (stat.st_size, stat.st_mtime_ns, stat.st_ino) == (record.size, record.mtime, record.inode)

    def _unread(
        self,
        task: ScheduledTask,
        before: Mapping[str, FileRecord],
        now: Mapping[str, FileRecord],
        after: Mapping[str, FileRecord],
    ) -> Iterable[Reading]:
        limit = task.policy.digest_limit
        for path, record in before.items():
            if not record.digest and same(record, now.get(path)):
                size_limit = None if path == task.command.script_file else limit
                if readable(record, size_limit):
                    place = self.place(path)
                    without = own_below(task, place, self.workdir) if record.folder else ()
                    yield Reading(record, place, size_limit, without)
        for path, record in after.items():
            if not record.digest and readable(record, limit):
                yield Reading(record, self.place(path), limit, made=True)

    def evidence(
        self,
        made: Made,
        read: Contents,
        whole: ScheduledTask | None = None,
        lost: tuple[str, ...] = (),
    ) -> Evidence:
        """What the success leaves, with the contents that were read; of a gather that went on without some
        of its inputs (`lost`) it is that of the `whole` task."""
        fresh = {record.path: record for record in read.records}
        if fresh:
            self.learn(fresh.values())
            before = {path: fresh.get(path, record) for path, record in made.before.items()}
            after = {path: fresh.get(path, record) for path, record in made.after.items()}
        else:
            before, after = made.before, made.after
        task = made.task if whole is None else whole
        evidence = take(task, before, after, later=made.later, foreign=made.foreign, partial=lost)
        if read.checksums:
            evidence = replace(evidence, checksums=read.checksums)
        if made.moved:
            evidence = replace(evidence, stale=tuple(dict.fromkeys((*evidence.stale, *made.moved))))
        self.foreign.update(made.foreign)
        if made.task.temporary:
            self.made.update((record.path, record) for record in evidence.outputs)
        return evidence


def same(one: FileRecord | None, other: FileRecord | None) -> bool:
    """Both are there, and nothing in their stats differs."""
    return (
        one is not None
        and other is not None
        and one.size == other.size
        and one.mtime == other.mtime
        and one.inode == other.inode
        and one.folder == other.folder
    )

"""Attempts that wait to be submitted, put together: equal ones of one rule go as one array.

    attempts -> jobs (one attempt each, a pack, a unit) -> one submission (a job alone, or an array of them)

They wait a little for company, as their siblings come when what they need has ended. Nobody waits where
nothing is in flight whose end could bring one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from treadle.backends.cluster.held import Held
from treadle.backends.cluster.packs import in_a_row
from treadle.backends.cluster.script_task import JobElement
from treadle.plan.task import Resources

_QUIET = 0.2  # of the longest wait: after so long without a newcomer, none is expected


class Likeness(Struct, frozen=True):
    """What elements of one array have in common: all that is asked of the scheduler for them."""

    rule: str
    resources: Resources
    restartable: bool
    signal_before: int
    cwd: str
    exclude: tuple[str, ...]
    unit: bool


Batch = list[list[Held]]
"""What goes as one submission: its jobs (elements of an array), each with its attempts in their order."""


class _Group:
    __slots__ = ("first", "held", "last", "pack")

    def __init__(self, now: float, pack: int) -> None:
        self.first = self.last = now
        self.pack = pack
        self.held: deque[list[Held]] = deque()  # attempts, or units


class Waiting:
    """Attempts in the order in which they came, by their likeness; `longest` is how long one waits for
    company, in seconds, and `pack` how many such as a given one make a job."""

    def __init__(self, longest: float, pack: Callable[[Held], int] = lambda held: 1) -> None:
        self._longest = longest
        self._pack = pack
        self._groups: dict[Likeness, _Group] = {}
        self._whole: deque[Batch] = deque()
        self._dropped: set[int] = set()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, job: list[Held], now: float) -> None:
        """One more attempt, or all of a unit."""
        like = likeness(job)
        group = self._groups.get(like)
        if group is None:
            group = self._groups[like] = _Group(now, self._pack(job[0]) if len(job) == 1 else 1)
        group.held.append(job)
        group.last = now
        self._count += len(job)

    def drop(self, held: Held) -> None:
        """It is not to be submitted any more."""
        self._dropped.add(held.n)
        self._count -= 1

    def put_back(self, batch: Batch, *, whole: bool, now: float) -> None:
        """What was not taken is to go first, `whole`: just as it was."""
        jobs = [left for job in batch if (left := [held for held in job if held.ended is None])]
        kept = [held for job in jobs for held in job]
        self._count += len(kept)
        if whole and kept:
            self._whole.append(jobs)
        elif kept:
            entries = jobs if _is_unit(kept[0]) else [[held] for held in kept]
            like, early = likeness(entries[0]), now - self._longest
            pack = 1 if _is_unit(kept[0]) else self._pack(kept[0])
            group = self._groups.get(like) or _Group(early, pack)
            group.held.extendleft(reversed(entries))
            group.first = early
            self._groups = {like: group, **self._groups}

    def take(self, most: int, now: float, *, alone: bool) -> Batch:
        """The next submission, of at most `most` jobs; `alone`: nothing is in flight that could bring
        company."""
        while self._whole and len(self._whole[0]) <= most:
            if batch := [left for job in self._whole.popleft() if (left := self._living(job))]:
                return batch
        for like, group in list(self._groups.items()):
            if not self._is_ready(group, most, now, alone):
                continue
            batch = []
            while group.held and len(batch) < most:
                if job := self._next_job(group):
                    batch.append(job)
            if not group.held:
                del self._groups[like]
            if batch:
                return batch
        return []

    def _next_job(self, group: _Group) -> list[Held]:
        job: list[Held] = []
        while group.held and len(job) < group.pack:
            job += self._living(group.held.popleft())
        return job

    def _living(self, batch: list[Held]) -> list[Held]:
        if not self._dropped:
            self._count -= len(batch)
            return batch
        kept = [held for held in batch if held.n not in self._dropped]
        self._dropped.difference_update(held.n for held in batch)
        self._count -= len(kept)
        return kept

    def _is_ready(self, group: _Group, most: int, now: float, alone: bool) -> bool:
        return alone or len(group.held) >= most * group.pack or now >= self._due(group)

    def _due(self, group: _Group) -> float:
        return min(group.first + self._longest, group.last + _QUIET * self._longest)

    def due(self) -> float | None:
        """When the first of them has waited long enough."""
        if self._whole:
            return 0.0
        return min(map(self._due, self._groups.values()), default=None)


def _is_unit(held: Held) -> bool:
    return held.submission is not None and held.submission.unit > 0


def likeness(job: list[Held]) -> Likeness:
    """What must be equal of jobs."""
    some = [held.submission for held in job if held.submission is not None]
    first, policies = some[0], [one.task.policy for one in some]
    return Likeness(
        rule="+".join(one.task.rule for one in some),
        resources=in_a_row([one.resources for one in some], None),
        restartable=all(policy.restartable for policy in policies),
        signal_before=max(policy.signal_before_end or 0 for policy in policies),
        cwd=first.cwd,
        exclude=job[0].exclude,
        unit=_is_unit(job[0]),
    )


def elements_of(batch: Batch, flowdir: str) -> list[JobElement]:
    """What the wrapper is made of: the attempts of each job."""
    return [
        JobElement(
            submissions=tuple(held.submission for held in job if held.submission is not None),
            limits=tuple(held.limit or 0 for held in job if held.submission is not None),
            independent=True,
            flowdir=flowdir,
        )
        for job in batch
    ]

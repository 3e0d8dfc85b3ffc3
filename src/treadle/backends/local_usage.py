"""Peak memory of living attempts, sampled from /proc, and signs of the kernel's out-of-memory killer.

The rusage of a spawned child cannot be used: Linux counts in what its parent had when it was made.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable

from treadle.backends.local_attempt import Attempt
from treadle.base.groups import Process, all_processes
from treadle.base.machine import oom_kills

FIRST = 0.1  # seconds from the start of an attempt to the first look at it
_LAST = 5.0
_SHARE = 100  # a look may take one hundredth of the time
_HIGH_WATER = re.compile(rb"^VmHWM:\s*([0-9]+) kB", re.MULTILINE)


class MemorySampler:
    """Looks at all living attempts in one pass over /proc, seldom enough to cost nearly nothing.

    An attempt is looked at after 0.1 s, then each time that its age has doubled, at least every 5 s. Its
    memory is the largest sum of what its processes held at one look (pages that they share count for
    each), and at least the high-water mark of any one of them.
    """

    def __init__(self) -> None:
        self.next_at: float | None = None
        self._not_before = 0.0

    def began(self, attempt: Attempt) -> None:
        attempt.sample_at = attempt.begun_at + FIRST
        if self.next_at is None or attempt.sample_at < self.next_at:
            self.next_at = max(attempt.sample_at, self._not_before)

    def sample(self, attempts: Iterable[Attempt], now: float) -> None:
        """Look, if it is time for any of them; and reckon when to look next."""
        living = list(attempts)
        if any(attempt.sample_at <= now for attempt in living):
            _look(living)
            for attempt in living:
                age = now - attempt.begun_at
                attempt.sample_at = now + min(max(age, FIRST), _LAST)
            self._not_before = now + _SHARE * (time.monotonic() - now)
        soonest = min((attempt.sample_at for attempt in living), default=None)
        self.next_at = None if soonest is None else max(soonest, self._not_before)


def _look(attempts: list[Attempt]) -> None:
    groups: dict[int, list[Process]] = defaultdict(list)
    for one in all_processes():
        groups[one.group].append(one)
    for attempt in attempts:
        members = groups.get(attempt.child.pid, [])
        attempt.peak = max(
            attempt.peak,
            sum(one.resident for one in members),
            max((_high_water(one.pid) for one in members), default=0),
        )


def _high_water(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            found = _HIGH_WATER.search(file.read())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


class OomWatch:
    """Whether the kernel killed for lack of memory since an attempt began."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._seen = oom_kills(root)
        self._at = time.monotonic()

    def seen(self, now: float) -> tuple[int, int]:
        """The counts, at most a second old."""
        if now - self._at > 1.0:
            self._seen, self._at = oom_kills(self._root), now
        return self._seen

    def grown(self, before: tuple[int, int]) -> str:
        """`cgroup` when our own cgroup counts a kill since, `machine` when the machine does, else empty."""
        self._seen, self._at = oom_kills(self._root), time.monotonic()
        if self._seen[0] > before[0] >= 0:
            return "cgroup"
        return "machine" if self._seen[1] > before[1] >= 0 else ""

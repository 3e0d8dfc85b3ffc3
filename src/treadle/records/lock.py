"""The lock of a work folder: one writer at a time, told by name, and taken from the dead.

It works where flock does not (NFS): see `taker` for how.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.base.errors import DiskError, LockError
from treadle.base.files import disk_error
from treadle.base.layout import StateFolder
from treadle.records.clock import Clock, SystemClock
from treadle.records.owner import BEAT, Life, Owner, Pulse, life, read_owner
from treadle.records.taker import PATIENCE, Taker

if TYPE_CHECKING:
    from treadle.records.heart import Heart

_STEP = 1.0  # seconds between two looks at a lock that is waited for
_DOUBT = 3 * BEAT  # after so long a silence of our own somebody may be about to take the lock


class Step(StrEnum):
    """What `acquire` is doing."""

    WAITING = "waiting"  # for a live holder to end
    WATCHING = "watching"  # whether the counter of a holder elsewhere still moves
    TAKEN = "taken"  # over from a holder that is gone


class LockNews(Struct, frozen=True):
    """For people, while the lock is waited for; `seconds` is how long it may take at most (0: unknown)."""

    step: Step
    owner: Owner
    seconds: float = 0.0


class Lock:
    """A lock that we hold. Check it before each burst of writes, release it.

    It beats by itself (by a thread), unless it was acquired with a clock that is not the system's.
    """

    __slots__ = ("_clock", "_heart", "_pulse", "_released", "_state")

    def __init__(self, state: StateFolder, pulse: Pulse, clock: Clock) -> None:
        self._state = state
        self._pulse = pulse
        self._clock = clock
        self._heart = _heart(pulse) if isinstance(clock, SystemClock) else None
        self._released = False

    @property
    def owner(self) -> Owner:
        """We ourselves, as the lock names us."""
        return self._pulse.owner

    def beat(self, now: float | None = None) -> None:
        """Move the counter if 15 s have passed; `now` is of the clock's `monotonic`.

        Only needed where no thread does it, and harmless where one does.
        """
        self._pulse.beat(self._clock.monotonic() if now is None else now)

    def check(self) -> None:
        """Raise `LockError` when the lock is no longer ours. Costs one stat."""
        if not self._is_ours():
            if not os.path.isdir(self._state.root):
                raise LockError(
                    f"'{self._state.root}' went away under this run: somebody removed or moved it",
                    hint="nothing more is written by this run; put it back, or begin anew: treadle run",
                    code="lock-lost",
                )
            raise LockError(
                f"the lock of '{self._state.workdir}' is no longer ours: {self._who_has_it()}",
                hint="nothing more is written by this run; treadle run goes on once the other has ended",
                code="lock-lost",
            )

    def release(self) -> None:
        """Give the lock back, if it is ours; a second time is fine."""
        if self._released:
            return
        self._released = True
        try:
            # After a long silence somebody may be replacing it at this moment: let him find us gone.
            if self._silence() < _DOUBT and self._is_ours():
                os.unlink(self._state.lock)
        except (OSError, DiskError):
            pass  # it is found stale and taken over
        finally:
            if self._heart is None or self._heart.stop():
                self._pulse.close()

    def _silence(self) -> float:
        return self._pulse.silence(self._clock.monotonic())

    def _is_ours(self) -> bool:
        try:
            ours = self._pulse.is_at(self._state.lock)
        except OSError as error:
            raise disk_error("look at", self._state.lock, error) from error
        if ours and self._silence() >= _DOUBT:
            seen = read_owner(self._state.lock)  # opening asks an NFS server, where stat asks a cache
            return seen is not None and seen.owner.uuid == self.owner.uuid
        return ours

    def _who_has_it(self) -> str:
        seen = read_owner(self._state.lock)
        return f"{told(seen.owner)} has it" if seen else "somebody removed it"


def _heart(pulse: Pulse) -> Heart:
    from treadle.records.heart import Heart  # threads, which commands that only read need not load

    return Heart(pulse)


def acquire(
    state: StateFolder,
    *,
    wait: bool = False,
    say: Callable[[LockNews], None] = lambda news: None,
    clock: Clock | None = None,
) -> Lock:
    """Take the lock of a work folder whose `.treadle/` exists.

    A live holder is a `LockError` at once, or waited for with `wait`. One that is seen to be gone is
    replaced at once; one whose process cannot be seen from here when its counter stood still for 90 s.
    Another user's is never taken: a `LockError` that names `treadle unlock`. Raises `DiskError`.
    """
    taker = Taker(state, clock or SystemClock())
    said: tuple[str, Life] | None = None
    while True:
        seen = read_owner(state.lock)
        if seen is None:
            if pulse := taker.make():
                return Lock(state, pulse, taker.clock)
            continue
        found = taker.life(seen)
        if found is Life.GONE:
            if seen.owner.uid != os.getuid():
                raise _not_ours_to_take(state, seen.owner)
            if pulse := taker.replace(seen):
                say(LockNews(Step.TAKEN, seen.owner))
                return Lock(state, pulse, taker.clock)
        elif found is Life.ALIVE and not wait:
            raise _in_use(state, seen.owner)
        elif said != (seen.owner.uuid, found):
            said = (seen.owner.uuid, found)
            say(_news_of_waiting(seen.owner, found))
        taker.clock.sleep(_STEP)


def _news_of_waiting(owner: Owner, found: Life) -> LockNews:
    if found is Life.UNKNOWN:
        return LockNews(Step.WATCHING, owner, PATIENCE)
    return LockNews(Step.WAITING, owner)


def unlock(state: StateFolder, *, force: bool = False, clock: Clock | None = None) -> Owner | None:
    """Take the lock away, whoever's it is; its owner, or None when there was none.

    Reads no workflow. A live holder on this host is a `LockError`, unless forced.
    """
    taker = Taker(state, clock or SystemClock())
    while seen := read_owner(state.lock):
        if not force and life(seen.owner) is Life.ALIVE:
            raise LockError(
                f"{told(seen.owner)} is at work in '{state.workdir}'",
                hint="end it first; or, if you are sure that it writes no more: treadle unlock --force",
            )
        if pulse := taker.replace(seen):
            Lock(state, pulse, taker.clock).release()
            return seen.owner
        taker.clock.sleep(_STEP)
    return None


def told(owner: Owner) -> str:
    """The owner for a sentence: who, where, since when."""
    if not owner.pid:
        return "somebody whose lock file cannot be read"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(owner.since))
    return f"{owner.user} on {owner.host} (process {owner.pid}, since {since})"


def _in_use(state: StateFolder, owner: Owner) -> LockError:
    return LockError(
        f"'{state.workdir}' is in use by {told(owner)}",
        hint="wait until it has ended (--wait or StepRunner(wait=True) waits for you), or end it first",
        code="lock-held",
    )


def _not_ours_to_take(state: StateFolder, owner: Owner) -> LockError:
    another = ", another user" if owner.pid else ""
    return LockError(
        f"the lock of '{state.workdir}' was left behind by {told(owner)}{another}",
        hint="if nothing of that run is at work any longer, take it away: treadle unlock",
        code="lock-left",
    )

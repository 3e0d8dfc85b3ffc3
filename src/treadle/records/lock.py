"""The lock of a work folder: one writer at a time, told by name, and taken from the dead.

It works where flock does not (NFS): a lock is made by link(2) of a private file, which either is the
lock then or is not. Whoever wants to put something in the place of a lock first wins the claim over
its uuid, again by link(2); only then is it looked at once more and replaced by one rename(2). So of two
takers one wins, and a live lock is never moved, not even for a moment. A claim whose owner died is
itself claimed, by the uuid of that owner.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from treadle.base.errors import DiskError, LockError
from treadle.base.files import disk_error, remove
from treadle.base.layout import StateFolder
from treadle.records.clock import Clock, SystemClock
from treadle.records.heart import Heart
from treadle.records.owner import BEAT, Life, Owner, Pulse, Seen, life, read_owner, this_process

PATIENCE = 90.0  # a counter that stood still for so many seconds of ours has nobody to move it
_STEP = 1.0
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
        self._heart = Heart(pulse) if isinstance(clock, SystemClock) else None
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
    taker = _Taker(state, clock or SystemClock())
    said: tuple[str, Life] | None = None
    while True:
        seen = read_owner(state.lock)
        if seen is None:
            if lock := taker.make():
                return lock
            continue
        found = taker.life(seen)
        if found is Life.GONE:
            if seen.owner.uid != os.getuid():
                raise _not_ours_to_take(state, seen.owner)
            if lock := taker.replace(seen):
                say(LockNews(Step.TAKEN, seen.owner))
                return lock
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
    taker = _Taker(state, clock or SystemClock())
    while seen := read_owner(state.lock):
        if not force and life(seen.owner) is Life.ALIVE:
            raise LockError(
                f"{told(seen.owner)} is at work in '{state.workdir}'",
                hint="end it first; or, if you are sure that it writes no more: treadle unlock --force",
            )
        if lock := taker.replace(seen):
            lock.release()
            return seen.owner
        taker.clock.sleep(_STEP)
    return None


class _Taker:
    """Who wants the lock, with what it has seen of others meanwhile."""

    def __init__(self, state: StateFolder, clock: Clock) -> None:
        self.state = state
        self.clock = clock
        self._watched: dict[str, tuple[int, float, bool]] = {}

    def life(self, seen: Seen) -> Life:
        """As `owner.life`; where that cannot tell, the counter does, by our own clock, in the end."""
        found = life(seen.owner)
        if found is not Life.UNKNOWN:
            return found
        now = self.clock.monotonic()
        counter, since, moved = self._watched.get(seen.owner.uuid, (seen.counter, now, False))
        if counter != seen.counter:
            counter, since, moved = seen.counter, now, True
        self._watched[seen.owner.uuid] = (counter, since, moved)
        if now - since >= PATIENCE:
            return Life.GONE
        return Life.ALIVE if moved else Life.UNKNOWN

    def make(self) -> Lock | None:
        """The lock, where there is none; None when another was faster."""
        pulse, private = self._private()
        held = False
        try:
            held = self._link(private, self.state.lock, pulse)
        finally:
            self._clear(pulse, held, private)
        return self._held(pulse) if held else None

    def replace(self, stale: Seen) -> Lock | None:
        """The lock, in the place of one whose owner is gone; None when another was faster."""
        pulse, private = self._private()
        claims: list[str] = []
        held = False
        try:
            claims = self._claim(stale.owner.uuid, pulse, private)
            held = bool(claims) and read_owner(self.state.lock) == stale and self._put(private, pulse)
        finally:
            self._clear(pulse, held, *(claims if held else [private, *claims[-1:]]))
        return self._held(pulse) if held else None

    def _clear(self, pulse: Pulse, held: bool, *paths: str) -> None:
        for path in paths:
            _unlink(path)
        if not held:
            pulse.close()

    def _private(self) -> tuple[Pulse, str]:
        owner = this_process(self.clock, locked=True)
        private = self.state.lock_made(owner.uuid)
        return Pulse.create(private, owner, self.clock.monotonic()), private

    def _claim(self, uuid: str, pulse: Pulse, private: str) -> list[str]:
        """Win the claim over `uuid`; ours is the last of those returned, before it those of the dead."""
        claims: list[str] = []
        while True:
            claims.append(self.state.lock_claim(uuid))
            if self._link(private, claims[-1], pulse):
                return claims
            other = read_owner(claims[-1])
            if other is None or self.life(other) is not Life.GONE:
                return []
            uuid = other.owner.uuid

    def _link(self, private: str, path: str, pulse: Pulse) -> bool:
        try:
            os.link(private, path)
        except OSError as error:
            if pulse.is_at(path):  # over NFS the answer may be lost, and the call sent again
                return True
            if isinstance(error, FileExistsError | FileNotFoundError):
                return False  # another has it; or swept our private file away, having just got the lock
            raise _cannot_link(path, error) from error
        return True

    def _put(self, private: str, pulse: Pulse) -> bool:
        try:
            os.rename(private, self.state.lock)
        except FileNotFoundError:
            return pulse.is_at(self.state.lock)
        except OSError as error:
            raise disk_error("replace", self.state.lock, error) from error
        return True

    def _held(self, pulse: Pulse) -> Lock:
        """Sweep what others left: none of it can still become a lock but over our own uuid."""
        ours = self.state.lock_claim(pulse.owner.uuid)
        for path in self.state.lock_leftovers():
            if path != ours:
                _unlink(path)
        return Lock(self.state, pulse, self.clock)


def _cannot_link(path: str, error: OSError) -> DiskError:
    if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
        return disk_error("make", path, error)
    return DiskError(
        f"cannot make '{path}': its file system has no hard links, and the lock is made by one",
        hint="keep the work folder on a file system that has them: ext4, XFS, NFS, Lustre, ...",
        code="no-hard-links",
    )


def _unlink(path: str) -> None:
    try:
        remove(path)
    except DiskError:
        pass


def told(owner: Owner) -> str:
    """The owner for a sentence: who, where, since when."""
    if not owner.pid:
        return "somebody whose lock file cannot be read"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(owner.since))
    return f"{owner.user} on {owner.host} (process {owner.pid}, since {since})"


def _in_use(state: StateFolder, owner: Owner) -> LockError:
    return LockError(
        f"'{state.workdir}' is in use by {told(owner)}",
        hint="wait until it has ended (--wait waits for you), or end it first",
        code="lock-held",
    )


def _not_ours_to_take(state: StateFolder, owner: Owner) -> LockError:
    another = ", another user" if owner.pid else ""
    return LockError(
        f"the lock of '{state.workdir}' was left behind by {told(owner)}{another}",
        hint="if nothing of that run is at work any longer, take it away: treadle unlock",
        code="lock-left",
    )

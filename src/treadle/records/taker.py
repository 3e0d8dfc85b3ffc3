"""How a lock is made, and how one whose owner is gone is replaced, by one of all who want to.

A lock is made by link(2) of a private file, which either is the lock then or is not. Whoever wants to
put something in the place of a lock first wins the claim over its uuid, again by link(2); only then is
it looked at once more and replaced by one rename(2). So of two takers one wins, and a live lock is never
moved, not even for a moment. A claim whose owner died is itself claimed, by the uuid of that owner.
"""

from __future__ import annotations

import errno
import os

from treadle.base.errors import DiskError
from treadle.base.files import disk_error, remove
from treadle.base.layout import StateFolder
from treadle.records.clock import Clock
from treadle.records.owner import Life, Pulse, Seen, life, read_owner, this_process

PATIENCE = 90.0  # a counter that stood still for so many seconds of ours has nobody to move it


class Taker:
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

    def make(self) -> Pulse | None:
        """Make the lock where there is none: its pulse, or None when another was faster."""
        pulse, private = self._private()
        held = False
        try:
            held = self._link(private, self.state.lock, pulse)
        finally:
            self._clear(pulse, held, private)
        return self._held(pulse) if held else None

    def replace(self, stale: Seen) -> Pulse | None:
        """Put ours in the place of a lock whose owner is gone: its pulse, or None when another was faster."""
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

    def _held(self, pulse: Pulse) -> Pulse:
        """Sweep what others left: none of it can still become a lock but over our own uuid."""
        ours = self.state.lock_claim(pulse.owner.uuid)
        for path in self.state.lock_leftovers():
            if path != ours:
                _unlink(path)
        return pulse


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

"""A lease on a plain file system as its holder has it: kept alive, checked, given back.

That it is still ours shows in two facts: our file stands under its name, and none with a higher number says
that it was taken over from it. Making that file is one act, of one taker: from then on the lease is theirs,
whatever we do; and before we publish we look for it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from threading import Lock

from treadle.base.disk import disk_error
from treadle.base.errors import DiskError
from treadle.base.files import is_there
from treadle.base.layout import ArtifactPlaces
from treadle.steps.heartbeats import BEAT, Heartbeats
from treadle.steps.lease_file import NOBODY, move_counter, read_lease, set_free
from treadle.steps.record import Owner
from treadle.steps.store import LeaseLost

DOUBT = 2 * BEAT  # seconds of silence after which others may be about to take it
_HANG = 1.0  # seconds that a beat may hang in a storage that is out before we go on without waiting
_ENOUGH = 200  # bytes: the token stands in the beginning of the file
_JUST_NOW = 0.1  # seconds for which what was seen of the files above ours need not be looked at again


class LocalLease:
    """The right to make one artifact. Beats come from `heart`; all else may be called from any thread."""

    __slots__ = (
        "_alone_at",
        "_counter",
        "_fd",
        "_heart",
        "_lock",
        "_lost",
        "_monotonic",
        "_moved",
        "_places",
        "before",
        "number",
        "token",
    )

    def __init__(
        self,
        places: ArtifactPlaces,
        number: int,
        fd: int,
        token: str,
        heart: Heartbeats,
        monotonic: Callable[[], float],
    ) -> None:
        self.number = number
        self.token = token
        self.before: tuple[Owner, ...] = ()  # from whom it was taken over, and from whom they took it
        self._places = places
        self._fd = fd
        self._heart = heart
        self._monotonic = monotonic
        self._counter = 0
        self._moved = monotonic()
        self._alone_at: float | None = None  # when we last saw that no file stands above ours
        self._lost: Owner | None = None
        self._lock = Lock()

    @property
    def places(self) -> ArtifactPlaces:
        """The artifact that it is the lease of."""
        return self._places

    @property
    def path(self) -> str:
        """The output path of that."""
        return self._places.path

    @property
    def lost(self) -> Owner | None:
        return self._lost

    def beat(self, now: float) -> None:
        """Move the counter if it is time, and see whether somebody has taken the lease.

        A storage that is out ends nothing: the next beat tries again, and `check` asks in the end.
        """
        if now - self._moved < BEAT or self._lost is not None or not self._lock.acquire(blocking=False):
            return
        try:
            if self._fd >= 0:
                with suppress(OSError, DiskError):
                    self._move(now)
        finally:
            self._lock.release()

    def check(self) -> None:
        self._grip()
        try:
            self._check()
        finally:
            self._lock.release()

    def release(self) -> None:
        self._heart.drop(self)
        try:
            self._grip()
        except DiskError:  # a beat that hangs: the file must not be closed under it
            return
        try:
            if self._fd >= 0:
                self._give_back()
                with suppress(OSError):  # closed by the function
                    os.close(self._fd)
                self._fd = -1
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """Let go of a file that turned out to be no lease: whoever holds the artifact next removes it."""
        fd, self._fd = self._fd, -1
        with suppress(OSError):
            set_free(fd)
        os.close(fd)

    def _check(self) -> None:
        if self._lost is None:
            try:
                now = self._monotonic()
                if self._in_doubt():
                    self._move(now)
                elif not self._still_linked() or is_there(self._places.lease(self.number + 1)):
                    self._look()
                else:
                    self._alone_at = now
            except OSError as error:
                raise disk_error("check the lease", self._places.lease(self.number), error) from error
        if self._lost is not None:
            raise LeaseLost(None if self._lost is NOBODY else self._lost)

    def _move(self, now: float) -> None:
        self._counter += 1  # before it is tried: a value that may have been written counts no second time
        self._regain()
        move_counter(self._fd, self._counter)
        self._look()
        self._moved = now

    def _look(self) -> None:
        """See whether another has it, asking the server: what is opened is looked up anew, also over NFS."""
        os.close(os.open(self._places.folder, os.O_RDONLY | os.O_CLOEXEC))
        number = self.number + 1
        while (above := read_lease(self._places.lease(number))) is not None:
            if above.after == self.token or (above.torn and self._in_doubt()):
                self._lost = above.owner
                return
            number += 1  # of somebody who came too late
        ours = read_lease(self._places.lease(self.number))
        if ours is None:
            if self._still_linked():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))  # moved, or not mounted
            self._lost = NOBODY
        elif ours.token != self.token:
            self._lost = ours.owner

    def _still_linked(self) -> bool:
        try:
            return os.fstat(self._fd).st_nlink > 0
        except OSError as error:
            if error.errno == errno.ESTALE:  # over NFS: removed by another host
                return False
            if error.errno != errno.EBADF:
                raise
        try:
            self._regain()
        except FileNotFoundError:
            return False
        return os.fstat(self._fd).st_nlink > 0

    def _regain(self) -> None:
        """Open the file again where the descriptor is not its any more: the function closed what it did not
        open, as those do that make daemons, and may have another file there by now."""
        token = self.token.encode()
        with suppress(OSError):
            if token in os.pread(self._fd, _ENOUGH, 0):
                return
        fd = os.open(self._places.lease(self.number), os.O_RDWR | os.O_CLOEXEC)
        if token in os.pread(fd, _ENOUGH, 0):
            self._fd = fd
        else:
            os.close(fd)

    def _in_doubt(self) -> bool:
        return self._monotonic() - self._moved >= DOUBT

    def _give_back(self) -> None:
        """Remove the file, with those of earlier holders and of those who came too late.

        The first goes first: who looked before that and makes a file after it sees that the chain has
        another beginning, or none. After a long silence another may be taking it over at this moment, so
        that nothing is removed then; that it is free is said in the file, which is ours in any case.
        """
        if self._lost is not None:
            return
        try:
            if self._in_doubt():
                self._set_free()
                return
            last = self.number
            if self._alone_at is None or self._monotonic() - self._alone_at > _JUST_NOW:
                while is_there(self._places.lease(last + 1)):
                    last += 1
            if last > self.number:
                self._check()
            for number in range(1, last + 1):
                with suppress(FileNotFoundError):
                    os.unlink(self._places.lease(number))
        except LeaseLost:
            pass
        except (OSError, DiskError):
            with suppress(OSError):
                self._set_free()

    def _set_free(self) -> None:
        self._regain()
        set_free(self._fd)

    def _grip(self) -> None:
        """Take the lock, waiting not much longer than a storage may take to answer."""
        if self._lock.acquire(blocking=False) or self._lock.acquire(timeout=_HANG):
            return
        raise DiskError(
            f"the storage of the lease '{self._places.lease(self.number)}' does not answer",
            hint="look whether the file system there is up; the work is kept until it is",
        )

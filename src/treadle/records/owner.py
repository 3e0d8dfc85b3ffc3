"""Who holds a lock or runs a run: a small file with a counter in it that its owner keeps moving."""

from __future__ import annotations

import errno
import os
from enum import StrEnum
from typing import Self

import msgspec
from msgspec import Struct

from treadle.base.files import disk_error
from treadle.base.machine import login_name
from treadle.base.proc import boot_id, host, pid_namespace, process_gone, start_time
from treadle.records.clock import Clock

BEAT = 15.0  # seconds between two moves of the counter
_WIDTH = 10
_HEAD = b'{"counter":'


class Owner(Struct, frozen=True, kw_only=True):
    """A process, told so that no other can be taken for it.

    `started` is its kernel start time in ticks (0: unknown), `since` the wall time of its file. `locked`:
    it holds, or held, the lock of the work folder with this `uuid`.
    """

    uuid: str
    host: str = ""
    boot: str = ""
    namespace: str = ""
    pid: int = 0
    started: int = 0
    uid: int = -1
    user: str = ""
    since: float = 0.0
    locked: bool = False


class Seen(Struct, frozen=True):
    """An owner's file at one look."""

    owner: Owner
    counter: int


class Life(StrEnum):
    """Whether an owner lives, as far as its process can be seen from here."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


class _File(Owner, frozen=True, kw_only=True):
    counter: int = 0


def this_process(clock: Clock, *, locked: bool = False) -> Owner:
    """We ourselves, under a new uuid."""
    uid, pid = os.getuid(), os.getpid()
    return Owner(
        uuid=os.urandom(16).hex(),
        host=host(),
        boot=boot_id(),
        namespace=pid_namespace(),
        pid=pid,
        started=start_time(pid),
        uid=uid,
        user=login_name() or str(uid),
        since=clock.now(),
        locked=locked,
    )


def life(owner: Owner) -> Life:
    """Look for the owner's process; only on its own host, since its boot, and among its process ids."""
    if (owner.host, owner.boot, owner.namespace) != (host(), boot_id(), pid_namespace()) or not owner.pid:
        return Life.UNKNOWN
    return Life.GONE if process_gone(owner.pid, owner.started) else Life.ALIVE


class Pulse:
    """The file of an owner, held open by it: each beat moves the counter, in place."""

    __slots__ = ("_counter", "_fd", "_file", "_last", "owner")

    def __init__(self, fd: int, owner: Owner, now: float) -> None:
        self.owner = owner
        self._fd = fd
        self._file = _identity(os.fstat(fd))
        self._counter = 0
        self._last = now

    @classmethod
    def create(cls, path: str, owner: Owner, now: float) -> Self:
        """Make the file, which must not exist, and see it onto the disk. Raises `DiskError`."""
        body = msgspec.json.encode(owner)
        data = _HEAD + _digits(0) + b"," + body[1:] + b"\n"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            try:
                if os.write(fd, data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(fd)
            except OSError:
                os.close(fd)
                os.unlink(path)
                raise
        except OSError as error:
            raise disk_error("write", path, error) from error
        return cls(fd, owner, now)

    @classmethod
    def reopen(cls, path: str, owner: Owner, now: float) -> Self:
        """Go on with a file that we made earlier. Raises `DiskError`."""
        try:
            return cls(os.open(path, os.O_WRONLY | os.O_CLOEXEC), owner, now)
        except OSError as error:
            raise disk_error("write", path, error) from error

    def silence(self, now: float) -> float:
        """Seconds since the counter was last moved."""
        return now - self._last

    def beat(self, now: float) -> None:
        """Move the counter if it is time (`now`: monotonic seconds).

        A disk that refuses is not told here: whoever watches goes by the counter, and the owner by
        looking whether the file is still its own.
        """
        if now - self._last < BEAT:
            return
        try:
            os.pwrite(self._fd, _digits(self._counter + 1), len(_HEAD))
            os.fsync(self._fd)
        except OSError:
            return
        self._counter += 1
        self._last = now

    def is_at(self, path: str) -> bool:
        """Whether the file at `path` is this very one. OSErrors go through, but for a missing file."""
        try:
            return _identity(os.stat(path)) == self._file
        except FileNotFoundError:
            return False

    def close(self) -> None:
        os.close(self._fd)


def _identity(found: os.stat_result) -> tuple[int, int]:
    """Ours is open, so nothing else can have its inode meanwhile."""
    return found.st_dev, found.st_ino


def _digits(counter: int) -> bytes:
    return b"%*d" % (_WIDTH, counter)


def read_owner(path: str) -> Seen | None:
    """Who the file names; None when there is none. Raises `DiskError`.

    A file that cannot be understood names an owner of whom nothing is known but that it is this one.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            data, inode = file.read(), os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return None
    except OSError as error:
        raise disk_error("read", path, error) from error
    try:
        found = msgspec.json.decode(data, type=_File)
    except msgspec.MsgspecError:
        return Seen(Owner(uuid=f"unreadable-{inode}"), 0)
    fields = {name: getattr(found, name) for name in Owner.__struct_fields__}
    return Seen(Owner(**fields), found.counter)

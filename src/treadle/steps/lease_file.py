"""A lease as a file: a counter that its holder moves in place, a token that names one taking, the owner."""

from __future__ import annotations

import errno
import itertools
import os

import msgspec
from msgspec import Struct

from treadle.base.disk import disk_error
from treadle.steps.record import Owner

_HEAD = b'{"counter":'
_WIDTH = 10
_FREE = -1  # the counter of a lease that its holder gave back without removing it

NOBODY = Owner(host="an unknown host", user="somebody")


class Held(Struct, frozen=True):
    """A lease at one look; `after` is the token of the lease that it was taken over from.

    One that cannot be read (yet) has an unknown owner, and its inode for a token.
    """

    token: str
    counter: int
    owner: Owner
    after: str = ""

    @property
    def torn(self) -> bool:
        """Its maker has not written it, or was killed before that."""
        return self.owner is NOBODY

    @property
    def free(self) -> bool:
        return self.counter == _FREE


_decoder = msgspec.json.Decoder(Held)
_salt = ""
_count = itertools.count()


def new_token() -> str:
    """A text that no other taking of a lease has."""
    global _salt
    if not _salt:
        _salt = os.urandom(8).hex()
    return f"{_salt}-{next(_count)}"


def _forget() -> None:
    global _salt
    _salt = ""


os.register_at_fork(after_in_child=_forget)


def encode_lease(token: str, owner: Owner, after: str = "") -> bytes:
    told = (token.encode(), after.encode(), msgspec.json.encode(owner))
    return b'%b%*d,"token":"%b","after":"%b","owner":%b}\n' % (_HEAD, _WIDTH, 0, *told)


def create_lease(path: str, data: bytes) -> int:
    """Make the file exclusively: its descriptor, or -1 where there is one.

    Where the file system can, it comes into being with its content, so that no kill leaves a torn one.
    Raises FileNotFoundError where its folder is missing, `DiskError`.
    """
    folder = os.path.dirname(path)
    try:
        if _TMPFILE and folder not in _without_tmpfile:
            fd = _linked(folder, path, data)
            if fd is not None:
                return fd
            _without_tmpfile.add(folder)
        return _created(path, data)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise disk_error("make the lease", path, error) from error


_TMPFILE: int = getattr(os, "O_TMPFILE", 0)
_without_tmpfile: set[str] = set()


def _linked(folder: str, path: str, data: bytes) -> int | None:
    """A file without a name is written, then linked, as open(2) tells it. None: not here (NFS)."""
    try:
        fd = os.open(folder, os.O_RDWR | _TMPFILE | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return None
        raise
    try:
        os.write(fd, data)
        # With a folder's descriptor (passed over, the path being absolute) Python follows links here.
        os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd, follow_symlinks=True)
    except FileExistsError:
        os.close(fd)
        return -1
    except OSError as error:
        os.close(fd)
        if error.errno in (errno.ENOENT, errno.EPERM, errno.EXDEV, errno.EOPNOTSUPP):  # no /proc, no links
            return None
        raise
    return fd


def _created(path: str, data: bytes) -> int:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return -1
    try:
        os.write(fd, data)  # short, and one who reads half of it sees an owner that is not known yet
    except OSError:
        os.close(fd)
        os.unlink(path)
        raise
    return fd


def move_counter(fd: int, counter: int) -> None:
    """Write the counter, and see it on the disk, or on the server. OSErrors go through."""
    os.pwrite(fd, b"%*d" % (_WIDTH, counter), len(_HEAD))
    os.fsync(fd)


def set_free(fd: int) -> None:
    """Say through the holder's descriptor that nobody holds it. OSErrors go through."""
    move_counter(fd, _FREE)


def read_lease(path: str) -> Held | None:
    """The lease that stands at `path`; None when there is none. Raises `DiskError`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(fd, 65536)
            try:
                return _decoder.decode(data)
            except msgspec.MsgspecError:
                return Held(f"inode-{os.fstat(fd).st_ino}-{len(data)}", 0, NOBODY)
        finally:
            os.close(fd)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise disk_error("read the lease", path, error) from error

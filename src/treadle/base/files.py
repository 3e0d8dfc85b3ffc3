"""Looking at files, digesting them, and changing them so that no half-done state is ever seen."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from msgspec import Struct

from treadle.base.digest import DIGEST_FOLDER_SH, digest_file, digest_folder
from treadle.base.disk import disk_error

__all__ = [
    "DIGEST_FOLDER_SH",
    "Stat",
    "digest_file",
    "digest_folder",
    "disk_error",
    "free_bytes",
    "is_there",
    "look",
    "make_parents",
    "protect",
    "read_regular",
    "remove",
    "set_aside",
    "set_aside_from",
    "sync_folder",
    "unprotect",
    "write_whole",
]

_FORMAT = 0o170000
_FOLDER = 0o040000
_REGULAR = 0o100000
_ACCESS_OF_LINKS = os.access in os.supports_follow_symlinks
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class Stat(Struct, frozen=True, gc=False):
    """What one look at a path tells: `size` in bytes, `mtime` in nanoseconds, its inode, a folder or not."""

    size: int
    mtime: int
    inode: int
    folder: bool


def look(path: str) -> Stat | None:
    """What stands at `path`, links followed; None when nothing does, or a link leads nowhere.

    Raises `DiskError` when the file system will not tell (no permission, a stale handle).
    """
    try:
        found = os.stat(path)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise disk_error("look at", path, error) from error
    except ValueError as error:
        raise disk_error("look at", path, error) from error
    return Stat(found.st_size, found.st_mtime_ns, found.st_ino, found.st_mode & _FORMAT == _FOLDER)


def is_there(path: str) -> bool:
    """Whether anything stands at `path`, links not followed; what cannot be looked at counts as not there.

    As `os.path.lexists`, which takes four times as long where nothing does: an exception is made for it.
    """
    if not _ACCESS_OF_LINKS:
        return os.path.lexists(path)
    try:
        return os.access(path, os.F_OK, follow_symlinks=False)
    except ValueError:  # NUL
        return False


def read_regular(path: str) -> bytes:
    """The content of a file that a person wrote.

    Raises OSError, also for what may never end: a pipe, a terminal, a device.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    kind = os.fstat(fd).st_mode & _FORMAT
    if kind != _REGULAR:
        os.close(fd)
        if kind == _FOLDER:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", path)
    with open(fd, "rb") as file:
        return file.read()


def write_whole(
    path: str, data: bytes | Iterable[bytes], mode: int = 0o666, *, durable: bool = False
) -> None:
    """Write a file aside, then rename it into place: a reader sees the old one or the whole new one.

    `data` may come in pieces. `mode` is narrowed by the umask. `durable` waits until it is on the disk. A
    symbolic link at `path` is replaced, not followed. Raises `DiskError`; nothing is left behind then.
    """
    folder = os.path.dirname(path)
    aside = os.path.join(folder, f".treadle-{os.urandom(6).hex()}")
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            for piece in (data,) if isinstance(data, bytes) else data:
                _write_all(fd, piece)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(aside, path)
        if durable:
            sync_folder(folder or ".")
    except BaseException as error:
        _unlink_quietly(aside)
        if isinstance(error, OSError | ValueError):
            raise disk_error("write", path, error) from error
        raise


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _unlink_quietly(path: str) -> None:
    try:
        os.unlink(path)
    except (OSError, ValueError):
        pass


def sync_folder(path: str) -> None:
    """Wait until the names in a folder are on the disk; OSErrors go through as they are."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def set_aside(path: str) -> str:
    """Rename to `<path>.failed`, `.failed.2`, ...: the first that is free; never over anything.

    A link is moved, not what it points to. Returns the new path, or an empty text when nothing stood
    at `path`. Raises `DiskError`.
    """
    try:
        folder = os.lstat(path).st_mode & _FORMAT == _FOLDER
        target, number = f"{path}.failed", 1
        while not _reserve(target, folder):
            number += 1
            target = f"{path}.failed.{number}"
        try:
            os.rename(path, target)
        except OSError:
            os.rmdir(target) if folder else os.unlink(target)
            raise
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise disk_error("set aside", path, error) from error
    return target


def set_aside_from(name: str) -> str:
    """The name that `set_aside` made `name` of; empty when it is not of that kind."""
    stem, dot, number = name.rpartition(".")
    if dot and number.isdecimal():
        name = stem
    return name.removesuffix(".failed") if name.endswith(".failed") else ""


def _reserve(path: str, folder: bool) -> bool:
    """Take a free name with an empty placeholder of the right kind, which a rename may then replace."""
    try:
        if folder:
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
    except FileExistsError:
        return False
    return True


def remove(path: str) -> None:
    """Remove a file, a link (not what it points to) or a folder with all in it; missing is fine.

    Raises `DiskError`.
    """
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        if not os.path.islink(path) and os.path.isdir(path):
            _remove_folder(path)
        else:
            raise disk_error("remove", path, error) from error


def remove_empty(folder: str, top: str) -> None:
    """Remove `folder`, and those above it up to `top` (itself one of them), as long as they are empty."""
    while folder == top or folder.startswith(f"{top}/"):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:  # it is not empty, or not ours to remove
            return
        folder = os.path.dirname(folder)


def _remove_folder(root: str) -> None:
    pending = [os.fsencode(root)]
    found = []
    try:
        while pending:
            folder = pending.pop()
            found.append(folder)
            pending += _empty_of_files(folder)
        for folder in reversed(found):
            os.rmdir(folder)
    except FileNotFoundError as error:
        if os.path.lexists(root):
            raise disk_error("remove", root, error) from error
    except OSError as error:
        raise disk_error("remove", root, error) from error


def _empty_of_files(folder: bytes) -> list[bytes]:
    """Unlink all but the folders in a folder, which are returned."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        os.chmod(folder, 0o700)  # tools leave read-only trees behind; the owner may remove them
    inner = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.path)
            else:
                os.unlink(entry.path)
    return inner


def protect(path: str) -> None:
    """Take the permission to write from a file, or from a folder and all in it; links are not followed.

    Raises `DiskError`.
    """
    for one in _with_inner(path):
        _change_mode(one, ~0o222, 0)


def unprotect(path: str) -> None:
    """Give the owner back the permission to write. Raises `DiskError`."""
    for one in _with_inner(path):
        _change_mode(one, ~0, 0o200)


def _with_inner(path: str) -> list[str]:
    found = [path]
    if os.path.isdir(path) and not os.path.islink(path):
        for folder, folders, files in os.walk(path):
            found += [os.path.join(folder, name) for name in (*folders, *files)]
    return found


def _change_mode(path: str, kept: int, more: int) -> None:
    try:
        mode = os.lstat(path).st_mode
        if mode & _FORMAT in (_REGULAR, _FOLDER):
            os.chmod(path, mode & 0o7777 & kept | more)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise disk_error("change the mode of", path, error) from error


def make_parents(path: str) -> None:
    """Make the folders above `path`. Raises `DiskError`."""
    missing = []
    parent = os.path.dirname(path)
    while parent and not os.path.isdir(parent):
        missing.append(parent)
        parent = os.path.dirname(parent)
    for folder in reversed(missing):
        try:
            os.mkdir(folder)
        except (OSError, ValueError) as error:
            if not os.path.isdir(folder):  # else another process was faster
                raise disk_error("make the folder", folder, error) from error


def free_bytes(path: str) -> int:
    """Bytes that an ordinary user may still write on the file system of `path` (or of the nearest folder
    above it that exists). Quotas are not seen. Raises `DiskError`, also where it does not tell (/proc, some
    mounts of object stores).
    """
    spot = os.path.abspath(path)
    while True:
        try:
            figures = os.statvfs(spot)
            if not figures.f_blocks:
                raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
            return figures.f_bavail * figures.f_frsize
        except (FileNotFoundError, NotADirectoryError):
            spot = os.path.dirname(spot)
        except (OSError, ValueError) as error:
            raise disk_error("look at the space of", spot, error) from error

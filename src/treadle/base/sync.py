"""Seeing many files onto the disk at once: one by one while they are few, else whole file systems."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from treadle.base.disk import disk_error

FEW = 16  # so many syncs of one file each cost about as much as one of a file system
_NEVER = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)  # it syncs no folders (SMB), or no such files at all


def sync_paths(paths: Sequence[str]) -> None:
    """Wait until these files and folders (their names, not what is in them) are on the disk.

    What is not there any more is passed over, and so is what may not be opened or cannot be synced.
    Raises `DiskError`.
    """
    if len(paths) > FEW and sync_systems(paths):
        return
    for path in paths:
        _passing(path, os.fsync)


def sync_systems(paths: Iterable[str]) -> bool:
    """Wait until the file systems of these files and folders are on the disk; False: this system cannot.

    As `sync_paths` for the rest.
    """
    whole = _syncfs()
    if whole is None:
        return False
    done: set[int] = set()
    for path in paths:
        _passing(path, whole, done)
    return True


def _passing(path: str, act: Callable[[int], None], done: set[int] | None = None) -> None:
    """Sync what stands there, if it does; of each device in `done` only the first."""
    try:
        if done is not None:
            device = os.stat(path).st_dev
            if device in done:
                return
            done.add(device)
        _with(path, act)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    except (OSError, ValueError) as error:
        if not (isinstance(error, OSError) and error.errno in _NEVER):
            raise disk_error("sync", path, error) from error


def _with(path: str, act: Callable[[int], None]) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        act(fd)
    finally:
        os.close(fd)


@cache
def _syncfs() -> Callable[[int], None] | None:
    """syncfs(2), which Python does not have; None where the system does not have it either."""
    import ctypes  # slow to import, and only for many files at once

    try:
        call = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return None

    def syncfs(fd: int) -> None:
        if call(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return syncfs

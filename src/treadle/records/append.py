"""A file that only grows, by whole lines or not at all, whatever the disk does meanwhile."""

from __future__ import annotations

import os
from typing import Self

from treadle.base.files import disk_error

_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class Appender:
    """Appends bytes through a descriptor of its own. One writer at a time: O_APPEND is not atomic on NFS.

    What is written and not yet synced is kept in memory: when a sync fails, the kernel may drop those
    pages and call the next sync a success, so they are written again, in place, before it.
    """

    __slots__ = ("_doubtful", "_fd", "_length", "_partial", "_synced", "_unsynced", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd
        self._length = self._synced = os.fstat(fd).st_size
        self._unsynced: list[bytes] = []
        self._partial = False  # something may stand beyond _length
        self._doubtful = False  # a sync failed: what stands beyond _synced may be lost

    @classmethod
    def open(cls, path: str, *, new: bool = False) -> Self:
        """Open for appending; `new`: make the file, which must not exist. Raises `DiskError`."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if new else 0)
        try:
            return cls(path, os.open(path, flags, 0o666))
        except OSError as error:
            raise disk_error("write", path, error) from error

    @property
    def waiting(self) -> int:
        """Bytes that are written and not yet known to be on the disk."""
        return self._length - self._synced

    def write(self, data: bytes) -> None:
        """Append all of `data`. Raises `DiskError`: nothing of it counts as written, so hand it in again."""
        try:
            self._cut()
            self._partial = True
            _write_all(self._fd, data)
        except OSError as error:
            self._cut_quietly()
            raise disk_error("write", self.path, error) from error
        self._partial = False
        self._length += len(data)
        self._unsynced.append(data)

    def sync(self) -> None:
        """Wait until all that was written is on the disk. Raises `DiskError`: call it again then."""
        if not self.waiting:
            return
        try:
            if self._doubtful:
                self._write_again()
            self._doubtful = True
            _sync(self._fd)
        except OSError as error:
            raise disk_error("write", self.path, error) from error
        self._doubtful = False
        self._synced = self._length
        self._unsynced.clear()

    def close(self) -> None:
        """Give the descriptor back; nothing is synced by it."""
        os.close(self._fd)

    def _cut(self) -> None:
        if self._partial:
            os.ftruncate(self._fd, self._length)
            self._partial = False

    def _cut_quietly(self) -> None:
        """Take a partial line away at once, if the disk lets us; else the next write does it first."""
        try:
            self._cut()
        except OSError:
            pass

    def _write_again(self) -> None:
        """Write in place, through another descriptor: O_APPEND would write at the end whatever the offset."""
        fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.lseek(fd, self._synced, os.SEEK_SET)
            _write_all(fd, b"".join(self._unsynced))
        finally:
            os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]

"""Bringing what a step made into an object store: a file as one object, a folder as many, in streams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

from msgspec import Struct

from treadle.base.disk import disk_error
from treadle.base.errors import DiskError
from treadle.steps.local_output import Made, measure
from treadle.steps.object_bucket import Bucket
from treadle.steps.parallel import in_parallel
from treadle.steps.record import Kind

EMPTY_FOLDER = ".treadle-empty-folder"  # object stores have no folders: an object of this name stands for one
_SMALL = 16  # files of one piece at a time: 80 MiB at most
_LARGE = 2  # others at a time, in some pieces each
_PIECE = 5 * 1024 * 1024  # the least that S3 takes for one
_PIECES = 9000  # S3 takes 10,000 to an object
_PIECES_AT_A_TIME = 6


class _File(Struct, frozen=True):
    path: str
    below: str  # its name below the folder; empty: the file itself
    size: int
    link: bool = False


def upload(bucket: Bucket, work: str, folder: str, name: str) -> Made:
    """Bring the file at `work` to `folder/name`, or all that the folder there holds to below `folder`.

    Links in a folder go as the files they lead to; modes and times do not go. Raises `DiskError`, also for
    what has no place in an object store: links to folders or to nothing, pipes, names that are not UTF-8.
    """
    made = measure(work)
    if made.kind is Kind.NOTHING:
        return made
    try:
        files = [_one(work, "")] if made.kind is Kind.FILE else list(_walk(work))
    except OSError as error:
        raise disk_error("read", error.filename or work, error) from error

    def send(file: _File) -> int:
        key = f"{folder}/{file.below or name}"
        if file.path:
            _send(bucket, file, key)
        else:
            bucket.put(key, b"")
        return file.size

    small = (file for file in files if file.size <= _PIECE)
    large = (file for file in files if file.size > _PIECE)
    size = sum(in_parallel(send, small, _SMALL)) + sum(in_parallel(send, large, _LARGE))
    linked = any(file.link for file in files)  # they count as links in digests, and come back as files
    return Made(made.kind, size, "" if linked else made.digest)


def _send(bucket: Bucket, file: _File, key: str) -> None:
    """In pieces of which only a few are in memory; the object is there when the last one is."""
    piece = max(_PIECE, -(-file.size // _PIECES))

    def put() -> Any:
        return bucket.data.put(
            key,
            Path(file.path),
            use_multipart=file.size > piece,
            chunk_size=piece,
            max_concurrency=_PIECES_AT_A_TIME,
        )

    try:
        bucket.asked("write", key, put)
    except OSError as error:
        raise disk_error("read", file.path, error) from error


def _walk(root: str) -> Iterator[_File]:
    """All files below a folder, and a mark for each empty one; sorted, without recursion."""
    pending = [""]
    while pending:
        below = pending.pop()
        with os.scandir(os.path.join(root, below)) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        if not found and below:
            yield _File("", f"{below}{EMPTY_FOLDER}", 0)
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                pending.append(f"{below}{entry.name}/")
            else:
                yield _one(entry.path, f"{below}{entry.name}")


def _one(path: str, below: str) -> _File:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise _unfit(path, "its name is not valid UTF-8") from None
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise _unfit(path, "it is a symbolic link that leads nowhere") from None
    if S_ISDIR(found.st_mode):
        raise _unfit(path, "it is a symbolic link to a folder")
    if not S_ISREG(found.st_mode):
        raise _unfit(path, "it is a pipe, a socket or a device")
    return _File(path, below, found.st_size, os.path.islink(path))


def _unfit(path: str, why: str) -> DiskError:
    return DiskError(
        f"cannot bring {path!a} to an object store: {why}",
        hint="let the step write plain files and folders with UTF-8 names",
        code="unfit-output",
    )

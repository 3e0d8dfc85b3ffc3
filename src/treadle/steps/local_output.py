"""What a step made at a local path: its kind, size and digest, and whether it is still whole."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISLNK, S_ISREG

from msgspec import Struct

from treadle.base.digest import digest_file, digest_folder
from treadle.base.disk import disk_error
from treadle.base.errors import DiskError
from treadle.base.files import is_there
from treadle.base.sync import sync_paths
from treadle.steps.record import ArtifactRecord, Kind

SMALL = 1 << 20  # bytes up to which an output is digested; what is larger is synced before it is published
_FEW = 256  # files of a folder up to which it is


class Made(Struct, frozen=True):
    """One output at one look; `inode` tells it from any other while it is moved."""

    kind: Kind
    size: int = 0
    digest: str = ""
    inode: int = 0


_NOTHING = Made(Kind.NOTHING)


def measure(path: str) -> Made:
    """What was made at `path`. Raises `DiskError`, also for what no artifact can be: a link, a pipe."""
    try:
        stat = os.lstat(path)
    except FileNotFoundError:
        return _NOTHING
    except (OSError, ValueError) as error:
        raise disk_error("look at", path, error) from error
    if S_ISREG(stat.st_mode):
        digest = digest_file(path) if stat.st_size <= SMALL else ""
        return Made(Kind.FILE, stat.st_size, digest, stat.st_ino)
    if S_ISDIR(stat.st_mode):
        size, files = contents(path)
        digest = _folder_digest(path) if size <= SMALL and len(files) <= _FEW else ""
        return Made(Kind.FOLDER, size, digest, stat.st_ino)
    what = "a symbolic link" if S_ISLNK(stat.st_mode) else "a pipe, a socket or a device"
    raise DiskError(
        f"'{path}' is {what}, which cannot be an artifact",
        hint="let the step write a file or a folder there (links within a folder are fine)",
        code="unfit-output",
    )


def see_folder(work: str) -> None:
    """See that nothing was made at a work path, rather than lost with its folder: that was made for it.

    Raises `DiskError`: where it is gone, somebody has cleaned up, or a mount is gone.
    """
    folder = os.path.dirname(work)
    if not is_there(folder):
        raise DiskError(
            f"the folder of its work path {work} is gone, and with it what the step made",
            hint="look whether the file system is mounted; who cleans up there must leave what is being made",
            code="work-gone",
        )


def sync_output(path: str, kind: Kind) -> None:
    """Wait until an output is on the disk with all that is in it. Raises `DiskError`."""
    if kind is Kind.FILE:
        sync_paths([path])
    elif kind is Kind.FOLDER:
        sync_paths([path, *contents(path)[1]])


def output_of(path: str, record: ArtifactRecord, *, thoroughly: bool) -> tuple[str, int]:
    """What is wrong with the output of a record (empty: nothing), and its inode (0: there is none).

    A file is looked at by its size; `thoroughly` also by its digest, and a folder by what is in it.
    """
    if record.kind is Kind.NOTHING:
        return "", 0
    try:
        stat = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return f"what it made, '{path}', is gone", 0
    except (OSError, ValueError) as error:
        raise disk_error("look at", path, error) from error
    if S_ISDIR(stat.st_mode) != (record.kind is Kind.FOLDER):
        return f"'{path}' is not the {record.kind} that it was", stat.st_ino
    if record.kind is Kind.FILE and stat.st_size != record.size:
        return f"'{path}' has {stat.st_size} bytes, not {record.size}", stat.st_ino
    return _deep_problem(path, record) if thoroughly else "", stat.st_ino


def vanished(error: DiskError) -> bool:
    """Whether something went away while it was read: another process replaces that artifact."""
    return isinstance(error.__cause__, FileNotFoundError | NotADirectoryError)


def _deep_problem(path: str, record: ArtifactRecord) -> str:
    try:
        return _content_problem(path, record)
    except DiskError as error:
        if vanished(error):
            return f"what it made, '{path}', went away while it was looked at"
        raise


def _content_problem(path: str, record: ArtifactRecord) -> str:
    if record.kind is Kind.FILE:
        whole = not record.digest or digest_file(path) == record.digest
    elif record.digest:
        whole = _folder_digest(path) == record.digest
    else:
        size, _ = contents(path)
        if size != record.size:
            return f"what is in '{path}' has {size} bytes, not {record.size}"
        whole = True
    return "" if whole else f"the content of '{path}' is not what it was: the disk lost some of it"


def _folder_digest(path: str) -> str:
    """Empty where a name is not UTF-8: such a folder is synced like a large one."""
    try:
        return digest_folder(path)
    except DiskError as error:
        if error.diagnostics[0].code == "bad-name":
            return ""
        raise


def contents(root: str) -> tuple[int, list[str]]:
    """Bytes of the regular files in a folder, and all files and folders in it; links count for nothing."""
    size = 0
    found: list[str] = []
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                        found.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        size += entry.stat(follow_symlinks=False).st_size
                        found.append(entry.path)
        except OSError as error:
            raise disk_error("read", folder, error) from error
    return size, found

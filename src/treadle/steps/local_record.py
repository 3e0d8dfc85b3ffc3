"""The record file of an artifact on a plain file system, and the same file while it is pending.

Beside the record it holds how the artifact was put into its place (`Placed`), so that whoever finds it
pending can go on from there. Once all is known to be on the disk the file is made read-only: readers of one
that is not look at the output thoroughly. Where nothing was made there is no output to look at, and the file
is read-only from the start.
"""

from __future__ import annotations

import os
from stat import S_IMODE

import msgspec
from msgspec import Struct

from treadle.base.disk import disk_error
from treadle.steps.record import ArtifactRecord
from treadle.steps.record_file import TornRecordError, decode_record, encode_record

_WRITABLE = 0o222


class Placed(Struct, frozen=True, omit_defaults=True):
    """How an output gets into its place: its inode, and where it comes from.

    `token` is that of the lease under which it was made, and names this publication; `over` is the one that
    it replaces. `work` is the name of the work path in its folder.
    """

    token: str = ""
    inode: int = 0
    work: str = ""
    over: str = ""


class Filed(Struct, frozen=True):
    """A record file as it was read. `record` is None where it is torn."""

    record: ArtifactRecord | None
    placed: Placed
    sealed: bool
    problem: str = ""

    @property
    def mark(self) -> str:
        """What names this publication to the one that replaces it; a text of its own where that is torn."""
        return self.placed.token or "torn"


class _Envelope(Struct, frozen=True):
    placed: Placed = Placed()


_envelope = msgspec.json.Decoder(_Envelope)


def encode_filed(record: ArtifactRecord, placed: Placed) -> bytes:
    return b'%b,"placed":%b}\n' % (encode_record(record)[:-2], msgspec.json.encode(placed))


def read_filed(file: str, path: str = "", *, folder: str = "") -> Filed | None:
    """The record in `file`, of the artifact at `path`, or in `folder` under its own name; None: no file.

    Where the artifact stood when it was made makes no difference: it may have been moved with all others.

    Raises `DiskError`, and `RecordError` for one of a newer Treadle.
    """
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise disk_error("read", file, error) from error
    try:
        stat = os.fstat(fd)
        data = _read_all(fd, stat.st_size)
    except OSError as error:
        raise disk_error("read", file, error) from error
    finally:
        os.close(fd)
    sealed = not stat.st_mode & _WRITABLE
    try:
        record = decode_record(data, file)
        placed = _envelope.decode(data).placed
    except (TornRecordError, msgspec.MsgspecError) as error:
        return Filed(None, Placed(), sealed, str(error))
    path = path or f"{folder}/{os.path.basename(record.path)}"
    if record.path != path:
        record = msgspec.structs.replace(record, path=path)
    return Filed(record, placed, sealed)


def create_filed(file: str, data: bytes, *, sealed: bool = False) -> bool:
    """Make the file exclusively, read-only from the start if `sealed`; False where there is one.

    Raises `DiskError`, with nothing left behind.
    """
    mode = 0o666 & ~_WRITABLE if sealed else 0o666
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        return False
    except (OSError, ValueError) as error:
        raise disk_error("write", file, error) from error
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    except OSError as error:
        os.unlink(file)
        raise disk_error("write", file, error) from error
    finally:
        os.close(fd)
    return True


def seal(file: str) -> None:
    """Say that the record and its output are on the disk; where that cannot be said it is not."""
    try:
        os.chmod(file, S_IMODE(os.stat(file).st_mode) & ~_WRITABLE)
    except OSError:
        pass


def _read_all(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    while len(data) < size and (more := os.read(fd, size)):
        data += more
    return data

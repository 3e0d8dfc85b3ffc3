"""What a job writes when it ends: `exit.json`, its own witness. Files are told by index, never by path."""

from __future__ import annotations

import os
from enum import StrEnum

import msgspec
from msgspec import Struct

from treadle.base.files import is_there, read_regular
from treadle.base.layout import JobFolder
from treadle.engine.backend import Written as Written

EXIT_FORMAT = 1


class ExitFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of one start of an attempt.

    `attempt` is the value of TREADLE_ATTEMPT. `start_number` counts starts of the attempt from 1.
    `exit_code` as the shell tells it; `signal` of the one that ended it, `asked` the first one that the
    wrapper passed on. `problem` is why the command was not begun (`workdir`, `log`, `secrets`); `skipped`:
    it was not, for an earlier one of the same job failed. `done`: exit code 0, and all outputs are there.
    The script file, where there is one, follows the inputs. Times in seconds since the epoch, by the node's
    clock. `cpu` in seconds, `memory` the peak in bytes, None where the node could not tell. `oom_kills` of
    its cgroup (None: it could not be read).
    """

    format: int = EXIT_FORMAT
    attempt: str = ""
    start_number: int = 1
    exit_code: int
    signal: int = 0
    asked: int = 0
    problem: str = ""
    skipped: bool = False
    done: bool = False
    start: float
    end: float
    host: str = ""
    job: str = ""
    cpu: float | None = None
    memory: int | None = None
    oom_kills: int | None = None
    inputs: tuple[Written, ...] = ()
    outputs: tuple[Written, ...] = ()


class Damage(StrEnum):
    """What is wrong with an exit file that is there."""

    TORN = "torn"  # empty or cut: it may still arrive on a slow file system
    UNREADABLE = "unreadable"
    NEWER = "newer"  # a newer Treadle wrote it
    FOREIGN = "foreign"  # it is of another attempt


class Witness(Struct, frozen=True):
    """What an attempt left in its job's folder: the end of its last start, and how many starts there were.

    `exit` is None while that start has not ended, or was killed. `refused`: it was started once more than it
    may be.
    """

    exit: ExitFile | None = None
    damage: Damage | None = None
    starts: int = 0
    refused: bool = False


class _Head(Struct, frozen=True):
    format: int


def read_exit(path: str, attempt: str = "") -> ExitFile | Damage | None:
    """The exit file at `path`, None when it is not there; `attempt` is whose it must be (empty: any)."""
    try:
        data = read_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # a stale handle (NFS), no permission
        return Damage.UNREADABLE
    try:
        if msgspec.json.decode(data, type=_Head).format > EXIT_FORMAT:
            return Damage.NEWER
        found = msgspec.json.decode(data, type=ExitFile)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Damage.TORN
    return Damage.FOREIGN if attempt and found.attempt != attempt else found


def look_for_exit(folder: JobFolder, n: int, attempt: str = "", *, refresh: bool = False) -> Witness:
    """What attempt `n` left. `refresh` lists the folders first, so that NFS does not answer from memory."""
    if refresh:
        _list(folder.root)
    starts = 0
    while is_there(folder.start(n, starts + 1)):
        starts += 1
    refused = is_there(folder.refused(n))
    if not starts:
        return Witness(refused=refused)
    if refresh:
        _list(folder.start(n, starts))
    found = read_exit(folder.exit(n, starts), attempt)
    if isinstance(found, Damage):
        return Witness(None, found, starts, refused)
    return Witness(found, None, starts, refused)


def _list(folder: str) -> None:
    try:
        os.listdir(folder)
    except OSError:  # it is looked at again, and what is not there is not there
        pass

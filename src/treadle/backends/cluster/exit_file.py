"""What a job writes when it ends: `exit.json`, its own witness. Files are told by index, never by path."""

from __future__ import annotations

from msgspec import Struct

EXIT_FORMAT = 1


class Written(Struct, frozen=True, array_like=True):
    """One input or output by its index: bytes, nanoseconds since the epoch, BLAKE2b-256 (empty: not taken).

    `kind` is `f` file, `d` folder, `-` not there.
    """

    index: int
    kind: str
    size: int = 0
    mtime: int = 0
    digest: str = ""


class ExitFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of one start of an attempt.

    `start_number` counts starts of the attempt from 1. `exit_code` as the shell tells it; `signal` of the
    one that ended it. Times in seconds since the epoch. `cpu` in seconds, `memory` the peak in bytes, None
    where the node could not tell. `oom_kills` of its cgroup (None: it could not be read).
    """

    format: int = EXIT_FORMAT
    start_number: int = 1
    exit_code: int
    signal: int = 0
    start: float
    end: float
    host: str = ""
    job: str = ""
    cpu: float | None = None
    memory: int | None = None
    oom_kills: int | None = None
    inputs: tuple[Written, ...] = ()
    outputs: tuple[Written, ...] = ()

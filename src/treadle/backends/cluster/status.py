"""`status.json` of a submission: what the queue last said of its jobs, for whoever looks at the run."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec import Struct

from treadle.backends.cluster.held import Sent
from treadle.base.errors import DiskError
from treadle.base.files import write_whole

FORMAT = 1


class Shown(Struct, frozen=True, array_like=True):
    """One attempt: its number, the scheduler's id, and the queue's words."""

    n: int
    job: str
    phase: str
    state: str
    reason: str = ""
    host: str = ""


class Status(Struct, frozen=True):
    """The attempts of a submission that have not ended, as of `time` (seconds since the epoch)."""

    format: int
    time: float
    jobs: tuple[Shown, ...]


def write_status(sent: Sent, now: float) -> None:
    """Write it anew; a full disk is no reason to stop."""
    shown = tuple(
        Shown(held.n, held.id, held.row.phase.value, held.row.state, held.row.reason, held.row.host)
        for held in sent.held
        if held.ended is None and held.row is not None
    )
    with suppress(DiskError):
        write_whole(sent.folder.status, msgspec.json.encode(Status(FORMAT, now, shown)))

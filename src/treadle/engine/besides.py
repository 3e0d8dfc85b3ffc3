"""What a backend has besides `ExecutorBackend`, asked for; and what stands in for it where it has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.engine.backend import (
    Accepted,
    Adoptee,
    Adopting,
    ExecutorBackend,
    Joining,
    Leaving,
    Parted,
    Queueing,
    Refused,
    Remark,
    Remarking,
    Sharing,
)
from treadle.plan.task import Resources, ScheduledTask

_LEAST_AHEAD, _MOST_AHEAD = 32, 256
_NOWHERE = "no job of this name is known"


def adopt(backend: ExecutorBackend, batch: Sequence[Adoptee]) -> list[Accepted | Refused]:
    """Take over attempts of earlier runs; one answer for each, in order. Raises `SchedulerError`."""
    if isinstance(backend, Adopting):
        return backend.adopt(batch)
    found = backend.find([one.submission.name for one in batch])
    return [
        Accepted(found[name]) if (name := one.submission.name) in found else Refused(_NOWHERE)
        for one in batch
    ]


def remarks_of(backend: ExecutorBackend) -> Callable[[], list[Remark]] | None:
    """What tells what there is to say since the last call; None: there never is anything."""
    return backend.remarks if isinstance(backend, Remarking) else None


def maker_of(backend: ExecutorBackend, task: str, attempt: str) -> str:
    """Who made the artifact that an attempt at a step came to; empty: itself, as far as is known."""
    return backend.taken(task, attempt) if isinstance(backend, Sharing) else ""


def keep_line(backend: ExecutorBackend, most: int | None) -> int:
    """Let no more than `most` steps run in threads at a time; how many may be launched beyond these, to wait
    in line: then the threads need not wait for the loop. 0: the backend keeps no line."""
    if most is None or not isinstance(backend, Queueing) or not backend.keep_line(most):
        return 0
    return min(max(_LEAST_AHEAD, 4 * most), _MOST_AHEAD)


def withdraw(backend: ExecutorBackend, jobs: Sequence[str]) -> None:
    """End those of these jobs that have not begun: what is not told as running, where it keeps no line."""
    if isinstance(backend, Queueing):
        backend.withdraw(jobs)
    else:
        backend.cancel(jobs)


def leave(backend: ExecutorBackend) -> None:
    """Wait no longer for the ends of jobs that were to end, where they outlive us."""
    if isinstance(backend, Leaving):
        backend.leave()


def joins_by(backend: ExecutorBackend) -> Callable[[Sequence[Resources]], bool] | None:
    """What tells whether one job can be had that does tasks with such requests one after the other; None: the
    backend makes a job of each."""
    return backend.fits_together if isinstance(backend, Joining) else None


def parts_of(backend: ExecutorBackend) -> Callable[[ScheduledTask], ExecutorBackend]:
    """What tells which backend runs a task. To be kept: asking what a backend has is not cheap."""
    return backend.part if isinstance(backend, Parted) else lambda task: backend

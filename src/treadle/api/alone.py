"""Runs of steps alone: no folder lock, a journal and an owner of their own, several at once in one folder.

The leases of artifacts are their locks, and the records of artifacts their evidence. What needs the lock,
ending the runs that were killed and removing old ones, is done when nobody else holds it, else left to the
next run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from treadle.api.late import LateHold
from treadle.api.session import Recovered, Session, hold
from treadle.base.errors import WorldError
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.mask import Mask
from treadle.plan.task import ScheduledPlan
from treadle.records.clock import SystemClock
from treadle.records.heart import Heart
from treadle.records.lock import LockNews
from treadle.records.owner import Owner, Pulse, this_process
from treadle.records.past import unended_runs
from treadle.records.runs import KEEP, owner_is_gone, prune
from treadle.records.version import prepare


def needs_lock(plan: ScheduledPlan) -> bool:
    """Whether a plan has evidence to keep: it is not of steps alone, or some of them read files."""
    return not plan.tasks or any(task.call is None or task.inputs for task in plan.tasks.values())


@contextmanager
def alone(
    workdir: str,
    *,
    mask: Mask,
    wait: bool = False,
    assume_dead: bool = False,
    say: Callable[[LockNews | Recovered], None] = lambda news: None,
) -> Iterator[Session]:
    """A work folder for a run of steps alone, beside whoever else is at work in it.

    `wait`: where a step comes that reads files, another run that holds the folder is waited for.

    Raises `DiskError` when nothing can be written there, and `RecordError` when its records are of a newer
    Treadle.
    """
    state = StateFolder(workdir)
    prepare(state)
    mend(state, mask=mask, assume_dead=assume_dead, say=say)
    owner = this_process(SystemClock())
    late = LateHold(workdir, mask, wait=wait)
    try:
        yield Session(state, owner, None, late.past, Recovered(), mask, late)
    finally:
        late.release()
        _prune(state, mask)


def mend(
    state: StateFolder,
    *,
    mask: Mask,
    assume_dead: bool = False,
    say: Callable[[LockNews | Recovered], None] = lambda news: None,
) -> None:
    """End the runs that were killed, as the holder of the lock does, unless another holds it: he does it."""
    if any(owner_is_gone(folder) for folder in unended_runs(state)):
        # What stands in the way concerns whoever needs the lock, and he is told.
        with suppress(WorldError), hold(state.workdir, mask=mask, assume_dead=assume_dead, say=say):
            pass


@contextmanager
def pulse(folder: RunFolder, owner: Owner) -> Iterator[None]:
    """Keep the owner file of a run moving that holds no lock, so that others see that it lives."""
    beat = Pulse.reopen(folder.owner, owner, time.monotonic())
    heart = Heart(beat)
    try:
        yield
    finally:
        if heart.stop():
            beat.close()


def _prune(state: StateFolder, mask: Mask) -> None:
    """Remove old runs once there are many, if nobody holds the lock just now."""
    with suppress(WorldError):
        if len(state.run_ids()) > 2 * KEEP:
            with hold(state.workdir, mask=mask, say=lambda news: None):
                prune(state)

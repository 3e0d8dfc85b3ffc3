"""`treadle cancel`: stop the driver of a run, and see that nothing of it is left with a scheduler."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from treadle.base.errors import LockError, OptionError
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.machine import login_name
from treadle.base.mask import Mask
from treadle.records.event import EndReason
from treadle.records.journal import is_ended
from treadle.records.owner import Life, life, read_owner
from treadle.records.past import load_past
from treadle.records.runs import owner_is_gone

if TYPE_CHECKING:
    from treadle.backends.cluster.settings import ClusterSettings

_PATIENCE = 120.0  # seconds for a driver to end what runs and to record it


class Cancellation(Struct, frozen=True, kw_only=True):
    """What was done: whether a driver was stopped, how many that are jobs and how many jobs are gone, which
    are left."""

    run: str
    stopped: bool = False
    drivers: int = 0
    backend: str = ""
    gone: int = 0
    left: tuple[str, ...] = ()
    command: str = ""


def cancel(
    folder: RunFolder,
    *,
    workdir: str,
    assume_dead: bool = False,
    say: Callable[[str, str], None] = lambda what, value: None,
) -> Cancellation:
    """Cancel what a run has in flight, also when its driver is gone; verified by the queue.

    `say` hears what goes on: `driver` with its process id, `jobs` with how many there are. Raises `LockError`
    for a driver that cannot be stopped from here, `SchedulerError` when the scheduler does not answer.
    """
    stopped = _stop_driver(folder, assume_dead, say)
    state = StateFolder(workdir)
    numbers: dict[RunFolder, set[int] | None] = {folder: None}
    for flight in load_past(state).flights.values():
        run = state.run(flight.run)
        if run.run != folder.run:
            known = numbers.setdefault(run, set())
            assert known is not None
            known.add(flight.n)
    done = Cancellation(run=folder.run, stopped=stopped)
    for run, some in numbers.items():
        if not os.path.isfile(run.backend) or not os.path.isdir(run.jobs):
            continue
        from treadle.backends.cluster.cancel_run import cancel_jobs

        settings = _settings(run)
        found = cancel_jobs(
            settings,
            {run: some},
            workdir=workdir,
            user=login_name(),
            told=lambda live: say("jobs", str(live)) if live else None,
        )
        done = msgspec.structs.replace(
            done,
            backend=settings.backend,
            gone=done.gone + found.gone,
            left=done.left + found.left,
            command="; ".join(filter(None, (done.command, found.command))),
        )
    if done.gone and not done.left:
        _record(state, numbers)
    return done


def _record(state: StateFolder, numbers: Mapping[RunFolder, Set[int] | None]) -> None:
    """Record that these attempts were cancelled, so that no later run waits for what became of them.

    Those that had come to their own end are left to it. A run that holds the folder meanwhile sees it itself.
    """
    from treadle.api.adoption import give_up
    from treadle.api.session import hold
    from treadle.backends.cluster.cancel_run import own_ends

    ends = {run.run: own_ends(run) for run in numbers}
    some = {run.run: known for run, known in numbers.items()}
    with suppress(LockError), hold(state.workdir, mask=Mask(), say=lambda news: None) as session:
        gone = [
            one
            for one in session.past.flights.values()
            if one.run in some
            and ((known := some[one.run]) is None or one.n in known)
            and one.n not in ends[one.run]
        ]
        give_up(session, gone, EndReason.CANCELLED)


def _settings(run: RunFolder) -> ClusterSettings:
    from treadle.backends.cluster.find_logs import settings_of_run

    settings = settings_of_run(run)
    if settings is None:
        hint = "cancel the jobs with the scheduler's own command"
        raise OptionError(f"{run.backend} cannot be read", hint=hint)
    return settings


def _stop_driver(folder: RunFolder, assume_dead: bool, say: Callable[[str, str], None]) -> bool:
    """End the driver of the run, if it lives: SIGTERM, and wait. False when there was none."""
    seen = read_owner(folder.owner)
    if is_ended(folder.events) or seen is None or owner_is_gone(folder):
        return False
    owner = seen.owner
    if life(owner) is not Life.ALIVE:
        if assume_dead:
            return False
        raise LockError(
            f"the run goes on: its driver is process {owner.pid} of {owner.user} on {owner.host}",
            hint="treadle cancel on that machine; if it is dead, --assume-dead",
        )
    say("driver", str(owner.pid))
    try:
        os.kill(owner.pid, signal.SIGTERM)
    except ProcessLookupError:
        return True
    except PermissionError:
        message = f"the driver of the run belongs to {owner.user} (process {owner.pid})"
        raise LockError(message, hint=f"only {owner.user} can cancel it") from None
    until = time.monotonic() + _PATIENCE
    while life(owner) is Life.ALIVE:
        if time.monotonic() > until:
            message = f"the driver of the run, process {owner.pid}, has not ended in {_PATIENCE:.0f} s"
            raise LockError(message, hint=f"kill {owner.pid}; then treadle cancel")
        select.select([], [], [], 0.05)
    return True

"""Attempts of a run that was killed: ended if they still live, then what they made is set aside.

Called by `records.recover` before the killed run's end is written, so that a kill in the middle of this
only means that it is done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec import Struct

from treadle.base.errors import LockError
from treadle.base.layout import StateFolder
from treadle.base.mask import Mask
from treadle.base.proc import attempts_alive, boot_id, host, kill_groups
from treadle.engine.conclude import mask_log
from treadle.engine.slate import Moved, set_aside_made
from treadle.records.flight import Interrupted

GRACE = 10.0
LOCAL = "local"


class Ended(Struct, frozen=True):
    """What was done about the attempts of a killed run: how many processes were still alive, and what
    was set aside."""

    attempts: int
    alive: int
    moved: tuple[Moved, ...] = ()


def end_orphans(
    interrupted: Sequence[Interrupted],
    workdir: str,
    *,
    mask: Mask | None = None,
    assume_dead: bool = False,
    grace: float = GRACE,
    say: Callable[[Ended], None] = lambda ended: None,
) -> Ended:
    """End the local attempts of a killed run, wait until they are gone, and make their slate clean.

    Groups come from the journal, and from the environments of processes for what was started and not yet
    journaled. Jobs of schedulers are left alone: they are adopted. Logs that may hold secrets are masked.

    Raises `LockError` when a local attempt may still live where it cannot be seen, on another host
    (unless `assume_dead`), or will not go away; `DiskError` when something cannot be set aside.
    """
    local = [one for one in interrupted if one.backend == LOCAL and not one.ended]
    if not assume_dead:
        _refuse_elsewhere(local)
    alive = _kill([one for one in local if one.host == host() and one.boot == boot_id()], grace)
    moved: list[Moved] = []
    state = StateFolder(workdir)
    scratch = os.path.isdir(state.scratch)
    for one in local:
        if mask is not None:
            mask_log(state.run(one.run), one.n, mask)
        if scratch:
            from treadle.engine.scratch import clear_scratch  # few folders have any

            clear_scratch(workdir, one.key, one.outputs)
        if not one.resumable:
            standing = {record.path: record for record in one.before}
            moved += set_aside_made(one.outputs, standing, workdir)
    ended = Ended(len(local), alive, tuple(moved))
    say(ended)
    return ended


def _refuse_elsewhere(attempts: Sequence[Interrupted]) -> None:
    elsewhere = [one for one in attempts if one.host != host()]
    if elsewhere:
        first = elsewhere[0]
        more = f" and {len(elsewhere) - 1} more" if len(elsewhere) > 1 else ""
        raise LockError(
            f"run {first.run} was killed on {first.host}, where {first.task}{more} may still be at work",
            hint=f"run there once more, it cleans up; or, if you are sure that nothing of it lives on "
            f"{first.host}: --assume-dead",
            code="orphans-elsewhere",
        )


def _kill(attempts: Sequence[Interrupted], grace: float) -> int:
    """End what lives of these attempts; how many processes that were."""
    marks = {f"{one.run}.{one.n}" for one in attempts}
    alive = 0
    for run in sorted({one.run for one in attempts}):
        alive += sum(mark in marks for _, _, _, mark in attempts_alive(run))
    groups = [
        (int(one.job), one.started, f"{one.run}.{one.n}")
        if one.job.isdigit()  # else it never started, or was a thread of the driver itself
        else (0, 0, f"{one.run}.{one.n}")
        for one in attempts
        if one.job or os.path.isdir("/proc/self")  # else there is nothing to find it by
    ]
    left = kill_groups(groups, grace) if groups else []
    if left:
        raise LockError(
            f"processes of the killed run {attempts[0].run} will not go away: groups {left}",
            hint="they hang in the kernel, mostly on a network file system: see to them, then run again",
            code="orphans-left",
        )
    return alive

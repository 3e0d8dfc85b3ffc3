"""The backend of a run: this machine, and what the current client stands for where steps go there."""

from __future__ import annotations

from treadle.api.pipe import View
from treadle.backends.local import LocalBackend
from treadle.base.machine import gpus_here
from treadle.base.mask import Mask
from treadle.engine.backend import ExecutorBackend
from treadle.plan.task import ScheduledPlan, Where


def backend_of(view: View, *, mask: Mask, unsafe_locks: bool, more: bool) -> ExecutorBackend:
    """The backend for a view; `more`: steps of any kind may join the run."""
    local = LocalBackend(gpus=gpus_here(), book=view.book, unsafe_locks=unsafe_locks, mask=mask)
    if view.book is None or not (more or uses_client(view.plan)):
        return local
    from treadle.api.steps_pipe import client_is_local

    if client_is_local():
        return local
    from treadle.backends.clients import current_client
    from treadle.backends.pair import PairBackend

    try:
        other = current_client().backend(
            book=view.book,
            workdir=view.workdir,
            unsafe_locks=unsafe_locks,
            mask=mask,
            pools=[name for name, _ in view.plan.pools],
        )
    except BaseException:
        local.close()
        raise
    return PairBackend(local, other)


def uses_client(plan: ScheduledPlan) -> bool:
    """Whether a step of the plan goes to the current client."""
    return any(task.call is not None and task.call.where is Where.CLIENT for task in plan.tasks.values())

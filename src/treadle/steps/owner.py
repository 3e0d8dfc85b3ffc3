"""Who holds leases: this process as an owner, and whether another owner's process is known to be gone."""

from __future__ import annotations

import os

from treadle.base.machine import login_name
from treadle.base.proc import boot_id, host, pid_namespace, process_gone, start_time
from treadle.steps.record import Owner

_known: Owner | None = None


def this_owner(attempt: str = "", job: str = "") -> Owner:
    """This process, for the attempt `<run>.<n>`; `job` is the backend's id of the job that it is."""
    us = this_process()
    if not attempt and not job:
        return us
    return Owner(
        host=us.host,
        boot=us.boot,
        pid_namespace=us.pid_namespace,
        pid=us.pid,
        started=us.started,
        user=us.user,
        attempt=attempt,
        job=job,
    )


def this_process() -> Owner:
    """This process, read from the system once (and again in a child that it forks)."""
    global _known
    if _known is None:
        pid = os.getpid()
        _known = Owner(
            host=host(),
            boot=boot_id(),
            pid_namespace=pid_namespace(),
            pid=pid,
            started=start_time(pid),
            user=user_name(),
        )
    return _known


def _forget() -> None:
    global _known
    _known = None


os.register_at_fork(after_in_child=_forget)


def user_name() -> str:
    """The login name of this process's user; its number where there is none."""
    return login_name() or str(os.getuid())


def gone(owner: Owner) -> bool:
    """Whether the owner's process is known to have ended: told only on its own host, since its boot, and
    where its process ids count as ours do."""
    us = this_process()
    if not owner.pid or owner.host != us.host or owner.boot != us.boot:
        return False
    return owner.pid_namespace == us.pid_namespace and process_gone(owner.pid, owner.started)

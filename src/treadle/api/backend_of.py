"""The backend of a run: this machine, and one other that was chosen for rules, or by a client for steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from treadle.api.cluster import local_rules
from treadle.api.view import View
from treadle.backends.local import LocalBackend
from treadle.base.errors import OptionError
from treadle.base.files import write_whole
from treadle.base.layout import RunFolder
from treadle.base.machine import gpus_here, login_name
from treadle.base.mask import Mask
from treadle.base.plugins import BACKENDS as PLUGINS
from treadle.base.plugins import load_plugin
from treadle.engine.backend import ExecutorBackend
from treadle.plan.task import ScheduledPlan, Where
from treadle.rules.schema import BACKENDS, Cluster

if TYPE_CHECKING:
    from treadle.backends.cluster.backend import ClusterBackend
    from treadle.backends.cluster.settings import ClusterSettings


def backend_of(
    view: View, *, mask: Mask, unsafe_locks: bool, more: bool, run: RunFolder | None = None
) -> ExecutorBackend:
    """The backend for a view; `more`: steps of any kind may join the run, whose folder is `run`."""
    local = LocalBackend(gpus=gpus_here(), book=view.book, unsafe_locks=unsafe_locks, mask=mask)
    try:
        other = _other(view, mask=mask, unsafe_locks=unsafe_locks, more=more, run=run)
    except BaseException:
        local.close()
        raise
    if other is None:
        return local
    from treadle.backends.pair import PairBackend

    return PairBackend(local, other, local_rules=local_rules(view.workflow))


def _other(
    view: View, *, mask: Mask, unsafe_locks: bool, more: bool, run: RunFolder | None
) -> ExecutorBackend | None:
    cluster = view.workflow.cluster
    if cluster is not None and cluster.is_scheduler:
        _refuse_another_client(view, cluster, more)
        backend = scheduler_of(view, cluster, mask=mask, run=run)
        if view.book is None:
            return backend
        from treadle.backends.cluster.steps import SteppedCluster

        return SteppedCluster(backend, view.book, unsafe_locks=unsafe_locks, mask=mask)
    if cluster is not None and cluster.backend not in BACKENDS:
        return _added(cluster, view.workdir)
    to_client = view.book is not None and (more or uses_client(view.plan))
    if cluster is not None and cluster.backend == "ray":
        from treadle.backends.clients import RayClient, client_named, current_client

        current = current_client()
        client = current if isinstance(current, RayClient) else client_named("ray")
    elif to_client:
        from treadle.api.steps_pipe import client_is_local

        if client_is_local():
            return None
        from treadle.backends.clients import current_client

        client = current_client()
    else:
        return None
    settings = getattr(client, "settings", None)
    if settings is not None and run is not None:
        write_settings(run, settings)
    return client.backend(
        book=view.book,
        workdir=view.workdir,
        unsafe_locks=unsafe_locks,
        mask=mask,
        pools=[name for name, _ in view.plan.pools],
    )


def _added(cluster: Cluster, workdir: str) -> ExecutorBackend:
    """A backend that an installed package adds."""
    made = load_plugin(PLUGINS, cluster.backend)(workdir=workdir, settings=dict(cluster.values))
    return cast("ExecutorBackend", made)


def write_settings(run: RunFolder, settings: ClusterSettings) -> None:
    """How the scheduler of a run is used, for commands that come later."""
    write_whole(run.backend, msgspec.json.format(msgspec.json.encode(settings)) + b"\n")


def scheduler_of(view: View, cluster: Cluster, *, mask: Mask, run: RunFolder | None = None) -> ClusterBackend:
    """The scheduler of a view; how it is used is written into the folder of the run."""
    from treadle.backends.cluster.backend import ClusterBackend
    from treadle.backends.cluster.configured import settings_of

    settings = settings_of(cluster, view.workflow.rules)
    backend = ClusterBackend(
        settings,
        workdir=view.workdir,
        run=run,
        flowdir=view.workflow.folder,
        user=login_name(),
        mask=mask,
    )
    if run is not None:
        write_settings(run, settings)
    return backend


def _refuse_another_client(view: View, cluster: Cluster, more: bool) -> None:
    """A run has this machine and one other backend at most."""
    if view.book is None or not (more or uses_client(view.plan)):
        return
    from treadle.backends.clients import CLIENT, current_client

    client = current_client()
    if not client.is_local and client.name != cluster.backend:
        raise OptionError(
            f"rules are to run on {cluster.backend}, and steps on {client.name}: a run has one backend "
            "besides this machine",
            hint=f"leave {CLIENT} out, or choose another backend",
        )


def uses_client(plan: ScheduledPlan) -> bool:
    """Whether a step of the plan goes to the current client."""
    return any(task.call is not None and task.call.where is Where.CLIENT for task in plan.tasks.values())

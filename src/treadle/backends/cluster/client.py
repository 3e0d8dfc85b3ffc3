"""`ClusterClient`: jobs of Python functions, and steps, on a scheduler."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

from treadle.backends.cluster.configured import settings_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import StepError, UserError
from treadle.base.machine import login_name
from treadle.rules.profile.cluster import cluster_of_profiles
from treadle.rules.profile.find import known_profiles
from treadle.rules.schema import SCHEDULERS

if TYPE_CHECKING:
    from treadle.backends.client_jobs import BackendJobs, JobHandle, JobRequest
    from treadle.base.mask import Mask
    from treadle.engine.backend import ExecutorBackend
    from treadle.steps.book import StepBook
    from treadle.steps.resources import ResourceConfig


class ClusterClient:
    """Jobs of the scheduler that `settings` name: those themselves, a profile, or just `slurm`, `pbs`, `sge`,
    `lsf`. Jobs outlive this process.

    Profiles are looked for beside the current folder's files (`profiles/NAME.toml`), then as for workflows.
    Raises `StepError` for a name that is neither, and what is wrong with the profile.
    """

    is_local = False

    def __init__(self, settings: str | ClusterSettings) -> None:
        self.settings = _named(settings) if isinstance(settings, str) else settings
        self._address = settings if isinstance(settings, str) else settings.backend
        self._jobs: BackendJobs | None = None

    @property
    def name(self) -> str:
        return self.settings.backend

    @property
    def address(self) -> str:
        return self._address

    def submit(self, request: JobRequest) -> JobHandle:
        from treadle.backends.client_jobs import BackendJobs
        from treadle.backends.clients import new_folder, refuse_request

        refuse_request(self, request)
        if self._jobs is None:
            path = os.environ.get("PYTHONPATH", "")
            env = {"PYTHONPATH": path} if path else {}
            self._jobs = BackendJobs(self.backend(), new_folder(), env=env)
        return self._jobs.submit(request)

    def backend(
        self,
        *,
        book: StepBook | None = None,
        workdir: str = "",
        unsafe_locks: bool = False,
        mask: Mask | None = None,
        pools: Collection[str] = (),
    ) -> ExecutorBackend:
        from treadle.backends.cluster.backend import ClusterBackend

        inner = ClusterBackend(self.settings, workdir=workdir or os.getcwd(), user=login_name(), mask=mask)
        if book is None:
            return inner
        from treadle.backends.cluster.steps import SteppedCluster

        return SteppedCluster(inner, book, unsafe_locks=unsafe_locks, mask=mask)

    def cannot(self, resources: ResourceConfig) -> list[str]:
        """Images, and several nodes: a function is called once, on one of them."""
        from treadle.backends.clients import beyond_one_node

        return beyond_one_node(resources)

    def close(self) -> None:
        jobs, self._jobs = self._jobs, None
        if jobs is not None:
            jobs.close(end=False)


def means_cluster(name: str) -> bool:
    """Whether a name is that of a scheduler, or of a profile that there is."""
    return name in SCHEDULERS or name in known_profiles(os.getcwd())


def _named(name: str) -> ClusterSettings:
    folder = os.getcwd()
    try:
        if name in known_profiles(folder):
            cluster = cluster_of_profiles([name], "", folder)
        else:
            cluster = cluster_of_profiles([], name if name in SCHEDULERS else "", folder)
        if cluster is not None and cluster.is_scheduler:
            return settings_of(cluster)
    except UserError as error:
        raise StepError(error.diagnostics) from None
    known = ", ".join((*SCHEDULERS, *known_profiles(folder)))
    message = f"'{name}' names no scheduler, and no profile that does"
    raise StepError(message, hint=f"there are: {known}", code="unknown-client")

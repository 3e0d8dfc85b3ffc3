"""Clients: a user's handle on a backend. A client only chooses it; the driver knows backends alone."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from treadle.base.errors import StepError
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.place import Diagnostic

if TYPE_CHECKING:
    from treadle.backends.client_jobs import BackendJobs, JobHandle, JobRequest
    from treadle.base.mask import Mask
    from treadle.engine.backend import ExecutorBackend
    from treadle.steps.book import StepBook
    from treadle.steps.resources import ResourceConfig
    from treadle.steps.spec import StepSpec

CLIENT = "TREADLE_CLIENT"
_RAY_ADDRESS = re.compile(r"(ray://\S+|[A-Za-z0-9_.-]+:\d+|\[[0-9A-Fa-f:]+\]:\d+)\Z")


class Client(Protocol):
    """What a client is. `address` is what TREADLE_CLIENT says to mean it; `is_local`: its jobs are worker
    processes of this machine."""

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def is_local(self) -> bool: ...

    def submit(self, request: JobRequest) -> JobHandle:
        """Hand in one job. Raises `StepError` for what the backend cannot do, `SchedulerError`."""
        ...

    def backend(
        self,
        *,
        book: StepBook | None = None,
        workdir: str = "",
        unsafe_locks: bool = False,
        mask: Mask | None = None,
        pools: Collection[str] = (),
    ) -> ExecutorBackend:
        """The backend that it stands for, for one run; the steps of `book` may run there.

        `mask` knows the secrets that must not get into records, `pools` are counted resources of the run
        itself.
        """
        ...

    def cannot(self, resources: ResourceConfig) -> list[str]:
        """What of these resources the backend cannot do, in words."""
        ...

    def close(self) -> None:
        """Give back what is held. Jobs that outlive us go on, others are ended."""
        ...


class LocalClient:
    """Jobs as worker processes of this machine. They end with this process."""

    name = "local"
    address = "local"
    is_local = True

    def __init__(self) -> None:
        self._jobs: BackendJobs | None = None
        self._tether: tuple[int, int] | None = None

    def submit(self, request: JobRequest) -> JobHandle:
        refuse_request(self, request)
        if self._jobs is None:
            self._jobs = self._start()
        return self._jobs.submit(request)

    def _start(self) -> BackendJobs:
        import atexit

        from treadle.backends.client_jobs import BackendJobs
        from treadle.backends.tethered import tethered_argv

        self._tether = os.pipe()
        reader = self._tether[0]
        atexit.register(self.close)
        return BackendJobs(
            self.backend(),
            new_folder(),
            wrap=lambda argv: tethered_argv(argv, reader),
            env={CLIENT: self.address},
        )

    def backend(
        self,
        *,
        book: StepBook | None = None,
        workdir: str = "",
        unsafe_locks: bool = False,
        mask: Mask | None = None,
        pools: Collection[str] = (),
    ) -> ExecutorBackend:
        from treadle.backends.local import LocalBackend
        from treadle.base.machine import gpus_here

        return LocalBackend(gpus=gpus_here(), book=book, unsafe_locks=unsafe_locks, mask=mask)

    def cannot(self, resources: ResourceConfig) -> list[str]:
        """Several nodes, and images; what only names a queue has no meaning here, and is let be.

        `disk_gb` is compared with what is free where the work is done, which a client alone does not know.
        """
        return beyond_one_node(resources)

    def close(self) -> None:
        jobs, self._jobs = self._jobs, None
        if jobs is not None:
            jobs.close(end=True)
        if self._tether is not None:
            for fd in self._tether:
                os.close(fd)
            self._tether = None


class RayClient:
    """Jobs as actors of a Ray cluster: the one at `address`, else that of RAY_ADDRESS, else one of our own.

    `address` is `host:port`, `ray://host:port` or `auto`. `options` go to `ray.init`. Raises `StepError`
    where Ray is not installed. Only jobs on a cluster that is not our own outlive this process.
    """

    name = "ray"
    is_local = False

    def __init__(
        self,
        address: str | None = None,
        *,
        namespace: str = "treadle",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        from treadle.backends.ray_cluster import RayCluster

        self._cluster = RayCluster(address or "", namespace=namespace, options=options)
        self._jobs: BackendJobs | None = None

    @property
    def address(self) -> str:
        return "ray" if self._cluster.address == "local" else self._cluster.address

    def submit(self, request: JobRequest) -> JobHandle:
        from treadle.backends.client_jobs import BackendJobs

        refuse_request(self, request)
        if self._jobs is None:
            folder = new_folder()
            workdir = os.path.dirname(os.path.dirname(os.path.dirname(folder.root)))
            self._jobs = BackendJobs(self.backend(workdir=workdir), folder)
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
        from treadle.backends.ray_backend import RayBackend

        return RayBackend(
            self._cluster, book=book, workdir=workdir, unsafe_locks=unsafe_locks, mask=mask, pools=pools
        )

    def cannot(self, resources: ResourceConfig) -> list[str]:
        from treadle.backends.ray_cluster import impossible

        found = impossible(resources.to_resources())
        if resources.disk_gb is not None:
            found.append(f"disk_gb ({resources.disk_gb:g})")
        return found + ([f"image ({resources.image})"] if resources.image else [])

    def close(self) -> None:
        jobs, self._jobs = self._jobs, None
        if jobs is not None:
            jobs.close(end=self._cluster.owned)
        self._cluster.leave()


def beyond_one_node(resources: ResourceConfig) -> list[str]:
    """What a function that is called once, on one node and as it is, cannot have: in words."""
    found = [f"nodes ({resources.nodes})"] if (resources.nodes or 1) > 1 else []
    return found + ([f"image ({resources.image})"] if resources.image else [])


_chosen: ContextVar[Client | None] = ContextVar("treadle_client", default=None)
_named: dict[str, Client] = {}


def current_client() -> Client:
    """The client of `with use_client(...)`, else the one that TREADLE_CLIENT names, else this machine.

    Raises `StepError` for a name that means none.
    """
    chosen = _chosen.get()
    return chosen if chosen is not None else client_named(os.environ.get(CLIENT, ""))


@contextmanager
def use_client(client: Client | str) -> Iterator[Client]:
    """Let `client` (or the one of that name) be the current one, here and in threads of steps."""
    used = client_named(client) if isinstance(client, str) else client
    token = _chosen.set(used)
    try:
        yield used
    finally:
        _chosen.reset(token)


def choose_client(client: Client) -> None:
    """Let `client` be the current one from here on, where nobody has chosen another."""
    if _chosen.get() is None and CLIENT not in os.environ:
        _chosen.set(client)


def client_named(name: str) -> Client:
    """The client of a name: `local` (or nothing), `ray`, `ray://host:port`, `host:port`, `slurm`, `pbs`,
    `sge`, `lsf`, or a profile that names one of these; one for each name.

    Raises `StepError`.
    """
    name = name.strip() or LocalClient.name
    found = _named.get(name)
    if found is None:
        found = _named.setdefault(name, _made(name))
    return found


def _made(name: str) -> Client:
    if name == LocalClient.name:
        return LocalClient()
    if name == RayClient.name:
        return RayClient()
    if _RAY_ADDRESS.match(name):
        return RayClient(name)
    from treadle.backends.cluster.client import ClusterClient, means_cluster

    if means_cluster(name):
        return ClusterClient(name)
    raise StepError(
        f"'{name}' names no client",
        hint=f"{CLIENT} is local, ray, the address of a Ray cluster (ray://host:10001, host:6379), slurm, "
        "pbs, sge, lsf, or a profile",
        code="unknown-client",
    )


def refuse_impossible(client: Client, steps: Iterable[tuple[StepSpec, str]]) -> None:
    """See that a client can do what these steps ask for, each with its output path.

    Raises `StepError` with all that it cannot.
    """
    from treadle.steps.where import resources_of

    found = []
    for step, path in steps:
        resources = resources_of(step)
        if resources is not None and (cannot := _cannot(client, resources, path)):
            found.append(_refusal(f"step '{step.name}'", client, cannot))
    if found:
        raise StepError(found)


def refuse_request(client: Client, request: JobRequest) -> None:
    """See that a client can do what a job asks for. Raises `StepError`."""
    asked, folder = request.resources, request.cwd or os.getcwd()
    if asked is not None and (cannot := _cannot(client, asked, folder)):
        raise StepError([_refusal(f"job '{request.name or 'job'}'", client, cannot)])


def _cannot(client: Client, resources: ResourceConfig, path: str) -> list[str]:
    """What a client cannot do of it, for work that writes to `path`."""
    found = client.cannot(resources)
    if client.is_local and resources.disk_gb is not None:
        from treadle.backends.disk_room import lacking_room

        found = [*found, *lacking_room(resources, path)]
    return found


def _refusal(who: str, client: Client, cannot: list[str]) -> Diagnostic:
    return Diagnostic(
        "backend-cannot",
        f"{who} asks for what the client {client.name} cannot do: {', '.join(cannot)}",
        hint="leave it out of its resources, or run it through another client",
    )


def new_folder() -> RunFolder:
    """A new folder for the jobs of one client, below the work folder: on storage that nodes see."""
    from treadle.records.version import prepare

    state = StateFolder(os.getcwd())
    prepare(state)
    return state.client(f"{os.getpid()}-{os.urandom(4).hex()}")

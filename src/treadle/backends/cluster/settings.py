"""How a batch system is to be used: the `[cluster]` table, as values."""

from __future__ import annotations

from msgspec import Struct

from treadle.rules.schema import Partition


class ClusterSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of one scheduler; times in seconds, counts of jobs in array elements.

    `walltime` is the time limit of tasks that name none (None: the site's). `max_submitted` None: the
    site's limit, at most 1000; `max_running` (of all jobs of the run) and `max_array_size` 0: the site's.
    `poll_interval` is the shortest, it grows to 60 s when nothing changes. `latency_wait`: how long a missing
    file may still arrive on a slow file system. `lost_after`: how long no source may know a job.
    `poll_timeout`: how long the queue may not be readable (None: for ever), `outage_limit`: how long nothing
    may answer (None: the longest time limit in flight, else 24 h). `bin_dir` has the scheduler's commands.
    `parallel_environment`, `memory_resource`, `gpu_resource` are names of SGE's site set-up; `memory_unit`
    that of LSF's `-M`. `dialect` of PBS: `pbspro` or `torque` (empty: found out). Of `partitions`, in their
    order, the first that can take a request gets it; `ceilings` are the site's bounds on any.
    """

    backend: str
    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    walltime: int | None = None
    max_submitted: int | None = None
    max_running: int = 0
    max_array_size: int = 0
    poll_interval: float = 10.0
    extra_args: tuple[str, ...] = ()
    job_prefix: str = ""
    latency_wait: float = 30.0
    lost_after: float = 600.0
    poll_timeout: float | None = None
    outage_limit: float | None = None
    command_timeout: float = 60.0
    bin_dir: str = ""
    parallel_environment: str = "smp"
    memory_resource: str = "h_vmem"
    gpu_resource: str = "gpu"
    memory_unit: str = ""
    dialect: str = ""
    partitions: tuple[Partition, ...] = ()
    ceilings: Partition | None = None

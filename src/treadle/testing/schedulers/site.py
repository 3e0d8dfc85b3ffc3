"""What a fake cluster is like: its kind, its size, its habits."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """Which scheduler is played."""

    SLURM = "slurm"
    PBS = "pbs"  # OpenPBS, PBS Pro
    TORQUE = "torque"
    SGE = "sge"
    LSF = "lsf"


class Site(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cluster: `nodes` of `slots` CPUs each. Times are seconds of its clock, which runs `speed` times as
    fast as ours (0: it stands until it is moved on), from now plus `skew`.

    `keep`: how long the queue remembers what has ended (None: as the real one does by default).
    `kill_wait` (real seconds) lies between SIGTERM and SIGKILL. `start_delay`: from submission to start.
    `requeue_delay`: until a job that was requeued may start. `accounting`: whether there is any, `lag` late.
    `max_submitted` bounds jobs that have not ended (0: no bound), `max_time` the time limits that can be
    met (0: any). `partitions`: those that exist (none: whatever is asked for). `others`: how many jobs of
    other people stand in the queue. `enforce_memory`: jobs above what they asked for are ended.
    `broken_json`: what should be JSON is none. `simulator`: `module:function` that is called in the place
    of each job that is simulated, when it ends; `path` are folders where its module is looked for.
    """

    kind: Kind
    folder: str
    owner: int = 0
    user: str = "user"
    uid: int = 1000
    host: str = "localhost"
    slots: int = 4
    nodes: int = 1
    memory: int = 0
    speed: float = 1.0
    skew: float = 0.0
    keep: float | None = None
    kill_wait: float = 5.0
    start_delay: float = 0.0
    requeue_delay: float = 0.0
    accounting: bool = True
    lag: float = 0.0
    max_submitted: int = 0
    max_array_size: int = 0
    max_time: float = 0.0
    partitions: tuple[str, ...] = ()
    others: int = 0
    enforce_memory: bool = False
    broken_json: bool = False
    simulator: str = ""
    path: tuple[str, ...] = ()

    @property
    def partition(self) -> str:
        """The queue of jobs that name none."""
        if self.partitions:
            return self.partitions[0]
        names = {Kind.SLURM: "main", Kind.SGE: "all.q", Kind.LSF: "normal", Kind.PBS: "workq"}
        return names.get(self.kind, "batch")

    @property
    def kept(self) -> float:
        """MinJobAge, keep_completed, CLEAN_PERIOD; SGE forgets at once, PBS keeps a history of two weeks."""
        if self.keep is not None:
            return self.keep
        return {Kind.SLURM: 300.0, Kind.TORQUE: 300.0, Kind.LSF: 3600.0, Kind.PBS: 1209600.0}.get(
            self.kind, 0.0
        )

    @property
    def array_bound(self) -> int:
        """The first array index that is too large (MaxArraySize), or the largest number of elements."""
        if self.max_array_size:
            return self.max_array_size
        return {Kind.SLURM: 1001, Kind.PBS: 10000, Kind.SGE: 75000}.get(self.kind, 10000)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(f"node{number}" for number in range(1, self.nodes + 1))

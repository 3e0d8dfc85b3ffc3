"""`ResourceConfig`: what a step asks of the machine that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from treadle.base.units import parse_duration
from treadle.plan.task import Resources
from treadle.steps.faults import Fault, refuse

_GB = 1024**3  # as sizes of workflow files (`8G`) and of schedulers
_AMOUNTS = ("memory_gb", "disk_gb", "gpu_memory_gb")
_COUNTS = ("nodes", "tasks_per_node")
_TEXTS = ("gpu_type", "partition", "account", "qos", "constraint", "image")


class ResourceConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one attempt at a step asks for. Nothing here bears identity: changing it re-runs nothing.

    `cpu` in cores; sizes in GB of 1024^3 bytes; `time_limit` in seconds, or a text such as `2h`. `groups`
    are counted resources by name, `extra_args` go to the scheduler as they stand. None and empty: not said.
    What the backend of a run cannot do is refused before anything is submitted. Raises `StepError`.
    """

    cpu: float = 1
    memory_gb: float | None = None
    disk_gb: float | None = None
    gpu: int = 0
    gpu_type: str = ""
    gpu_memory_gb: float | None = None
    preemptible: bool = False
    time_limit: float | str | None = None
    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    nodes: int | None = None
    tasks_per_node: int | None = None
    image: str = ""
    groups: Mapping[str, int] = {}
    extra_args: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        faults: list[Fault] = []
        _see_numbers(self, faults)
        for field in _TEXTS:
            value = getattr(self, field)
            if value is None:
                force_setattr(self, field, "")
            elif not isinstance(value, str):
                faults.append(Fault("not-a-text", field, f"a text is wanted, not {value!r}"))
        extra: Any = self.extra_args
        if isinstance(extra, str):
            faults.append(Fault("not-a-list", "extra_args", "a list of texts is wanted"))
        force_setattr(self, "extra_args", tuple(extra or ()))
        force_setattr(self, "groups", dict(self.groups or {}))
        force_setattr(self, "preemptible", bool(self.preemptible))
        force_setattr(self, "time_limit", _seconds(self.time_limit, faults))
        if faults:
            raise refuse("ResourceConfig", faults)

    def __hash__(self) -> int:
        return hash((self.cpu, self.memory_gb, self.gpu, self.partition))

    def to_resources(self) -> Resources:
        """The same as tasks of a plan have it: whole cores, bytes, whole seconds, all rounded up."""
        assert not isinstance(self.time_limit, str)  # seconds, since it was made
        return Resources(
            threads=ceil(self.cpu),
            memory=_bytes(self.memory_gb),
            gpus=self.gpu,
            gpu_model=self.gpu_type,
            gpu_memory=_bytes(self.gpu_memory_gb),
            disk=_bytes(self.disk_gb),
            time_limit=None if self.time_limit is None else ceil(self.time_limit),
            groups=tuple(sorted(self.groups.items())),
            partition=self.partition,
            account=self.account,
            qos=self.qos,
            constraint=self.constraint,
            nodes=self.nodes,
            tasks_per_node=self.tasks_per_node,
            extra_args=self.extra_args,
        )


def _bytes(size: float | None) -> int | None:
    return None if size is None else ceil(size * _GB)


def _see_numbers(config: ResourceConfig, faults: list[Fault]) -> None:
    for field, unsaid in (("cpu", 1), ("gpu", 0)):
        if getattr(config, field) is None:
            force_setattr(config, field, unsaid)
    for field in ("cpu", *_AMOUNTS):
        value = getattr(config, field)
        if value is not None and not (_is_number(value) and isfinite(value) and value > 0):
            faults.append(Fault("not-an-amount", field, f"a number above 0 is wanted, not {value!r}"))
    for field, least in (("gpu", 0), *((field, 1) for field in _COUNTS)):
        value = getattr(config, field)
        if value is not None and not _is_count(value, least):
            faults.append(
                Fault("not-a-count", field, f"a whole number from {least} on is wanted, not {value!r}")
            )
    groups: Any = config.groups
    if not isinstance(groups or {}, Mapping):
        faults.append(Fault("not-a-mapping", "groups", "a mapping of names to counts is wanted"))
        force_setattr(config, "groups", {})
        return
    for name, count in (groups or {}).items():
        if not isinstance(name, str) or not _is_count(count, 1):
            faults.append(Fault("not-a-count", f"groups.{name}", f"a whole number is wanted, not {count!r}"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _seconds(limit: Any, faults: list[Fault]) -> float | None:
    if limit is None:
        return None
    if isinstance(limit, str):
        try:
            return parse_duration(limit)
        except ValueError as error:
            faults.append(Fault("not-a-duration", "time_limit", str(error)))
            return None
    seconds = limit.total_seconds() if hasattr(limit, "total_seconds") else limit
    if not _is_number(seconds) or not 0 < seconds < float("inf"):
        faults.append(Fault("not-a-duration", "time_limit", f"seconds above 0 are wanted, not {limit!r}"))
        return None
    return float(seconds)

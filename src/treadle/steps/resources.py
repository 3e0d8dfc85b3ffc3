"""`ResourceConfig`: what a step asks of the machine that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any, Never, NoReturn

from treadle.base.units import parse_duration
from treadle.plan.task import Resources
from treadle.steps.canon import FrozenDict
from treadle.steps.faults import Fault, refuse, see_unknown

if TYPE_CHECKING:
    from datetime import timedelta

_GB = 1024**3  # as sizes of workflow files (`8G`) and of schedulers
_set = object.__setattr__


class ResourceConfig:
    """What one attempt at a step asks for. Nothing here bears identity: changing it re-runs nothing.

    `cpu` in cores; sizes in GB of 1024^3 bytes; `time_limit` in seconds, or a text such as `2h`. `groups`
    are counted resources by name, `extra_args` go to the scheduler as they stand. None and empty: not said.
    What the backend of a run cannot do is refused before anything is submitted. Raises `StepError`.
    """

    __slots__ = (
        "account",
        "constraint",
        "cpu",
        "disk_gb",
        "extra_args",
        "gpu",
        "gpu_memory_gb",
        "gpu_type",
        "groups",
        "image",
        "memory_gb",
        "nodes",
        "partition",
        "preemptible",
        "qos",
        "tasks_per_node",
        "time_limit",
    )

    cpu: float
    memory_gb: float | None
    disk_gb: float | None
    gpu: int
    gpu_type: str
    gpu_memory_gb: float | None
    preemptible: bool
    time_limit: float | None
    partition: str
    account: str
    qos: str
    constraint: str
    nodes: int | None
    tasks_per_node: int | None
    image: str
    groups: dict[str, int]
    extra_args: tuple[str, ...]

    def __init__(
        self,
        *,
        cpu: float | None = 1,
        memory_gb: float | None = None,
        disk_gb: float | None = None,
        gpu: int | None = 0,
        gpu_type: str | None = "",
        gpu_memory_gb: float | None = None,
        preemptible: bool | None = False,
        time_limit: float | str | timedelta | None = None,
        partition: str | None = "",
        account: str | None = "",
        qos: str | None = "",
        constraint: str | None = "",
        nodes: int | None = None,
        tasks_per_node: int | None = None,
        image: str | None = "",
        groups: Mapping[str, int] | None = None,
        extra_args: Iterable[str] | None = (),
        **unknown: Never,
    ) -> None:
        faults: list[Fault] = []
        see_unknown(unknown, ResourceConfig.__init__.__kwdefaults__ or (), faults)
        _set(self, "cpu", _amount("cpu", 1 if cpu is None else cpu, faults))
        _set(self, "memory_gb", _amount("memory_gb", memory_gb, faults))
        _set(self, "disk_gb", _amount("disk_gb", disk_gb, faults))
        _set(self, "gpu", _count("gpu", gpu or 0, 0, faults))
        _set(self, "gpu_type", _text("gpu_type", gpu_type, faults))
        _set(self, "gpu_memory_gb", _amount("gpu_memory_gb", gpu_memory_gb, faults))
        _set(self, "preemptible", bool(preemptible))
        _set(self, "time_limit", _seconds(time_limit, faults))
        _set(self, "partition", _text("partition", partition, faults))
        _set(self, "account", _text("account", account, faults))
        _set(self, "qos", _text("qos", qos, faults))
        _set(self, "constraint", _text("constraint", constraint, faults))
        _set(self, "nodes", _count("nodes", nodes, 1, faults))
        _set(self, "tasks_per_node", _count("tasks_per_node", tasks_per_node, 1, faults))
        _set(self, "image", _text("image", image, faults))
        _set(self, "groups", _groups(groups, faults))
        if isinstance(extra_args, str):
            faults.append(Fault("not-a-list", "extra_args", "a list of texts is wanted"))
        _set(self, "extra_args", tuple(extra_args or ()))
        if faults:
            raise refuse("ResourceConfig", faults)

    def _said(self) -> dict[str, Any]:
        """The fields that are not as they are without a word."""
        plain = ResourceConfig.__init__.__kwdefaults__ or {}
        values = {name: getattr(self, name) for name in plain}
        return {name: value for name, value in values.items() if value and value != plain[name]}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ResourceConfig):
            return NotImplemented
        return self._said() == other._said()

    def __hash__(self) -> int:
        return hash((self.cpu, self.memory_gb, self.gpu, self.partition))

    def __repr__(self) -> str:
        return f"ResourceConfig({', '.join(f'{name}={value!r}' for name, value in self._said().items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._said(),)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a ResourceConfig is frozen: {name} cannot be set; make another one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a ResourceConfig is frozen: {name} cannot be deleted")

    def to_resources(self) -> Resources:
        """The same as tasks of a plan have it: whole cores, bytes, whole seconds, all rounded up."""
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


def _again(said: dict[str, Any]) -> ResourceConfig:
    return ResourceConfig(**said)


def _amount(field: str, value: Any, faults: list[Fault]) -> Any:
    if value is not None and not (_is_number(value) and isfinite(value) and value > 0):
        faults.append(Fault("not-an-amount", field, f"a number above 0 is wanted, not {value!r}"))
    return value


def _count(field: str, value: Any, least: int, faults: list[Fault]) -> Any:
    if value is not None and not _is_count(value, least):
        faults.append(Fault("not-a-count", field, f"a whole number from {least} on is wanted, not {value!r}"))
    return value


def _text(field: str, value: Any, faults: list[Fault]) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        faults.append(Fault("not-a-text", field, f"a text is wanted, not {value!r}"))
        return ""
    return value


def _groups(groups: Any, faults: list[Fault]) -> dict[str, int]:
    if not isinstance(groups or {}, Mapping):
        faults.append(Fault("not-a-mapping", "groups", "a mapping of names to counts is wanted"))
        return {}
    for name, count in (groups or {}).items():
        if not isinstance(name, str) or not _is_count(count, 1):
            faults.append(Fault("not-a-count", f"groups.{name}", f"a whole number is wanted, not {count!r}"))
    return FrozenDict(groups or {})


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

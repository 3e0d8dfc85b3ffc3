"""A Ray cluster: joining one or starting one, and what of a task's resources it can give."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from treadle.base.errors import SchedulerError, StepError
from treadle.base.units import format_size
from treadle.plan.task import Resources

NAMESPACE = "treadle"
INSTALL = "install it: pip install 'treadle[ray]'"
_OWN = "local"


def require_ray() -> None:
    """Raises `StepError` where Ray is not installed."""
    from importlib.util import find_spec

    if find_spec("ray") is None:
        raise StepError("this run wants Ray, which is not installed here", hint=INSTALL, code="ray-missing")


class RayCluster:
    """The cluster of this process: Ray knows only one at a time.

    `address` as Ray takes it (`host:port`, `ray://host:port`, `auto`); empty: the one that RAY_ADDRESS
    names, else one is started, which ends with this process. `options` go to `ray.init` as they are.
    """

    def __init__(
        self, address: str = "", *, namespace: str = NAMESPACE, options: Mapping[str, Any] | None = None
    ) -> None:
        require_ray()
        self.namespace = namespace
        self._address = address or os.environ.get("RAY_ADDRESS", "") or _OWN
        self._options = dict(options or {})
        self._joined = False

    @property
    def owned(self) -> bool:
        """It was or will be started by this process, and ends with it."""
        return self._address == _OWN

    @property
    def address(self) -> str:
        """Where another process can join it; `local` before one was started."""
        if self.owned and self._joined:
            import ray

            return str(ray.get_runtime_context().gcs_address)
        return self._address

    def join(self) -> None:
        """Join the cluster, or start it; once. Raises `SchedulerError`."""
        if self._joined:
            return
        import ray

        if not ray.is_initialized():
            wanted: dict[str, Any] = {
                "address": self._address,
                "namespace": self.namespace,
                "log_to_driver": False,
                "configure_logging": False,
            }
            if self.owned:
                wanted["include_dashboard"] = False
            try:
                with _handlers_kept():
                    _init({**wanted, **self._options})
            except Exception as error:  # ConnectionError, RuntimeError on other versions, Ray's own
                raise _not_joined(self._address, error) from error
        self._joined = True

    def leave(self) -> None:
        """Part from the cluster; one that was started here ends."""
        if self._joined:
            import ray

            self._joined = False
            ray.shutdown()

    def nodes(self) -> list[dict[str, float]]:
        """What each living node has in all."""
        import ray

        known: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        return [dict(node["Resources"]) for node in known if node["Alive"]]


def _init(options: Mapping[str, Any]) -> None:
    """`ray.init`, once more where a head node had no time to start a server for this client (`ray://`)."""
    import ray

    try:
        ray.init(**options)
    except ConnectionAbortedError:  # Ray waits for that server for a limited time only, on a busy head, too
        ray.init(**options)


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """`ray.init` takes SIGTERM for itself: put back what was."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


def _not_joined(address: str, error: Exception) -> SchedulerError:
    words = str(error).strip().splitlines() or [type(error).__name__]
    if len(words) > 1 and words[0].endswith(":"):  # a traceback from the head, its cause at the end
        words[0] += f" {words[-1]}"
    if address == _OWN:
        return SchedulerError(
            f"Ray could not be started on this machine: {words[0]}", hint="see /tmp/ray/session_latest/logs"
        )
    hint = "see that it runs (`ray status`), and that its address can be reached from here"
    if "version" in str(error).lower():
        hint = "use the Python and the Ray of the cluster here, too"
        words = [" ".join(word.strip() for word in words if word.strip())]
    elif "auth" in str(error).lower():
        hint = "the cluster wants a token: see Ray's documentation of token authentication"
    return SchedulerError(f"the Ray cluster at {address} cannot be joined: {words[0]}", hint=hint)


def impossible(resources: Resources) -> list[str]:
    """What of it no Ray cluster can do, in words."""
    asked = {
        "nodes": resources.nodes if (resources.nodes or 1) > 1 else None,
        "tasks_per_node": resources.tasks_per_node if (resources.tasks_per_node or 1) > 1 else None,
        "partition": resources.partition,
        "account": resources.account,
        "qos": resources.qos,
        "constraint": resources.constraint,
        "gpu_memory": None if resources.gpu_memory is None else format_size(resources.gpu_memory),
        "extra_args": " ".join(resources.extra_args),
    }
    return [f"{name} ({value})" for name, value in asked.items() if value]


def ray_options(resources: Resources, nodes: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """The resources of an actor. Counted resources are asked of Ray where the cluster knows their names."""
    options: dict[str, Any] = {"num_cpus": resources.threads, "num_gpus": resources.gpus}
    if resources.memory is not None:
        options["memory"] = resources.memory
    if resources.gpus and resources.gpu_model:
        options["accelerator_type"] = resources.gpu_model
    known = {name for node in nodes for name in node}
    custom = {name: count for name, count in resources.groups if name in known}
    if custom:
        options["resources"] = custom
    return options


def wanted_of(options: Mapping[str, Any]) -> dict[str, float]:
    """The same by the names under which nodes tell what they have."""
    wanted = {"CPU": float(options["num_cpus"]), "GPU": float(options["num_gpus"])}
    if "memory" in options:
        wanted["memory"] = float(options["memory"])
    if "accelerator_type" in options:
        wanted[f"accelerator_type:{options['accelerator_type']}"] = 0.001
    return {**wanted, **options.get("resources", {})}


def lacking(options: Mapping[str, Any], nodes: Sequence[Mapping[str, float]]) -> str:
    """Why no node can ever hold it, in words (empty: one can)."""
    wanted = wanted_of(options)
    short = []
    for node in nodes:
        found = [name for name, amount in wanted.items() if amount > node.get(name, 0.0)]
        if not found:
            return ""
        short.append(found)
    if not short:
        return "the cluster has no node at all"
    least = min(short, key=len)
    told = [_amount(name, wanted[name], max(node.get(name, 0.0) for node in nodes)) for name in least]
    return f"no node of the cluster has {' and '.join(told)}"


def _amount(name: str, wanted: float, most: float) -> str:
    if name == "memory":
        return f"{format_size(int(wanted))} memory (the largest has {format_size(int(most))})"
    if name.startswith("accelerator_type:"):
        return f"the accelerator {name.partition(':')[2]}"
    return f"{wanted:g} {name} (the largest has {most:g})"


def capped(options: Mapping[str, Any], nodes: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """CPUs and memory cut to what this machine has, as its own backend does: for a cluster of our own."""
    made = dict(options)
    if nodes:
        made["num_cpus"] = min(made["num_cpus"], max(node.get("CPU", 0.0) for node in nodes))
        if "memory" in made:
            made["memory"] = min(made["memory"], int(max(node.get("memory", 0.0) for node in nodes)))
    return made

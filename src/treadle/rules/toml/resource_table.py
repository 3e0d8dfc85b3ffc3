"""What a rule asks for: `resources`, the older spelling on the rule itself, and the defaults."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import Struct

from treadle.plan.task import Resources
from treadle.rules.toml.fields import GPU_SPEC, RESOURCES, Kind
from treadle.rules.toml.kinds import NAME, take, whole, wrong
from treadle.rules.toml.section import Section, clip

_GIB = 1024**3
_PLAIN = (
    *("threads", "memory", "disk", "time_limit", "partition", "account", "qos", "constraint"),
    *("nodes", "tasks_per_node", "extra_args"),
)


class Defaults(Struct, frozen=True):
    """What holds where a rule says nothing: threads, memory (bytes, and as written), time limit (seconds)."""

    threads: int = 1
    memory: int | None = None
    memory_text: str = ""
    time_limit: int | None = None


def resources(section: Section, got: dict[str, Any], defaults: Defaults) -> tuple[Resources, str]:
    """The resources of a rule, and its memory as written.

    `got` are the rule's own fields. Where `[rules.resources]` and the rule both say something, they
    must say the same.
    """
    inner = section.inner(got.get("resources", {}), "resources")
    said = take(inner, RESOURCES, "resources")
    for key in ("threads", "memory"):
        if key in got and said.setdefault(key, got[key]) != got[key]:
            message = f"'{key}' is said here and, differently, in resources"
            section.error("said-twice", message, key, hint="keep the one in resources")
    given = {"threads": defaults.threads, "memory": defaults.memory, "time_limit": defaults.time_limit}
    asked = _shared(Resources(**{**given, **resource_values(inner, said)}))
    if "memory" not in said:
        return asked, defaults.memory_text
    return asked, str(inner.table.get("memory", section.table.get("memory"))).strip()


@lru_cache(maxsize=256)
def _shared(asked: Resources) -> Resources:
    """The first of resources that are equal: thousands of rules ask for the same."""
    return asked


def resource_values(section: Section, said: dict[str, Any]) -> dict[str, Any]:
    """What a `resources` table says, by the names that `Resources` has for it."""
    found = {key: said[key] for key in _PLAIN if key in said}
    if "gpu" in said or "gpu_spec" in said:
        found["gpus"], found["gpu_model"], found["gpu_memory"] = _gpus(section, said)
    if "groups" in said:
        found["groups"] = counts(section.inner(said["groups"], "groups"))
    return found


def _gpus(section: Section, said: dict[str, Any]) -> tuple[int, str, int | None]:
    if "gpu_spec" not in said:
        return said.get("gpu", 0), "", None
    spec = take(section.inner(said["gpu_spec"], "gpu_spec"), GPU_SPEC, "gpu_spec")
    count = spec.get("count", said.get("gpu", 1))
    if said.get("gpu", count) != count:
        message = f"'gpu' is {said['gpu']} here, but gpu_spec counts {count}"
        section.error("said-twice", message, "gpu", hint="keep the one in gpu_spec")
    memory = spec.get("memory_gb")
    return count, spec.get("model", ""), None if memory is None else memory * _GIB


def counts(section: Section) -> tuple[tuple[str, int], ...]:
    """A table of name -> how many, sorted by name; `{ max = 2 }` is another way to write 2."""
    found = ((name, _count(section, name, value)) for name, value in section.table.items())
    return tuple(sorted((name, count) for name, count in found if count is not None))


def _count(section: Section, name: str, value: Any) -> int | None:
    if section.strayed(name):
        return None
    if not NAME.match(name) or len(name) > 255:
        message = f"'{clip(name)}' cannot name a resource group"
        section.error("bad-name", message, name, hint="write letters, digits, _ and -, a letter first")
        return None
    if isinstance(value, dict) and "max" in value and value.keys() <= {"max", "wait"}:
        if value.get("wait", True) is not True:
            message = "'wait' has no effect here: a task waits until there is enough"
            section.warn("no-effect", message, name, "wait")
        value = value["max"]
    if isinstance(value, dict):
        wrong(section, value, Kind.COUNT, (name,))
        return None
    return whole(1)(section, value, Kind.COUNT, (name,))

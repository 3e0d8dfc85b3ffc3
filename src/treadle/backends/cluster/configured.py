"""`[cluster]`, as the workflow and its profiles say it, becomes the settings of one scheduler."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic, Place, Severity
from treadle.plan.task import Resources
from treadle.rules.profile.partitions import choose
from treadle.rules.schema import Cluster, Rule

# Fields of `[cluster]` that settings have under another name.
_NAMES = {"parallel_env": "parallel_environment"}
_OTHERS = ("backend", "scratch_dir", "env_setup")  # what is no setting of the scheduler
_DIALECTS = ("pbspro", "openpbs", "torque")
_UNIT = re.compile(r"[KMGT]B?\Z", re.IGNORECASE)
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*\Z")
_WORD = re.compile(r"[^\s,;=]+\Z")
# What only one scheduler knows, by the field of `[cluster]` or of `resources`: it says nothing to the others.
_OF_ONE = {
    "dialect": ("pbs",),
    "qos": ("slurm",),
    "disk": ("slurm",),
    "parallel_env": ("sge",),
    "memory_resource": ("sge",),
    "gpu_resource": ("sge",),
    "memory_unit": ("lsf",),
}


def settings_of(cluster: Cluster, rules: Iterable[Rule] = ()) -> ClusterSettings:
    """The settings of a scheduler. Raises WorkflowError with everything that is wrong with them, and with
    what `rules` ask of it."""
    said = {_NAMES.get(key, key): value for key, value in cluster.values.items() if key not in _OTHERS}
    if "bin_dir" in said:
        said["bin_dir"] = os.path.expanduser(said["bin_dir"])
    settings = ClusterSettings(
        backend=cluster.backend, partitions=cluster.partitions, ceilings=cluster.ceilings, **said
    )
    if found := [*_wrong(cluster, settings), *_wrong_requests(settings, rules)]:
        raise WorkflowError(found)
    return settings


def placed(settings: ClusterSettings, wanted: Resources) -> Resources:
    """The request with its partition: its own, else the first of the profile's that can take it."""
    if wanted.partition or not settings.partitions:
        return wanted
    chosen = choose(settings.partitions, wanted, settings.walltime)
    return wanted if chosen is None else replace(wanted, partition=chosen)


def idle(cluster: Cluster, rules: Iterable[Rule]) -> Iterator[Diagnostic]:
    """What is said to this scheduler in vain."""
    for key, backends in _OF_ONE.items():
        if cluster.backend in backends:
            continue
        places = [cluster.at(key)] if key in cluster.values else []
        places += [rule.places[f"resources.{key}"] for rule in rules if f"resources.{key}" in rule.places]
        for place in places[:1]:
            message = f"'{key}' has no effect here: {cluster.backend} does not know it"
            yield Diagnostic("no-effect", message, place, severity=Severity.WARNING)


def _wrong(cluster: Cluster, settings: ClusterSettings) -> Iterator[Diagnostic]:
    def said(key: str, message: str, hint: str = "") -> Diagnostic:
        return Diagnostic("bad-value", message, cluster.at(key), hint)

    if settings.dialect and settings.backend == "pbs" and settings.dialect not in _DIALECTS:
        hint = f"one of: {', '.join(_DIALECTS)}"
        yield said("dialect", f"there is no dialect '{settings.dialect}' of PBS", hint)
    if settings.memory_unit and not _UNIT.match(settings.memory_unit):
        yield said("memory_unit", f"'{settings.memory_unit}' is not a unit", "one of: KB, MB, GB, TB")
    if settings.job_prefix and not _PREFIX.match(settings.job_prefix):
        hint = "write letters, digits, '.', '_' and '-', a letter first"
        yield said("job_prefix", f"'{settings.job_prefix}' cannot begin the name of a job", hint)
    if settings.bin_dir and not os.path.isdir(settings.bin_dir):
        yield said("bin_dir", f"there is no folder '{settings.bin_dir}'", "it holds the scheduler's commands")
    for key in ("partition", "account", "qos", "parallel_env", "memory_resource", "gpu_resource"):
        value = getattr(settings, _NAMES.get(key, key))
        if value and not _WORD.match(value):
            yield said(key, f"'{value}' is not one name")
    yield from _owned(settings, settings.extra_args, cluster.at("extra_args"))


def _wrong_requests(settings: ClusterSettings, rules: Iterable[Rule]) -> Iterator[Diagnostic]:
    for rule in rules:
        if rule.stays:
            continue
        wanted = rule.resources
        yield from _owned(settings, wanted.extra_args, rule.at("resources"))
        if settings.backend in ("slurm", "pbs"):
            continue
        for key, value in (("nodes", (wanted.nodes or 1) > 1), ("tasks_per_node", wanted.tasks_per_node)):
            if value:
                message = f"rule {rule.name} asks for '{key}', which {settings.backend} cannot give"
                hint = "take it out of its resources: SLURM and PBS know it"
                yield Diagnostic("backend-cannot", message, rule.at(f"resources.{key}"), hint)


def _owned(settings: ClusterSettings, options: Any, place: Place) -> Iterator[Diagnostic]:
    """Options that the engine sets itself."""
    if not options:
        return
    if settings.dialect not in _DIALECTS:  # that is told by itself
        settings = replace(settings, dialect="")
    for option in dialect_of(settings).owned(options):
        message = f"'{option}' in extra_args belongs to Treadle, which sets it itself"
        yield Diagnostic("owned-option", message, place, "take it out")

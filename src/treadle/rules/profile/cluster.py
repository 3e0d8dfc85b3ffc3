"""`[cluster]` of the workflow and its profiles: which backend the run has, and how it is to be used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from treadle.base.errors import WorkflowError
from treadle.base.place import Place, Severity
from treadle.base.plugins import BACKENDS as PLUGINS
from treadle.base.plugins import plugin_names
from treadle.rules.profile.layers import Layered, Layers, layered, read_profiles
from treadle.rules.schema import BACKENDS, Cluster, Partition
from treadle.rules.toml.fields import CEILINGS, CLUSTER, FLOORS, PARTITION, Fields
from treadle.rules.toml.kinds import take, wrong
from treadle.rules.toml.lines import Spot
from treadle.rules.toml.section import Findings, Section, clip

_LIMITS = ("threads", "memory", "time_limit", "gpu", "nodes")
_CUT = ("max_submitted", "max_running", "max_array_size")


def read_cluster(own: Section, layers: Layers, backend: str, findings: Findings) -> Cluster | None:
    """The cluster of a run; `own` is the workflow's table, `backend` that of the command line.

    None where no backend is named. Everything wrong with any of the tables is reported.
    """
    said = layered(layers.of("cluster", own), CLUSTER, "[cluster]")
    bounds = layered(_bounds(layers, "ceilings"), CEILINGS, "[ceilings]")
    floors = layered(_bounds(layers, "floors"), FLOORS, "[floors]")
    partitions = tuple(_partitions(layers))
    values = _bounded(said, bounds, floors, findings)
    _check_scratch_dir(said, findings)
    chosen = _backend(said, backend, findings)
    if said.values.get("env_setup", "driver") not in ("driver", "job"):
        message = (
            f"environments are made by the driver or as a job, not by '{clip(said.values['env_setup'])}'"
        )
        findings.error("bad-value", message, said.at("env_setup"), 'write "driver" or "job"')
    if not chosen:
        return None
    return Cluster(
        backend=chosen,
        values=values,
        partitions=partitions,
        ceilings=_ceilings(bounds),
        profiles=tuple(one.file for one in layers.profiles),
        places=said.places(),
    )


def cluster_of_profiles(profiles: Sequence[str], backend: str, flowdir: str) -> Cluster | None:
    """The cluster that profiles name by themselves, without a workflow; `backend` stands above theirs.

    Raises OptionError for a profile that there is not, WorkflowError with all that is wrong with them.
    """
    findings = Findings()
    layers = Layers(read_profiles(profiles, flowdir, findings, site=True))
    found = read_cluster(Section({}, Spot(), "cluster", "", findings), layers, backend, findings)
    errors = [one for one in findings.found if one.severity is Severity.ERROR]
    if errors:
        raise WorkflowError(errors)
    return found


def _backend(said: Layered, backend: str, findings: Findings) -> str:
    """The backend that was named, on the command line or in a table."""
    place = Place("the command line", 0, "", "--backend")
    if not backend:
        backend = said.values.get("backend", "")
        place = said.at("backend") if backend else place
    if not backend or backend in BACKENDS:
        return backend
    known = [*BACKENDS, *plugin_names(PLUGINS)]
    if backend in known:
        return backend
    hint = findings.guess(backend, known) or f"one of: {', '.join(known)}"
    findings.error("unknown-backend", f"there is no backend '{clip(backend)}'", place, hint)
    return ""


def _bounds(layers: Layers, name: str) -> list[Section]:
    """A table of bounds, of the site's files alone. Those of every run count more than a profile's."""
    found = [one for one in layers.profiles if one.sites]
    return [one.tables.one(name) for one in sorted(found, key=lambda one: one.always)]


def _bounded(said: Layered, ceilings: Layered, floors: Layered, findings: Findings) -> dict[str, Any]:
    """The values within the site's bounds; what had to be changed is told."""
    values = dict(said.values)
    for key in _CUT:
        most = ceilings.values.get(key)
        if most is not None and values.get(key, most + 1) > most:
            if key in values:
                message = f"the site allows at most {most} for '{key}': it is cut to that"
                findings.warn("cut-by-site", message, said.at(key))
            values[key] = most
    least = floors.values.get("poll_interval")
    if least is not None and values.get("poll_interval", 0.0) < least:
        if "poll_interval" in values:
            message = f"the site asks for at least {least:g} s between two questions: it is raised to that"
            findings.warn("cut-by-site", message, said.at("poll_interval"))
        values["poll_interval"] = least
    return values


def _check_scratch_dir(said: Layered, findings: Findings) -> None:
    """Jobs begin in the work folder: a relative path would be one in there, on storage that all share."""
    path = said.values.get("scratch_dir", "")
    if path and not path.startswith(("/", "$", "~/")) and path != "~":
        message = f"'{clip(path)}' is not an absolute path"
        hint = "write one that every node has, or a variable that is set in jobs: '$TMPDIR'"
        findings.error("bad-value", message, said.at("scratch_dir"), hint)


def _ceilings(bounds: Layered) -> Partition | None:
    found = {key: bounds.values[key] for key in _LIMITS if key in bounds.values}
    if not found:
        return None
    return Partition(name="", **{"gpu": -1, **found})  # a site that says nothing of GPUs sets no bound


def _partitions(layers: Layers) -> Iterator[Partition]:
    """The partitions of all profiles; of two with one name the last one, in the place of the first."""
    found: dict[str, Partition] = {}
    for profile in layers.profiles:
        section = profile.tables.one("partitions")
        for name, value in section.table.items():
            if not isinstance(value, dict):
                wrong(section, value, "a table [partitions.NAME] with limits", (name,))
                continue
            found[name] = _partition(section, name, value, PARTITION)
    yield from found.values()


def _partition(section: Section, name: str, value: dict[str, Any], fields: Fields) -> Partition:
    return Partition(name=name, **take(section.inner(value, name), fields, f"[partitions.{clip(name)}]"))

"""Where a step's function is called, and with what: the step's own word, then that of `remote`."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from msgspec.structs import replace

from treadle.plan.task import Resources, Where
from treadle.steps.remote import RemoteCallable
from treadle.steps.resources import ResourceConfig
from treadle.steps.spec import StepSpec

_NONE = Resources()


def resources_of(spec: StepSpec) -> ResourceConfig | None:
    """What the step asks for: its own resources beat those of `remote` as a whole."""
    if spec.resources is None and isinstance(spec.fn, RemoteCallable):
        return spec.fn.resources
    return spec.resources


def env_of(spec: StepSpec) -> Mapping[str, str]:
    """The environment variables of the step and of `remote`, the step's winning."""
    if isinstance(spec.fn, RemoteCallable):
        return {**spec.fn.env_vars, **spec.env_vars}
    return spec.env_vars


def where_of(spec: StepSpec, *, client_is_local: bool) -> Where:
    """Where the function is called.

    What has resources, or was made by `remote`, goes to the client: as a worker process when that is this
    machine. So does what must be killable, or needs variables of its own. The rest runs in a thread.
    """
    if spec.resources is not None or isinstance(spec.fn, RemoteCallable):
        return Where.PROCESS if client_is_local else Where.CLIENT
    if spec.timeout is not None or spec.env_vars or spec.isolation == "process":
        return Where.PROCESS
    return Where.THREAD


def planned_resources(spec: StepSpec) -> Resources:
    """The same as tasks of a plan have it; a `timeout` is the time limit, if that is not shorter."""
    config = resources_of(spec)
    found = _NONE if config is None else config.to_resources()
    if spec.timeout is None:
        return found
    seconds = ceil(spec.timeout)
    return replace(found, time_limit=min(seconds, found.time_limit or seconds))

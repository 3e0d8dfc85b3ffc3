"""Treadle, a workflow engine: a static plan, one decision, one driver, any backend.

The public names are imported when they are used: `import treadle` costs nothing, and the command loads
only what its work needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from treadle.api.steps import StepRunner
    from treadle.api.steps_report import AttemptError, RunReport, StepReport, StepRunError, StepWarning
    from treadle.backends.client_jobs import JobHandle, JobRequest
    from treadle.backends.clients import LocalClient, RayClient, current_client, use_client
    from treadle.backends.cluster.client import ClusterClient
    from treadle.base.errors import (
        CycleError,
        OptionError,
        PlanError,
        StepError,
        TreadleError,
        WorkflowError,
    )
    from treadle.engine.backend import ExecutorBackend, JobStatus
    from treadle.engine.loop import BackendDriver
    from treadle.plan.task import ScheduledPlan, ScheduledTask
    from treadle.records.job import JobRecord
    from treadle.steps.maker import step
    from treadle.steps.remote import RemoteCallable, remote
    from treadle.steps.resources import ResourceConfig
    from treadle.steps.spec import StepSpec

__all__ = [
    "AttemptError",
    "BackendDriver",
    "ClusterClient",
    "CycleError",
    "ExecutorBackend",
    "JobHandle",
    "JobRecord",
    "JobRequest",
    "JobStatus",
    "LocalClient",
    "OptionError",
    "PlanError",
    "RayClient",
    "RemoteCallable",
    "ResourceConfig",
    "RunReport",
    "ScheduledPlan",
    "ScheduledTask",
    "StepError",
    "StepReport",
    "StepRunError",
    "StepRunner",
    "StepSpec",
    "StepWarning",
    "TreadleError",
    "WorkflowError",
    "current_client",
    "remote",
    "step",
    "use_client",
]

# Where each of them is defined.
_HOMES = {
    "AttemptError": "treadle.api.steps_report",
    "BackendDriver": "treadle.engine.loop",
    "ClusterClient": "treadle.backends.cluster.client",
    "CycleError": "treadle.base.errors",
    "ExecutorBackend": "treadle.engine.backend",
    "JobHandle": "treadle.backends.client_jobs",
    "JobRecord": "treadle.records.job",
    "JobRequest": "treadle.backends.client_jobs",
    "JobStatus": "treadle.engine.backend",
    "LocalClient": "treadle.backends.clients",
    "OptionError": "treadle.base.errors",
    "PlanError": "treadle.base.errors",
    "RayClient": "treadle.backends.clients",
    "RemoteCallable": "treadle.steps.remote",
    "ResourceConfig": "treadle.steps.resources",
    "RunReport": "treadle.api.steps_report",
    "ScheduledPlan": "treadle.plan.task",
    "ScheduledTask": "treadle.plan.task",
    "StepError": "treadle.base.errors",
    "StepReport": "treadle.api.steps_report",
    "StepRunError": "treadle.api.steps_report",
    "StepRunner": "treadle.api.steps",
    "StepSpec": "treadle.steps.spec",
    "StepWarning": "treadle.api.steps_report",
    "TreadleError": "treadle.base.errors",
    "WorkflowError": "treadle.base.errors",
    "current_client": "treadle.backends.clients",
    "remote": "treadle.steps.remote",
    "step": "treadle.steps.maker",
    "use_client": "treadle.backends.clients",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'treadle' has no attribute '{name}'")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(home), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

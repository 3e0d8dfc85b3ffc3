"""The scheduler of a run, as the workflow and its profiles ask for it: seen to before anything is decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.base.place import Diagnostic, Severity
from treadle.rules.schema import Workflow

if TYPE_CHECKING:
    from treadle.api.pipe import Request, View


def with_cluster_checked(workflow: Workflow) -> Workflow:
    """The workflow, with warnings about what its scheduler does not know.

    Raises WorkflowError with all settings and requests that cannot be.
    """
    cluster = workflow.cluster
    if cluster is None or not cluster.is_scheduler:
        return workflow
    from treadle.backends.cluster.configured import idle, settings_of  # local runs do without

    settings_of(cluster, workflow.rules)
    return replace(workflow, warnings=(*workflow.warnings, *idle(cluster, workflow.rules)))


def choose_client(request: Request, flowdir: str) -> None:
    """Let steps go to the backend that was chosen, unless TREADLE_CLIENT or `use_client` says otherwise."""
    if not request.profiles and not request.backend:
        return
    from treadle.backends import clients
    from treadle.rules.profile.cluster import cluster_of_profiles

    cluster = cluster_of_profiles(request.profiles, request.backend, flowdir)
    if cluster is None or cluster.backend == "local":
        return
    if cluster.backend == "ray":
        clients.choose_client(clients.client_named("ray"))
        return
    from treadle.backends.cluster.client import ClusterClient
    from treadle.backends.cluster.configured import settings_of

    clients.choose_client(ClusterClient(settings_of(cluster)))


def local_rules(workflow: Workflow) -> frozenset[str] | None:
    """The rules that run on this machine; None: all of them."""
    if workflow.cluster is None or workflow.cluster.backend == "local":
        return None
    here = {rule.name for rule in workflow.rules if rule.stays}
    if workflow.cluster.values.get("env_setup") != "job":
        makings = (rule.policy.environment and rule.policy.environment.making for rule in workflow.rules)
        here.update(making.task for making in makings if making)
    return frozenset(here)


def scratch_dir(workflow: Workflow) -> str:
    """Where the nodes have room for private folders of tasks (empty: nowhere that is known)."""
    return str(workflow.cluster.values.get("scratch_dir", "")) if workflow.cluster is not None else ""


def beyond_backend(view: View) -> list[Diagnostic]:
    """What a scheduler or its site will not give to rules that are to run: errors, where a preview warns."""
    cluster = view.workflow.cluster
    if cluster is None or not cluster.is_scheduler:
        return []
    return [
        replace(one, severity=Severity.ERROR)
        for one in view.beyond
        if one.code in ("beyond-site", "no-partition")
    ]

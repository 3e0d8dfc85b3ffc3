"""From a submission to a detached actor: what is asked of Ray, and how the ticket travels."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from treadle.backends.payload import make_private_folder, write_payload
from treadle.backends.ray_cluster import RayCluster, capped, impossible, lacking, ray_options
from treadle.backends.ray_ticket import Ticket, encode_ticket
from treadle.backends.remote_steps import RemoteSteps
from treadle.base.errors import SchedulerError, StepError
from treadle.base.files import make_parents, remove
from treadle.base.layout import RunFolder
from treadle.engine.backend import Submission

CLIENT_VARIABLE = "TREADLE_CLIENT"
_INLINE = 64 * 1024  # bytes; Ray puts larger arguments into the object store, where they end with the driver
_ASKERS = 8  # threads of an actor that answer: several drivers may ask at once


class RayLauncher:
    """Makes the actors of attempts. `pools` are the counted resources that the run itself counts."""

    def __init__(self, cluster: RayCluster, steps: RemoteSteps, pools: Collection[str]) -> None:
        self._cluster = cluster
        self._steps = steps
        self._pools = frozenset(pools)

    def launch(self, submission: Submission, name: str, nodes: Sequence[dict[str, float]]) -> tuple[Any, str]:
        """The actor `name`, and for what it will wait (empty: there is a node that can hold it).

        Raises `StepError` for what Ray cannot do, or a function that cannot be sent; `DiskError`;
        `SchedulerError` where Ray as a whole fails.
        """
        options = self._options(submission, nodes)
        waits_for = lacking(options, nodes)
        if waits_for and self._cluster.owned:  # it will not grow
            raise StepError(waits_for, code="never-fits")
        return self._actor(name, options, *self._ticket(submission)), waits_for

    def _options(self, submission: Submission, nodes: Sequence[dict[str, float]]) -> dict[str, Any]:
        asked = submission.resources
        if found := impossible(asked):
            raise StepError(f"Ray cannot do what it asks for: {', '.join(found)}", code="backend-cannot")
        options = ray_options(asked, nodes)
        known = self._pools | options.get("resources", {}).keys()
        if unknown := [name for name, _ in asked.groups if name not in known]:
            raise StepError(
                f"neither the cluster nor the workflow has a resource named {' or '.join(unknown)}",
                code="unknown-group",
            )
        return capped(options, nodes) if self._cluster.owned else options

    def _ticket(self, submission: Submission) -> tuple[bytes, str]:
        """The ticket, or the private file where it stands: what is long, or holds secrets."""
        env = {**submission.env, CLIENT_VARIABLE: self._cluster.address}
        order = b""
        if submission.task.call is not None:
            order = self._steps.order(submission)
            env.update(self._steps.env(submission.task.id))
        run = RunFolder(os.path.dirname(os.path.dirname(submission.log)))
        make_parents(submission.log)
        make_private_folder(run.payloads)
        told = run.result(submission.n)
        remove(told)
        wire = encode_ticket(Ticket(submission=replace(submission, env=env), order=order), told)
        if len(wire) <= _INLINE and not submission.task.command.secrets:
            return wire, ""
        write_payload(run.payload(submission.n), wire, told)
        return b"", run.payload(submission.n)

    def _actor(self, name: str, options: Mapping[str, Any], wire: bytes, file: str) -> Any:
        import ray

        from treadle.backends.ray_attempt import RayAttempt

        made = ray.remote(RayAttempt).options(
            name=name,
            namespace=self._cluster.namespace,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=0,
            max_concurrency=_ASKERS,
            **options,
        )
        try:
            return made.remote(wire, file)
        except Exception as error:
            raise SchedulerError(f"Ray did not take {name}: {error}") from error

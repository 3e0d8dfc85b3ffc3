"""`ResourceConfig`: what a step asks of the machine that runs it."""

from __future__ import annotations

from msgspec import Struct

from treadle.plan.task import Resources


class ResourceConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one attempt at a step asks for. Nothing here bears identity: changing it re-runs nothing."""

    cpu: int = 1
    memory_gb: float | None = None

    def to_resources(self) -> Resources:
        return Resources(threads=self.cpu)

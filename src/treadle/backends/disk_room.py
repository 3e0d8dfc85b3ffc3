"""Whether this machine has the disk space that a step or a job asks for, before anything is submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.base.errors import DiskError
from treadle.base.files import free_bytes
from treadle.plan.paths import is_url
from treadle.steps.staging import staging_base

if TYPE_CHECKING:
    from treadle.steps.resources import ResourceConfig

_GB = 1024**3


def lacking_room(resources: ResourceConfig, path: str) -> list[str]:
    """What is lacking on the file system that `path` is or will be on, in words; nothing where there is room.

    What goes to a URL is staged on this machine.
    """
    if resources.disk_gb is None:
        return []
    if is_url(path):
        path = staging_base()
    try:
        free = free_bytes(path) / _GB
    except DiskError:
        return []  # who writes there will say what is wrong
    return (
        []
        if resources.disk_gb <= free
        else [f"disk_gb ({resources.disk_gb:g}: {free:.1f} GB are free for {path})"]
    )

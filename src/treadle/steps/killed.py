"""Attempts that were killed, and so could not say how they ended: a lease or a status stands, of nobody."""

from __future__ import annotations

from msgspec.structs import replace

from treadle.base.files import is_there
from treadle.base.layout import ArtifactPlaces
from treadle.plan.paths import is_url
from treadle.steps.record import ArtifactState, ArtifactStatus, Seen, Standing
from treadle.steps.spec import Identified
from treadle.steps.store import ArtifactStore


def with_killed(seen: Seen, store: ArtifactStore, step: Identified, path: str) -> Seen:
    """The look at a step's output path; where nothing stands there because its attempt was killed, with the
    status that this attempt could not write. Raises `DiskError`.

    Costs nothing where an artifact or another status is found; else one look for a lease, on a plain file
    system. On an object store only an attempt that said that it runs is asked about.
    """
    if seen.state is not ArtifactState.ABSENT:
        return seen
    if seen.status is not None:
        is_left = seen.status.state is Standing.RUNNING and store.holder(path) is None
        return replace(seen, status=replace(seen.status, state=Standing.INTERRUPTED)) if is_left else seen
    if is_url(path) or not path.endswith(f"/{step.name_with_hash}"):  # else it may be another step's lease
        return seen
    lease = ArtifactPlaces(path).lease(1)
    # Looked for again at the end: one who lives may have published, and given it back, in between.
    if is_there(lease) and store.holder(path) is None and is_there(lease):
        status = ArtifactStatus(identity=step.identity, state=Standing.INTERRUPTED)
        return replace(seen, status=status)
    return seen

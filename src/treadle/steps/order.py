"""`Order` and `Done`: all that it takes to make one artifact, in any process, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.steps.record import ArtifactRecord, Dep, Owner, Provenance

if TYPE_CHECKING:
    from treadle.steps.book import Entry

NOT_SAID = Provenance()


class Order(Struct, frozen=True, kw_only=True):
    """All that it takes to make one artifact, in any process.

    `path` is absolute or a URL; `attempt` names the attempt (`<run>.<n>`), `number` counts the step's
    attempts from 1. `wanted` and `replaces` as in the step's entry. `lenient` are the identities of deps
    whose artifact may be another one's (`drift="warn"`). `tells`: the state goes into the status file from
    the start, for who cannot see the process. `unsafe_locks`: the store may be one without conditional
    writes. `alone`: nothing else runs in this process. `fresh`: no attempt was made at it before, as far as
    the plan saw and the run knows. `grows`: further steps grow of its value, which must be kept.
    """

    fn: Callable[..., Any] | None
    identity: str
    name: str
    path: str
    attempt: str
    number: int
    owner: Owner
    version: str = ""
    attrs: Mapping[str, Any] = {}
    deps: tuple[Dep, ...] = ()
    lenient: tuple[str, ...] = ()
    code: str = ""
    writes_record: bool = False
    grows: bool = False
    resumable: bool = False
    resources: Any = None
    wanted: bool = False
    replaces: ArtifactRecord | None = None
    provenance: Provenance = NOT_SAID
    tells: bool = False
    unsafe_locks: bool = False
    alone: bool = False
    fresh: bool = False


class Done(Struct, frozen=True):
    """The artifact is complete. `taken`: it was already, and nothing was called."""

    record: ArtifactRecord
    taken: bool = False


def order_of(
    entry: Entry,
    *,
    attempt: str,
    number: int,
    owner: Owner,
    provenance: Provenance = NOT_SAID,
    tells: bool = False,
    unsafe_locks: bool = False,
    fresh: bool = False,
) -> Order:
    """The order for one attempt at a step of the book."""
    from treadle.steps.where import resources_of  # a worker, which only reads orders, starts without it

    spec = entry.spec
    return Order(
        fn=spec.fn,
        identity=spec.identity,
        name=spec.name,
        path=entry.path,
        attempt=attempt,
        number=number,
        owner=owner,
        version=spec.version,
        attrs=spec.hash_attrs,
        deps=entry.deps,
        lenient=tuple(dep.identity for dep in spec.deps if dep.drift == "warn"),
        code=spec.code,
        writes_record=spec.writes_record,
        grows=spec.grow is not None,
        resumable=spec.resumable,
        resources=resources_of(spec),
        wanted=entry.wanted,
        replaces=entry.replaces,
        provenance=provenance,
        tells=tells,
        unsafe_locks=unsafe_locks,
        fresh=fresh and not entry.tried,
    )

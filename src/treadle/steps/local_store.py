"""Artifacts on plain file systems: the store that all other files here (`local_*`, `lease*`) are parts of."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from treadle.base.errors import LockError, StepError
from treadle.base.files import is_there, make_parents, remove, write_whole
from treadle.base.layout import places_of
from treadle.steps import heartbeats, local_look
from treadle.steps.heartbeats import Heartbeats, uptime
from treadle.steps.lease import LocalLease
from treadle.steps.leases import Leases
from treadle.steps.local_leftovers import sweep
from treadle.steps.local_publish import publish
from treadle.steps.local_sync import Unsynced
from treadle.steps.local_walk import records_below, remove_artifact
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactRecord, ArtifactState, ArtifactStatus, Kind, Owner, Seen
from treadle.steps.record_file import encode_status
from treadle.steps.store import Lease


class LocalStore:
    """The `ArtifactStore` of absolute paths. May be shared by all threads.

    `monotonic` is the clock by which the silence of others is told; with one that is not this machine's,
    leases beat only when `beat` is called.
    """

    def __init__(self, monotonic: Callable[[], float] = uptime) -> None:
        real = monotonic is uptime
        self._heart = heartbeats.of_this_process if real else Heartbeats(monotonic, threaded=False)
        self._leases = Leases(monotonic, self._heart)
        self._unsynced = Unsynced()

    def beat(self) -> None:
        """Beat the leases that are due by now, as the thread does that there is for this machine's clock."""
        self._heart.beat()

    def look(self, path: str, identity: str, *, mend: bool = False, fresh: bool = False) -> Seen:
        places = places_of(path)
        if fresh and local_look.nothing_there(places):
            return local_look.NOTHING
        if mend:
            local_look.mend(places, self._leases.current)
        seen, filed = local_look.look(places, identity)
        if mend and seen.state is ArtifactState.COMPLETE and filed is not None and not filed.sealed:
            assert seen.record is not None
            self._unsynced.note(seen.record)
        return seen

    def claim(self, path: str, owner: Owner) -> Lease | Owner:
        places = places_of(path)
        lease = self._leases.claim(places, owner)
        if isinstance(lease, LocalLease) and lease.before:
            sweep(places, lease.before, owner.attempt)
        return lease

    def holder(self, path: str) -> Owner | None:
        return self._leases.holder(places_of(path))

    def work(self, path: str, attempt: str, *, resumable: bool = False, fresh: bool = False) -> str:
        places = places_of(path)
        work = places.resume if resumable else places.work(attempt)
        if not is_there(places.work_folder):
            make_parents(work)
        if not resumable and not fresh and is_there(work):
            remove(work)
        return work

    def publish(
        self, lease: Lease, work: str, record: ArtifactRecord, *, replaces: ArtifactRecord | None = None
    ) -> ArtifactRecord:
        assert isinstance(lease, LocalLease), "a lease of this store"
        published, ours = publish(lease, work, record, replaces)
        if ours:
            self._unsynced.note(published)
        return published

    def tell(self, path: str, status: ArtifactStatus) -> None:
        file = places_of(path).status
        make_parents(file)
        write_whole(file, encode_status(status))

    def discard(self, work: str) -> None:
        remove(work)

    def fetch(self, record: ArtifactRecord) -> str:
        if record.kind is Kind.NOTHING:
            raise StepError(
                f"step '{record.name}' made no file or folder: there is nothing to read at {record.path}",
                hint="what its function returned is read by ctx.load(step) or step.load()",
                code="nothing-made",
            )
        return record.at or record.path

    def url(self, record: ArtifactRecord) -> str:
        return record.at or record.path

    def records(self, prefix: str) -> Iterator[ArtifactRecord]:
        return records_below(prefix)

    def remove(self, path: str) -> None:
        """Remove an artifact with all that stands beside it. Raises `LockError` while it is being made."""
        places = places_of(path)
        if not is_there(places.folder):
            return
        lease = self._leases.claim(places, this_owner())
        if isinstance(lease, Owner):
            raise LockError(
                f"the artifact '{path}' is being made by {lease}",
                hint="wait until that has ended, or end it first",
                code="lease-held",
            )
        try:
            remove_artifact(places)
        finally:
            lease.release()

    def sync(self) -> None:
        self._unsynced.sync()

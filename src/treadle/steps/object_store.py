"""`ObjectStore`: artifacts in an object store, as `ArtifactStore` wants them.

    <parent>/.treadle-artifacts/<name>.json          the record: it IS the publication
    <parent>/.treadle-artifacts/<name>.status.json   the last attempt, where it failed
    <parent>/.treadle-artifacts/<name>.lease         who is at work
    <path>/<attempt>/...                             what one attempt made: no other writes there

Nothing is renamed, and nothing written over but the record of a rebuild: a reader finds the old one or the
new one, whole. What a superseded attempt made stays until the next one is published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock

from treadle.base.errors import LockError, StepError
from treadle.base.layout import ArtifactPlaces
from treadle.steps import object_look, object_publish
from treadle.steps.heartbeats import Heartbeats, uptime
from treadle.steps.object_bucket import Bucket
from treadle.steps.object_download import download
from treadle.steps.object_lease import ObjectLease
from treadle.steps.object_leases import Leases
from treadle.steps.object_probe import refuse_without_conditions
from treadle.steps.object_publish import folder_of, remove_below
from treadle.steps.object_record import attempt_of, is_record, readable, readable_in
from treadle.steps.object_url import spot
from treadle.steps.owner import this_owner
from treadle.steps.parallel import in_parallel
from treadle.steps.record import ArtifactRecord, ArtifactStatus, Kind, Owner, Seen
from treadle.steps.record_file import encode_status
from treadle.steps.staging import STAGING
from treadle.steps.store import Lease

_LOOKS = 32  # records read at a time


class ObjectStore:
    """All artifacts of one bucket (`s3://bucket`, `memory://`); `monotonic` measures how long leases rest."""

    def __init__(
        self, root: str, *, unsafe_locks: bool = False, monotonic: Callable[[], float] = uptime
    ) -> None:
        self._bucket = Bucket(root, unsafe=unsafe_locks)
        self._heart = Heartbeats(monotonic, threaded=monotonic is uptime)
        self._leases = Leases(self._bucket, monotonic, self._heart)
        self._probed = unsafe_locks
        self._probing = Lock()
        self._works: dict[str, str] = {}  # work path -> URL of the folder of its attempt

    def beat(self) -> None:
        """Beat the leases that are due by now, as the thread does that there is for this machine's clock."""
        self._heart.beat()

    def look(self, path: str, identity: str, *, mend: bool = False, fresh: bool = False) -> Seen:
        """What stands there; there is never anything to mend."""
        return object_look.look(self._bucket, path, identity, fresh=fresh)

    def claim(self, path: str, owner: Owner) -> Lease | Owner:
        """Take the lease. The first time, the store must prove that it refuses conditional writes."""
        places = ArtifactPlaces(path)
        self._probe(spot(places.folder).key)
        return self._leases.claim(spot(places.lease_object).key, owner)

    def _probe(self, folder: str) -> None:
        if not self._probed:
            with self._probing:
                if not self._probed:
                    refuse_without_conditions(self._bucket, folder)
                self._probed = True

    def holder(self, path: str) -> Owner | None:
        return self._leases.holder(spot(ArtifactPlaces(path).lease_object).key)

    def work(self, path: str, attempt: str, *, resumable: bool = False, fresh: bool = False) -> str:
        """A path in the staging folder; that of a resumable step is kept on this machine alone."""
        began = folder_of(path, attempt)
        spot(began)
        work = STAGING.work(path, attempt, resumable=resumable)
        self._works[work] = began
        return work

    def publish(
        self, lease: Lease, work: str, record: ArtifactRecord, *, replaces: ArtifactRecord | None = None
    ) -> ArtifactRecord:
        assert isinstance(lease, ObjectLease)
        counts = object_publish.publish(self._bucket, lease, work, record, replaces)
        self._works.pop(work, None)
        STAGING.drop(work)
        return counts

    def tell(self, path: str, status: ArtifactStatus) -> None:
        self._bucket.put(spot(ArtifactPlaces(path).status).key, encode_status(status))

    def discard(self, work: str) -> None:
        """Remove it, and what the attempt brought to the store."""
        STAGING.drop(work)
        began = self._works.pop(work, "")
        if began:
            remove_below(self._bucket, began)

    def fetch(self, record: ArtifactRecord) -> str:
        if record.kind is Kind.NOTHING:
            raise StepError(
                f"step '{record.name}' made no file or folder: there is nothing to read at {record.path}",
                hint="what its function returned is read by ctx.load(step) or step.load()",
                code="nothing-made",
            )
        at = self.url(record)
        name = ArtifactPlaces(record.path).name
        return STAGING.fetched(at, name, lambda path: download(self._bucket, record, spot(at).key, path))

    def url(self, record: ArtifactRecord) -> str:
        return record.at or record.path

    def records(self, prefix: str) -> Iterator[ArtifactRecord]:
        """Those that can be read; what lies below the prefix is listed once."""
        keys = [entry.key for entry in self._bucket.entries(spot(prefix).key) if is_record(entry.key)]

        def read(key: str) -> ArtifactRecord | None:
            return readable_in(self._bucket.get(key), self._bucket.url(key))

        found = [record for record in in_parallel(read, keys, _LOOKS) if record is not None]
        yield from sorted(found, key=lambda record: record.path)

    def sync(self) -> None:
        """Nothing to wait for: an object store has what it has answered for."""

    def remove(self, path: str) -> None:
        """The record goes first, so that nobody reads what is half gone; the lease last.

        Raises `LockError` while the artifact is being made.
        """
        places = ArtifactPlaces(path)
        lease = self.claim(path, this_owner())
        if not isinstance(lease, ObjectLease):
            raise LockError(
                f"the artifact '{path}' is being made by {lease}",
                hint="wait until that has ended, or end it first",
                code="lease-held",
            )
        try:
            record = spot(places.record).key
            attempts = (attempt_of(readable(self._bucket.get(record), places)), *lease.earlier)
            self._bucket.delete([record, spot(places.status).key])
            for attempt in dict.fromkeys(filter(None, attempts)):
                remove_below(self._bucket, folder_of(path, attempt))
            remove_below(self._bucket, places.checkpoints)
            STAGING.drop(STAGING.work(path, "", resumable=True))
            self._bucket.delete([spot(places.lease_object).key])
        finally:
            lease.release()

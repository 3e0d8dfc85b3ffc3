"""Artifacts that were published and are not yet known to be on the disk, so that many are synced at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from threading import Lock

from treadle.base.errors import DiskError
from treadle.base.layout import ArtifactPlaces
from treadle.base.sync import FEW, sync_paths, sync_systems
from treadle.steps.local_output import contents, vanished
from treadle.steps.local_record import seal
from treadle.steps.record import ArtifactRecord, Kind


class Unsynced:
    """Noted by any thread, synced by any."""

    def __init__(self) -> None:
        self._noted: dict[str, ArtifactRecord] = {}
        self._lock = Lock()

    def note(self, record: ArtifactRecord) -> None:
        self._noted[record.path] = record

    def sync(self) -> None:
        """Wait until all that was noted before is on the disk. Raises `DiskError`: call it again then."""
        if not self._noted:
            return
        with self._lock:
            noted, self._noted = self._noted, {}
            try:
                _sync(noted.values())
            except BaseException:
                self._noted = noted | self._noted
                raise
            for path, record in noted.items():
                # Else it was published anew meanwhile, or is read-only as it is.
                if record.kind is not Kind.NOTHING and path not in self._noted:
                    seal(ArtifactPlaces(path).record)


def _sync(records: Collection[ArtifactRecord]) -> None:
    """Many by their file systems: what was renamed into a folder is on that of the folder."""
    folders: set[str] = set()
    for record in records:
        places = ArtifactPlaces(record.path)
        folders.add(places.folder)
        if record.kind is not Kind.NOTHING:
            folders.add(places.parent)
    if len(records) <= FEW or not sync_systems(sorted(folders)):
        sync_paths(sorted(folders.union(_files(records))))


def _files(records: Iterable[ArtifactRecord]) -> Iterator[str]:
    for record in records:
        places = ArtifactPlaces(record.path)
        yield places.record
        if record.kind is not Kind.NOTHING:
            yield places.path
        if record.kind is Kind.FOLDER and record.digest:  # one without was synced before it was published
            yield from _contents(places.path)


def _contents(path: str) -> list[str]:
    try:
        return contents(path)[1]
    except DiskError as error:
        if vanished(error):
            return []
        raise

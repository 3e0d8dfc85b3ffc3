"""Records of artifacts as objects: reading them, and what their keys tell."""

from __future__ import annotations

from msgspec.structs import replace

from treadle.base.layout import ArtifactPlaces
from treadle.steps.object_bucket import Found
from treadle.steps.record import ArtifactRecord
from treadle.steps.record_file import TornRecordError, decode_record

_FOLDER = ArtifactPlaces("/x").folder.strip("/")


def read_record(found: Found, places: ArtifactPlaces) -> ArtifactRecord:
    """The record that was found at its place.

    Where the storage was copied elsewhere as a whole, its places are told as they are now.
    Raises `TornRecordError`, and `RecordError` for a record of a newer Treadle.
    """
    return _placed(decode_record(found.data, places.record), places.path)


def readable(found: Found | None, places: ArtifactPlaces) -> ArtifactRecord | None:
    """The same, or None where there is none that can be read."""
    try:
        return read_record(found, places) if found else None
    except TornRecordError:
        return None


def readable_in(found: Found | None, url: str) -> ArtifactRecord | None:
    """The record that was found at `url`, whatever its artifact; or None."""
    try:
        record = decode_record(found.data, url) if found else None
    except TornRecordError:
        return None
    if record is None:
        return None
    parent = url.rpartition("/")[0].removesuffix(_FOLDER)
    return _placed(record, parent + ArtifactPlaces(record.path).name)


def _placed(record: ArtifactRecord, path: str) -> ArtifactRecord:
    if record.path == path:
        return record
    at = path + record.at.removeprefix(record.path) if record.at.startswith(f"{record.path}/") else record.at
    return replace(record, path=path, at=at)


def is_record(key: str) -> bool:
    folder, _, name = key.rpartition("/")
    ours = folder.rpartition("/")[2] == _FOLDER
    return ours and name.endswith(".json") and not name.endswith(".status.json")


def attempt_of(record: ArtifactRecord | None) -> str:
    """The name of the folder in which a record's output stands; empty: it has none."""
    if record is None or not record.at.startswith(f"{record.path}/"):
        return ""
    return record.at[len(record.path) + 1 :].partition("/")[0]

"""Records of artifacts as objects: reading them, and what their keys tell."""

from __future__ import annotations

from msgspec.structs import replace

from treadle.base.layout import ArtifactPlaces
from treadle.steps.object_bucket import Found
from treadle.steps.record import ArtifactRecord
from treadle.steps.record_file import TornRecordError, decode_record

_FOLDER = ArtifactPlaces("/").folder.strip("/")


def read_record(found: Found, path: str) -> ArtifactRecord:
    """The record that was found for the output path `path`.

    Where the storage was copied elsewhere as a whole, its places are told as they are now.
    Raises `TornRecordError`, and `RecordError` for a record of a newer Treadle.
    """
    record = decode_record(found.data, path)
    if record.path == path:
        return record
    at = path + record.at.removeprefix(record.path) if record.at.startswith(f"{record.path}/") else record.at
    return replace(record, path=path, at=at)


def readable(found: Found | None, path: str) -> ArtifactRecord | None:
    """The same, or None where there is none that can be read."""
    try:
        return read_record(found, path) if found else None
    except TornRecordError:
        return None


def is_record(key: str) -> bool:
    folder, _, name = key.rpartition("/")
    return (
        folder.rpartition("/")[2] == _FOLDER and name.endswith(".json") and not name.endswith(".status.json")
    )


def path_of(key: str) -> str:
    """The key of the output path whose record stands at `key`."""
    folder, _, name = key.rpartition("/")
    parent = folder.rpartition("/")[0]
    bare = name.removesuffix(".json")
    return f"{parent}/{bare}" if parent else bare


def attempt_of(record: ArtifactRecord | None) -> str:
    """The name of the folder in which a record's output stands; empty: it has none."""
    if record is None or not record.at.startswith(f"{record.path}/"):
        return ""
    return record.at[len(record.path) + 1 :].partition("/")[0]

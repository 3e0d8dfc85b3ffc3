"""All artifacts below a folder, and the removal of one with all that stands beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from treadle.base.disk import disk_error
from treadle.base.errors import DiskError
from treadle.base.files import is_there, remove
from treadle.base.layout import ArtifactPlaces
from treadle.steps.local_record import read_filed
from treadle.steps.record import ArtifactRecord, Kind

_RECORD = ".json"
_STATUS = ".status.json"


def records_below(prefix: str) -> Iterator[ArtifactRecord]:
    """Records of the artifacts below a folder, sorted by path; folders of artifacts are not looked into.

    Torn records are passed over. Raises `DiskError`, and `RecordError` for a record of a newer Treadle.
    """
    pending = [prefix.rstrip("/") or "/"]
    found: list[ArtifactRecord] = []
    while pending:
        folder = pending.pop()
        here = _records_in(folder)
        found += here
        made = {os.path.basename(one.path) for one in here if one.kind is Kind.FOLDER}
        ours = os.path.basename(ArtifactPlaces(f"{folder}/x").folder)
        pending += [f"{folder}/{name}" for name in _folders(folder) if name not in made and name != ours]
    found.sort(key=lambda record: record.path)
    yield from found


def _records_in(folder: str) -> list[ArtifactRecord]:
    where = ArtifactPlaces(f"{folder}/x").folder
    found = []
    for name in _names(where):
        if name.endswith(_RECORD) and not name.endswith(_STATUS):
            filed = read_filed(f"{where}/{name}", folder=folder)
            if filed is not None and filed.record is not None:
                found.append(filed.record)
    return found


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise disk_error("look into", folder, error) from error


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise disk_error("look into", folder, error) from error


def remove_artifact(places: ArtifactPlaces) -> None:
    """Remove the record first, so that nothing is taken for complete, then the output and all else.

    What stands at the path without any record is not ours and stays. The lease must be ours.
    """
    known = [file for file in (places.record, places.pending) if is_there(file)]
    extra = [places.status, places.resume, places.checkpoints]
    for file in known:
        with suppress(DiskError):
            if filed := read_filed(file, places.path):
                extra.append(places.aside(filed.mark))
                if filed.placed.work:
                    extra.append(places.work_named(filed.placed.work))
    for path in (*known, *([places.path] if known else []), *extra):
        remove(path)

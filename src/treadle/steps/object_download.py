"""Bringing an artifact from an object store to a local path: in streams, files of a folder in parallel."""

from __future__ import annotations

import os
from typing import Any

from treadle.base.digest import digest_file, digest_folder
from treadle.base.disk import disk_error
from treadle.base.errors import DiskError
from treadle.base.files import make_parents
from treadle.steps.object_bucket import Bucket, Entry
from treadle.steps.object_upload import EMPTY_FOLDER
from treadle.steps.parallel import in_parallel
from treadle.steps.record import ArtifactRecord, Kind

_FILES = 16  # at a time, of each no more than two chunks in memory
_CHUNK = 2 * 1024 * 1024


def download(bucket: Bucket, record: ArtifactRecord, key: str, target: str) -> None:
    """Write what stands at `key` to `target`, and see that it is what the record tells of.

    Raises `DiskError`, also where it is gone or cut.
    """
    single = record.kind is Kind.FILE
    size = _bring(bucket, key, target) if single else _bring_folder(bucket, key, target)
    if size < record.size:
        raise _torn(bucket.url(key), f"{size} bytes are there of {record.size}")
    if record.digest:
        found = digest_file(target) if single else digest_folder(target)
        if found != record.digest:
            raise _torn(bucket.url(key), "its content is not what its record tells")


def _bring_folder(bucket: Bucket, key: str, target: str) -> int:
    try:
        os.makedirs(target, exist_ok=True)
    except OSError as error:
        raise disk_error("make the folder", target, error) from error

    def bring(entry: Entry) -> int:
        path = os.path.join(target, entry.key.removeprefix(f"{key}/"))
        make_parents(path)
        return 0 if entry.key.endswith(f"/{EMPTY_FOLDER}") else _bring(bucket, entry.key, path)

    return sum(in_parallel(bring, bucket.entries(key), _FILES))


def _bring(bucket: Bucket, key: str, path: str) -> int:
    """One object; the bytes that were written. It is renamed into place when it is whole."""
    part = f"{path}.treadle-part"
    try:
        size, told = _write(bucket, key, part)
        if size != told:
            raise _torn(bucket.url(key), f"{size} bytes came of {told}")
        os.rename(part, path)
    except FileNotFoundError as error:
        raise _torn(bucket.url(key), "it is not there") from error
    except OSError as error:
        raise disk_error("write", path, error) from error
    return size


def _write(bucket: Bucket, key: str, part: str) -> tuple[int, int]:
    def read() -> tuple[int, Any]:
        answer: Any = bucket.data.get(key)
        size = 0
        with open(part, "wb", buffering=0) as file:
            for chunk in answer.stream(min_chunk_size=_CHUNK):
                file.write(chunk)
                size += len(chunk)
        return size, answer.meta

    size, meta = bucket.asked("read", key, read)
    return size, int(meta["size"])


def _torn(place: str, why: str) -> DiskError:
    return DiskError(
        f"the artifact at '{place}' is torn: {why}",
        hint="run again: it is made anew; if it was removed by a lifecycle rule of the bucket, mend that",
        code="torn-artifact",
    )

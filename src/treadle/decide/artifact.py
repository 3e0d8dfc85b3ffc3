"""What the record of an artifact says to those who build on it: the value that was given, not when."""

from __future__ import annotations

import msgspec

from treadle.base.digest import blake2b
from treadle.base.files import digest_file, disk_error
from treadle.steps.record_file import TornRecordError, decode_record


def digest_record(place: str) -> str:
    """The digest of what the record at `place` says beside the artifact itself. Raises `DiskError`.

    A step may make nothing at its path and give a value: that is read from here, and what is at the path by
    itself.
    """
    try:
        with open(place, "rb") as file:
            record = decode_record(file.read(), place)
    except TornRecordError:
        return digest_file(place)
    except OSError as error:
        raise disk_error("read", place, error) from error
    told = (record.identity, record.kind, record.result)
    return blake2b(msgspec.json.encode(told, order="deterministic"), digest_size=32).hexdigest()

"""Records and statuses as bytes: versioned JSON. Older versions are read, newer ones refused by name."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from treadle.base.errors import RecordError
from treadle.steps.record import FORMAT, ArtifactRecord, ArtifactStatus

T = TypeVar("T", ArtifactRecord, ArtifactStatus)


class TornRecordError(ValueError):
    """The bytes are no whole record: a machine that crashed, or a writer that was killed, left them."""


class _Head(Struct):
    format: int = 0


_head = msgspec.json.Decoder(_Head)
_record = msgspec.json.Decoder(ArtifactRecord)
_status = msgspec.json.Decoder(ArtifactStatus)


def encode_record(record: ArtifactRecord) -> bytes:
    """One line of JSON, the version first; `record` may be a struct that knows more fields."""
    return _with_format(msgspec.json.encode(record), record.format)


def decode_record(data: bytes, where: str) -> ArtifactRecord:
    """The record that `data`, read from `where`, holds; fields that are not known are passed over.

    Raises `TornRecordError`, and `RecordError` for a record of a newer Treadle.
    """
    return _decode(_record, data, where)


def encode_status(status: ArtifactStatus) -> bytes:
    return _with_format(msgspec.json.encode(status), status.format)


def decode_status(data: bytes, where: str) -> ArtifactStatus:
    """As `decode_record`, for the status of the last attempt."""
    return _decode(_status, data, where)


def _with_format(encoded: bytes, version: int) -> bytes:
    """The structs leave out what is a default, and so the version that was current when it was written."""
    if encoded.startswith(b'{"format"'):
        return encoded + b"\n"
    return b'{"format":%d,' % version + encoded[1:] + b"\n"


def _decode(decoder: msgspec.json.Decoder[T], data: bytes, where: str) -> T:
    try:
        found = decoder.decode(data)
    except msgspec.MsgspecError as error:
        _refuse_newer(data, where)
        raise TornRecordError(f"'{where}' cannot be read: {error}") from error
    if found.format > FORMAT:
        _refuse_newer(data, where)
    return found


def _refuse_newer(data: bytes, where: str) -> None:
    try:
        version = _head.decode(data).format
    except msgspec.MsgspecError:
        return
    if version > FORMAT:
        raise RecordError(
            f"'{where}' was written by a newer Treadle (format {version}; this one reads up to {FORMAT})",
            hint="use that Treadle here, or another place for the artifacts: TREADLE_PREFIX",
            code="newer-record",
        )

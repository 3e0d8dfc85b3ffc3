"""Records of every version that there was are read; newer ones are refused by name."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from treadle.base.errors import RecordError
from treadle.steps.record import (
    FORMAT,
    ArtifactRecord,
    ArtifactStatus,
    Dep,
    Kind,
    Owner,
    Provenance,
    Result,
    Standing,
)
from treadle.steps.record_file import (
    TornRecordError,
    decode_record,
    decode_status,
    encode_record,
    encode_status,
)

FIXTURES = Path(__file__).parent / "fixtures"
IDENTITY = "0123456789abcdef0123456789abcdef"

RECORD = ArtifactRecord(
    format=1,
    identity=IDENTITY,
    name="train",
    version="2",
    hash_attrs={"lr": 0.0003, "layers": [12, 24], "data": {"name": "x", "shuffle": True, "seed": None}},
    deps=(Dep("tokenize", "fedcba9876543210fedcba9876543210", "/data/tokenize_fedcba987654"),),
    path="/data/train_0123456789ab",
    at="s3://bucket/train_0123456789ab/r.7",
    kind=Kind.FOLDER,
    size=4096,
    digest="7a52b251a3428a1b64967851157047d22919cc610c6b138e98a25280b1534b21",
    result=Result({"loss": 0.5, "big": 2**70}, "models:Metrics"),
    code="c0de",
    provenance=Provenance(
        commit="1" * 40,
        tree="2" * 40,
        dirty=True,
        user="ada",
        host="n1",
        argv=("pipeline.py", "--fast"),
        started=1764412000.5,
        ended=1764412060.25,
        attempt="20261129T110501Z-ab12.7",
    ),
    wall=59.75,
    cpu=118.5,
    memory=1 << 30,
)
STATUS = ArtifactStatus(
    format=1,
    identity=IDENTITY,
    state=Standing.FAILED,
    attempt="20261129T110501Z-ab12.7",
    owner=Owner(
        host="n1",
        boot="b",
        pid_namespace="pid:[4026531836]",
        pid=17,
        started=42,
        user="ada",
        attempt="20261129T110501Z-ab12.7",
        job="1234.pbs",
    ),
    started=1764412000.5,
    ended=1764412060.25,
    error="ValueError: no such layer",
)


def test_every_version_up_to_ours_has_its_fixtures() -> None:
    found = sorted(path.name for path in FIXTURES.iterdir())
    assert found == sorted(
        f"{kind}-{n}.json" for n in range(1, FORMAT + 1) for kind in ("artifact", "status")
    )


def test_a_record_of_version_1_is_read() -> None:
    assert decode_record((FIXTURES / "artifact-1.json").read_bytes(), "there") == RECORD


def test_a_status_of_version_1_is_read() -> None:
    assert decode_status((FIXTURES / "status-1.json").read_bytes(), "there") == STATUS


def test_what_is_written_tells_its_version_and_is_one_line() -> None:
    for data in (encode_record(RECORD), encode_status(STATUS)):
        assert data.startswith(b'{"format":%d,' % FORMAT)
        assert data.endswith(b"}\n")
        assert data.count(b"\n") == 1
    assert decode_record(encode_record(RECORD), "there") == RECORD
    assert decode_status(encode_status(STATUS), "there") == STATUS


def test_a_record_whose_version_is_newer_is_refused_whatever_else_it_holds() -> None:
    newer = msgspec.json.decode(encode_record(RECORD))
    newer["format"] = FORMAT + 1
    for other in ({}, {"kind": "stream"}, {"deps": 7}):
        with pytest.raises(
            RecordError, match=rf"'/a/b' was written by a newer Treadle \(format {FORMAT + 1}"
        ):
            decode_record(msgspec.json.encode({**newer, **other}), "/a/b")
    with pytest.raises(RecordError, match="newer Treadle"):
        decode_status(b'{"format":77}', "/a/b")


def test_every_beginning_of_a_record_is_torn() -> None:
    data = encode_record(RECORD)
    for length in range(len(data) - 2):
        with pytest.raises(TornRecordError, match="there"):
            decode_record(data[:length], "there")


@pytest.mark.parametrize(
    "data", [b"\0" * 100, b"null", b"[]", b'{"format":1}', b'{"format":"x"}', b"\xff\xfe"]
)
def test_what_is_no_record_is_torn(data: bytes) -> None:
    with pytest.raises(TornRecordError):
        decode_record(data, "there")

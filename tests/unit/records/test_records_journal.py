"""The journal: what is written is read back; torn tails are normal, other damage is told by its line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from records_story import FLOW, evidence, settled, started, story, submitted

from treadle.base.errors import DiskError, RecordError
from treadle.base.mask import Mask
from treadle.records.encode import encode_events
from treadle.records.event import FORMAT, End, Noticed, Outcome, TaskSettled
from treadle.records.journal import Journal, is_ended, mend, read_journal
from treadle.records.past import fold


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "events.jsonl")


def put(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)


def test_what_is_written_is_read_back_in_order(path: str) -> None:
    events = story()
    journal = Journal.create(path, events[0])
    journal.write(events[1:4])
    journal.write([])
    journal.write(events[4:])
    journal.sync()
    journal.close()
    found = read_journal(path)
    assert found.events == events
    assert found.torn == 0


def test_each_event_is_one_line_of_json_with_its_kind(path: str) -> None:
    Journal.create(path, started()).close()
    (line,) = Path(path).read_text().splitlines()
    assert json.loads(line)["event"] == "run_started"
    assert json.loads(line)["format"] == FORMAT


def test_a_journal_is_never_made_over_another(path: str) -> None:
    Journal.create(path, started()).close()
    with pytest.raises(DiskError, match=r"events\.jsonl"):
        Journal.create(path, started())


def test_a_journal_cut_at_any_byte_keeps_every_task_settled_before_the_cut(path: str) -> None:
    lines = encode_events(story()).splitlines(keepends=True)
    ends, at = [], 0
    for line, event in zip(lines, story(), strict=True):
        at += len(line)
        if isinstance(event, TaskSettled) and event.evidence is not None:
            ends.append((at, event))
    data = b"".join(lines)
    put(path, data)
    for cut in range(len(data), -1, -1):
        os.truncate(path, cut)
        found = read_journal(path)
        past = fold([found.events])
        for end, event in ends:
            last = past.last(event.key)
            assert (last is not None and last.state is event.state) is (end <= cut), cut
            if abs(end - cut) < 2:
                assert (past.evidence(event.key) == event.evidence) is (end <= cut), cut
        assert found.torn == cut - (data.rfind(b"\n", 0, cut) + 1)


def test_mending_at_any_byte_leaves_a_journal_that_takes_further_events(path: str) -> None:
    data = encode_events(story()[:4])
    for cut in range(data.rindex(b"\n", 0, -1), len(data) + 1):
        put(path, data[:cut])
        torn = read_journal(path).torn
        assert mend(path) == torn
        assert mend(path) == 0
        journal = Journal.reopen(path)
        journal.write([settled(9, "late.txt")])
        journal.close()
        assert read_journal(path).events[-1] == settled(9, "late.txt")


@pytest.mark.parametrize(
    "tail", [b"\0" * 4096, b'{"event":"task_se' + b"\0" * 999, b'{"ev' + b"\0" * 200_000 + b'"}\n']
)
def test_blocks_of_nul_at_the_end_are_a_torn_tail(path: str, tail: bytes) -> None:
    data = encode_events(story())
    put(path, data + tail)
    assert read_journal(path).events == story()
    assert read_journal(path).torn == len(tail)
    assert mend(path) == len(tail)
    assert Path(path).read_bytes() == data


def test_a_tail_longer_than_any_window_is_mended(path: str) -> None:
    data = encode_events([*story(), settled(9, "x", evidence=evidence("x", text="y" * 300_000))])
    put(path, data + b"\0" * 5_000_000)
    assert mend(path) == 5_000_000
    assert Path(path).read_bytes() == data


def test_an_empty_or_headless_torn_journal_holds_nothing(path: str) -> None:
    put(path, b"")
    assert read_journal(path).events == []
    put(path, b'{"event":"run_sta')
    assert read_journal(path).torn == 17


@pytest.mark.parametrize("byte", [b"\0", b"\xff", b"}", b"\x01"])
def test_a_bad_byte_in_the_middle_is_an_error_that_names_file_and_line(path: str, byte: bytes) -> None:
    lines = encode_events(story()).splitlines(keepends=True)
    middle = lines[6]
    lines[6] = middle[:40] + byte + middle[41:]
    put(path, b"".join(lines))
    with pytest.raises(RecordError) as caught:
        read_journal(path)
    (one,) = caught.value.diagnostics
    assert one.place.file == path
    assert one.place.line == 7
    assert one.hint


def test_a_line_of_another_shape_is_damage_too(path: str) -> None:
    lines = encode_events(story()).splitlines(keepends=True)
    lines[2] = b'{"event":"attempt_submitted","time":"soon"}\n'
    put(path, b"".join(lines))
    with pytest.raises(RecordError, match=r":3: .*attempt_submitted|:3: .*Object|:3: .*time"):
        read_journal(path)


def test_an_unknown_kind_of_event_is_told_with_its_line(path: str) -> None:
    put(path, encode_events(story()[:3]) + b'{"event":"moon_rose","time":1.0}\n')
    with pytest.raises(RecordError, match=r":4: .*moon_rose"):
        read_journal(path)


def test_a_newer_format_is_refused_and_both_are_named(path: str) -> None:
    put(path, encode_events([started(format=FORMAT + 8)]) + b'{"event":"moon_rose"}\n')
    with pytest.raises(RecordError, match=rf"format {FORMAT + 8} .*newer Treadle.* format {FORMAT}"):
        read_journal(path)


def test_a_file_that_begins_otherwise_is_no_journal(path: str) -> None:
    put(path, encode_events([settled(1, "a")]))
    with pytest.raises(RecordError, match=":1: this is no journal"):
        read_journal(path)


def test_a_journal_that_is_missing_is_a_disk_error(path: str) -> None:
    with pytest.raises(DiskError, match=r"events\.jsonl"):
        read_journal(path)


def test_the_end_of_a_run_is_seen_from_the_tail(path: str) -> None:
    assert not is_ended(path)
    put(path, encode_events(story(ended=False)))
    assert not is_ended(path)
    put(path, encode_events(story()))
    assert is_ended(path)
    put(path, encode_events(story())[:-1])
    assert not is_ended(path)


def test_secrets_are_masked_in_every_free_text(path: str) -> None:
    secret = 'pa"ss\\wört'
    mask = Mask()
    mask.add(secret)
    first = started(argv=("treadle", "run", f"token={secret}"))
    journal = Journal.create(path, first, mask)
    journal.write(
        [
            Noticed(time=1.0, code="c", values={"key": f"x{secret}x", secret: "v"}),
            settled(1, "a", evidence=evidence("a", text=f"curl -u {secret}")),
            settled(2, "b", state=End.FAILED, outcome=Outcome(message=f"no {secret}")),
        ]
    )
    journal.close()
    events = read_journal(path).events
    assert events[0].argv[-1] == "token=***"
    assert events[1].values == {"key": "x***x", "***": "v"}
    assert events[2].evidence.text == "curl -u ***"
    assert events[3].outcome.message == "no ***"
    text = Path(path).read_text()
    assert secret not in text
    assert json.dumps(secret)[1:-1] not in text


def test_masking_leaves_what_records_are_found_by(path: str) -> None:
    mask = Mask()
    for word in ("task", "succeeded", "aaaa", "a.txt", "ok", FLOW):
        mask.add(word)
    journal = Journal.create(path, started(), mask)
    journal.write([submitted(1, "a.txt"), settled(1, "a.txt")])
    journal.close()
    events = read_journal(path).events
    assert events[1].outputs == ("a.txt",)
    assert events[2].key == "a.txt"
    assert events[2].evidence.outputs == settled(1, "a.txt").evidence.outputs
    assert events[2].state is End.SUCCEEDED

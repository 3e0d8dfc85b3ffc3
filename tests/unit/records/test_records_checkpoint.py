"""The checkpoint file: a copy that is appended, mended, made anew where it is gone, and compacted."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from records_story import evidence, fresh, journaled, record, settled, started

from treadle.base.errors import DiskError
from treadle.base.layout import StateFolder
from treadle.base.mask import Mask
from treadle.records.compact import Checkpoint, append_missing, compact
from treadle.records.event import End, OutputEvicted
from treadle.records.line import HEAD, lines_of, read_checkpoint
from treadle.records.past import Past, load_past


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return fresh(tmp_path)


def text(state: StateFolder) -> str:
    return Path(state.checkpoint).read_text()


def test_its_first_line_is_its_version(state: StateFolder) -> None:
    Checkpoint.open(state).close()
    assert text(state) == HEAD.decode() == '{"checkpoint":1}\n'
    assert read_checkpoint(state.checkpoint) == []


def test_what_is_noted_is_on_the_disk_after_flush_one_line_for_each(state: StateFolder) -> None:
    checkpoint = Checkpoint.open(state, "r1")
    checkpoint.note([started(), settled(1, "a"), settled(0, "b", state=End.BLOCKED)])
    assert text(state).count("\n") == 1
    checkpoint.note([settled(2, "c", state=End.FAILED)])
    checkpoint.flush()
    assert text(state).count("\n") == 3
    checkpoint.close()
    later = Checkpoint.open(state, "r2")
    later.note([settled(1, "d")])
    later.flush()
    assert [line.run for line in read_checkpoint(state.checkpoint)] == ["r1", "r1", "r2"]


def test_a_torn_tail_is_mended_before_anything_is_appended(state: StateFolder) -> None:
    checkpoint = Checkpoint.open(state, "r")
    checkpoint.note([settled(1, "a")])
    checkpoint.flush()
    with open(state.checkpoint, "ab") as file:
        file.write(b'["settled","b' + b"\0" * 50)
    checkpoint = Checkpoint.open(state, "r")
    checkpoint.note([settled(2, "c")])
    checkpoint.flush()
    assert [line.key for line in read_checkpoint(state.checkpoint)] == ["a", "c"]


@pytest.mark.parametrize("content", [None, b"", HEAD[:-3]])
def test_a_file_that_is_gone_is_made_anew_from_the_journals_that_ended(
    state: StateFolder, content: bytes | None
) -> None:
    journaled(state, ended=True)
    if content is not None:
        Path(state.checkpoint).write_bytes(content)
    before = load_past(state)
    Checkpoint.open(state).close()
    after = load_past(state)
    assert list(after.lines()) == list(before.lines())
    assert after.evidence("out/a.txt") == evidence("out/a.txt")


def test_a_full_disk_is_told_by_flush_and_nothing_is_lost(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint.open(state, "r")

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for n in range(3):  # more than is ever held back: still no failure while noting
            checkpoint.note([settled(n, f"{n}", evidence=evidence(f"{n}", text="x" * (3 << 20)))])
        with pytest.raises(DiskError, match=r"checkpoint\.jsonl"):
            checkpoint.flush()
    checkpoint.flush()
    assert [line.key for line in read_checkpoint(state.checkpoint)] == ["0", "1", "2"]


def test_secrets_do_not_reach_the_copy(state: StateFolder) -> None:
    mask = Mask()
    mask.add("hunter2")
    checkpoint = Checkpoint.open(state, "r", mask)
    checkpoint.note([settled(1, "a", evidence=evidence("a", text="login hunter2"))])
    checkpoint.flush()
    assert "hunter2" not in text(state)
    assert load_past(state).evidence("a").text == "login ***"


# Compaction


def grown(state: StateFolder, times: int) -> Past:
    checkpoint = Checkpoint.open(state, "r")
    for n in range(times):
        checkpoint.note([settled(n, "a"), settled(n, "b"), settled(n, "a", state=End.FAILED)])
    checkpoint.note([OutputEvicted(time=1.0, task="b", key="b", record=record("b"))])
    checkpoint.flush()
    return load_past(state)


def test_it_is_compacted_once_it_is_large_and_mostly_dead(state: StateFolder) -> None:
    past = grown(state, 4)
    lines = read_checkpoint(state.checkpoint)
    size = os.stat(state.checkpoint).st_size
    assert not compact(state.checkpoint, past, len(lines))  # nobody minds a small one
    assert not compact(state.checkpoint, past, len(lines), small=size)
    assert not compact(state.checkpoint, past, 2 * past.size, small=0)  # half of it lives
    assert compact(state.checkpoint, past, len(lines), small=size - 1)
    assert len(read_checkpoint(state.checkpoint)) == past.size == 3
    after = load_past(state)
    assert list(after.lines()) == list(past.lines())
    assert after.evidence("a") == evidence("a")
    assert after.last("a").state is End.FAILED
    assert after.tombstone("b") == record("b")


def test_a_compaction_that_dies_leaves_the_old_file(state: StateFolder) -> None:
    past = grown(state, 4)
    before = text(state)
    for name in ("write", "fsync", "replace"):
        with pytest.MonkeyPatch.context() as patch:

            def refuses(*args: object) -> None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            patch.setattr(os, name, refuses)
            assert not compact(state.checkpoint, past, 99, small=0)
        assert text(state) == before
    assert sorted(os.listdir(state.root)) == [".gitignore", "VERSION", "checkpoint.jsonl"]


# Completing the copy


def test_only_what_is_missing_is_appended(state: StateFolder) -> None:
    lines = lines_of([started(), settled(1, "a"), settled(2, "b"), settled(3, "c")])
    for there in range(4):
        checkpoint = Checkpoint.open(state)
        assert list(append_missing(checkpoint, lines, lines[:there])) == lines[there:]


def test_after_a_compaction_all_lines_are_appended_again_so_that_the_last_one_counts(
    state: StateFolder,
) -> None:
    lines = lines_of([started(), settled(1, "a"), settled(2, "b"), settled(3, "a", state=End.FAILED)])
    known = [lines[2], lines[1]]  # as a compaction in between might leave them
    checkpoint = Checkpoint.open(state)
    checkpoint.append(known)
    assert list(append_missing(checkpoint, lines, known)) == lines
    checkpoint.flush()
    assert load_past(state).last("a").state is End.FAILED

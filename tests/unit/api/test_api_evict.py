"""Evicting: the tombstone stands on the disk before the output is removed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from treadle.api.evict import Eviction, evict
from treadle.api.pipe import Request, look
from treadle.api.touch import touch
from treadle.base.layout import StateFolder
from treadle.records.event import FileRecord
from treadle.records.past import load_past

FLOW = """
[workflow]
name = "w"
[[rules]]
name = "make"
output = ["made.txt", "more.txt"]
shell = "touch {output}"
[[rules]]
name = "use"
input = ["made.txt"]
output = ["used.txt"]
shell = "cat {input} > {output}"
"""


class Yes:
    """Whoever says yes to everything."""

    def say(self, news: object) -> None:
        pass

    def agree(self, found: Eviction) -> bool:
        return True


class Meanwhile(Yes):
    """Somebody changes a file between the question and the answer."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def agree(self, found: Eviction) -> bool:
        self.path.write_text("changed meanwhile\n")
        return True


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    """Three outputs, recorded as up to date."""
    (tmp_path / "main.oxoflow").write_text(FLOW)
    for name in ("made", "more", "used"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    touch(Request(file=str(tmp_path / "main.oxoflow")), lambda news: None)
    return tmp_path


def request(flow: Path, *targets: str) -> Request:
    return Request(file=str(flow / "main.oxoflow"), targets=targets)


_watching: list[Any] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _watching and event == "os.remove":
        _watching[-1](os.fsdecode(args[0]))


sys.addaudithook(_hook)


@contextmanager
def removals(seen: Any) -> Iterator[None]:
    """Tell of each file just before it is removed."""
    _watching.append(seen)
    try:
        yield
    finally:
        _watching.pop()


def test_the_tombstone_is_written_before_the_output_is_removed(flow: Path) -> None:
    told: dict[str, FileRecord | None] = {}

    def seen(path: str) -> None:
        if path.endswith(".txt"):
            told[os.path.basename(path)] = load_past(StateFolder(str(flow))).tombstone(os.path.basename(path))

    with removals(seen):
        assert evict(request(flow, "make"), Yes()).done
    assert sorted(told) == ["made.txt", "more.txt"]
    assert all(record is not None and record.digest for record in told.values())
    assert not (flow / "made.txt").exists()


def test_a_kill_between_tombstone_and_removal_leaves_an_output_that_counts(flow: Path) -> None:
    class Killed(BaseException):
        pass

    def seen(path: str) -> None:
        if path.endswith("made.txt"):
            raise Killed

    with removals(seen), pytest.raises(Killed):
        evict(request(flow, "make"), Yes())
    assert (flow / "made.txt").exists()
    assert look(request(flow)).decision.to_run() == []
    assert evict(request(flow, "make"), Yes()).done
    assert not (flow / "made.txt").exists()
    assert look(request(flow)).decision.to_run() == []


def test_what_was_changed_after_the_question_stays(flow: Path) -> None:
    found = evict(request(flow, "make"), Meanwhile(flow / "made.txt"))
    assert [one.record.path for one in found.burials] == ["more.txt"]
    assert (flow / "made.txt").read_text() == "changed meanwhile\n"
    assert load_past(StateFolder(str(flow))).tombstone("made.txt") is None
    assert "make" in look(request(flow)).decision.to_run()


def test_a_tombstone_keeps_what_the_output_was(flow: Path) -> None:
    stat = (flow / "made.txt").stat()
    evict(request(flow, "made.txt"), Yes())
    record = load_past(StateFolder(str(flow))).tombstone("made.txt")
    assert record is not None
    assert (record.size, record.mtime) == (stat.st_size, stat.st_mtime_ns)
    assert (flow / "more.txt").exists()

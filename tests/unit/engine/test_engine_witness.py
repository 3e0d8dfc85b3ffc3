"""What jobs note of their files, against what is seen of them from here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from treadle.base.digest import blake2b
from treadle.engine.backend import Witnessed, Written
from treadle.engine.check import Eyes
from treadle.engine.witness import agrees, moved_inputs, seen_by_job
from treadle.plan.task import Command, Policy, ScheduledTask
from treadle.records.event import FileRecord
from treadle.testing import plans

OTHER = "f" * 64


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=32).hexdigest()


class Desk:
    """A work folder with an input and an output."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "in").write_text("in")
        (folder / "out").write_text("out")
        self.task: ScheduledTask = plans.task("t", inputs=["in"], outputs=["out"])
        self.eyes = Eyes(str(folder), str(folder))

    def note(self, path: str, digest: str = "", **fields: int) -> Written:
        stat = os.stat(self.folder / path)
        known = {"size": stat.st_size, "mtime": stat.st_mtime_ns, **fields}
        return Written(0, "f", known["size"], known["mtime"], digest)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_digest_that_a_job_took_is_not_taken_again(desk: Desk) -> None:
    written = Witnessed(inputs=(desk.note("in"),), outputs=(desk.note("out", OTHER),), end=0.0)
    made = desk.eyes.after(desk.task, desk.eyes.before(desk.task), {}, (), written)
    assert [one.record.path for one in made.readings] == ["in"]
    evidence = desk.eyes.evidence(made, made.read())
    assert evidence.outputs[0].digest == OTHER
    assert not evidence.stale


def test_what_a_job_could_not_digest_is_digested_here(desk: Desk) -> None:
    made = desk.eyes.after(desk.task, {}, {}, (), Witnessed(outputs=(desk.note("out"),)))
    evidence = desk.eyes.evidence(made, made.read())
    assert evidence.outputs[0].digest == digest("out")


def test_an_output_that_looks_otherwise_lags_and_is_read_here_in_the_end(desk: Desk) -> None:
    written = Witnessed(outputs=(desk.note("out", OTHER, size=99),))
    made = desk.eyes.after(desk.task, {}, {}, (), written)
    assert made.lagging == ("out",)
    assert desk.eyes.evidence(made, made.read()).outputs[0].digest == digest("out")


def test_a_file_that_was_young_when_the_job_ended_is_not_trusted_by_its_stat(desk: Desk) -> None:
    os.utime(desk.folder / "out", (1000, 1000))
    for end, recent in ((1001.0, True), (1003.0, False)):
        written = Witnessed(outputs=(desk.note("out", OTHER),), end=end)
        made = Eyes(str(desk.folder), "").after(desk.task, {}, {}, (), written)
        assert made.after["out"].recent is recent


def test_a_digest_above_the_limit_does_not_count(desk: Desk) -> None:
    policy = Policy(digest_limit=1)
    small = plans.task("t", outputs=["out"], policy=policy)
    made = desk.eyes.after(small, {}, {}, (), Witnessed(outputs=(desk.note("out", OTHER),)))
    assert made.after["out"].digest == ""


def test_an_input_that_was_changed_before_the_job_began_makes_the_result_stale(desk: Desk) -> None:
    before = desk.eyes.before(desk.task)
    written = Witnessed(inputs=(desk.note("in", mtime=5_000_000_001),))
    made = desk.eyes.after(desk.task, before, {}, (), written)
    assert made.moved == ("in",)
    assert desk.eyes.evidence(made, made.read()).stale == ("in",)


def test_an_input_that_the_job_did_not_find_was_another(desk: Desk) -> None:
    before = desk.eyes.before(desk.task)
    assert moved_inputs(desk.task, before, Witnessed(inputs=(Written(0, "-"),))) == ("in",)
    assert moved_inputs(desk.task, {}, Witnessed(inputs=(desk.note("in"),))) == ("in",)
    assert moved_inputs(desk.task, {}, Witnessed(inputs=(Written(0, "-"),))) == ()


def test_the_script_stands_behind_the_inputs(desk: Desk) -> None:
    (desk.folder / "do.sh").write_text("x")
    one = plans.task("t", inputs=["in"], command=Command(text="", script_file="do.sh"))
    before = desk.eyes.before(one)
    moved = Written(1, "f", 7, 7)
    assert moved_inputs(one, before, Witnessed(inputs=(desk.note("in"), moved))) == ("do.sh",)


def test_an_adopted_job_has_the_inputs_that_it_noted(desk: Desk) -> None:
    now = desk.eyes.before(desk.task)
    assert seen_by_job(desk.task, now, Witnessed(inputs=(desk.note("in"),))) == now
    moved = seen_by_job(desk.task, now, Witnessed(inputs=(desk.note("in", size=9),)))
    assert (moved["in"].size, moved["in"].inode, moved["in"].digest) == (9, 0, "")
    assert seen_by_job(desk.task, now, Witnessed(inputs=(Written(0, "-"),))) == {}
    made = desk.eyes.after(desk.task, moved, {})
    assert desk.eyes.evidence(made, made.read()).stale == ("in",)


@pytest.mark.parametrize(
    ("record", "note", "same"),
    [
        (FileRecord("x", 3, 1_500_000_000, 1), Written(0, "f", 3, 1_500_000_000), True),
        (FileRecord("x", 3, 1_000_000_000, 1), Written(0, "f", 3, 1_500_000_000), True),
        (FileRecord("x", 3, 1_500_000_000, 1), Written(0, "f", 3, 1_000_000_000), True),
        (FileRecord("x", 3, 1_500_000_001, 1), Written(0, "f", 3, 1_500_000_000), False),
        (FileRecord("x", 3, 2_000_000_000, 1), Written(0, "f", 3, 1_500_000_000), False),
        (FileRecord("x", 4, 1_500_000_000, 1), Written(0, "f", 3, 1_500_000_000), False),
        (FileRecord("x", 4, 1, 1, folder=True), Written(0, "d", 3, 9), True),
        (FileRecord("x", 4, 1, 1), Written(0, "d", 4, 1), False),
    ],
)
def test_whole_seconds_of_a_file_system_are_no_change(record: FileRecord, note: Written, same: bool) -> None:
    assert agrees(record, note) is same

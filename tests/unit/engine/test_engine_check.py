"""What is looked at before and after an attempt, and what of it has to be read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from treadle.base.errors import DiskError
from treadle.engine.check import Eyes
from treadle.plan.task import Command, Policy
from treadle.plan.tokens import FLOWDIR
from treadle.records.event import Evidence, FileRecord
from treadle.testing.plans import task


@pytest.fixture
def eyes(tmp_path: Path) -> Eyes:
    return Eyes(str(tmp_path), str(tmp_path / "flow"))


def b2sum(path: Path) -> str:
    done = subprocess.run(["b2sum", "-l", "256", path], capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def old(path: Path, text: str = "x") -> None:
    """A file that was not made just now."""
    path.write_text(text)
    os.utime(path, (1_000_000_000, 1_000_000_000))


def finish(eyes: Eyes, *, inputs: str = "", outputs: str = "", limit: int | None = None) -> Evidence:
    """The evidence of an attempt that changes nothing more."""
    one = task("a", inputs=inputs.split(), outputs=outputs.split(), policy=Policy(digest_limit=limit))
    made = eyes.after(one, eyes.before(one), {})
    return eyes.evidence(made, made.read())


def test_evidence_has_inputs_and_outputs_with_their_digests(tmp_path: Path, eyes: Eyes) -> None:
    old(tmp_path / "in")
    old(tmp_path / "out", "result")
    evidence = finish(eyes, inputs="in", outputs="out")
    (before,), (after,) = evidence.inputs, evidence.outputs
    assert (before.digest, after.digest) == (b2sum(tmp_path / "in"), b2sum(tmp_path / "out"))
    assert (after.size, after.recent) == (6, False)


def test_an_empty_output_has_the_digest_of_nothing_as_an_empty_input_has(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "mark").touch()
    (made,) = finish(eyes, outputs="mark").outputs
    (read,) = finish(Eyes(str(tmp_path), ""), inputs="mark").inputs
    assert made.digest == read.digest == b2sum(tmp_path / "mark")


def test_a_file_that_is_younger_than_two_seconds_is_marked(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "out").write_text("x")
    assert finish(eyes, outputs="out").outputs[0].recent


def test_what_one_task_made_is_known_to_those_that_read_it(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "mid").write_text("x")
    digest = finish(eyes, outputs="mid").outputs[0].digest
    reader = task("b", inputs=["mid"])
    before = eyes.before(reader)
    assert before["mid"].digest == digest
    assert eyes.after(reader, before, {}).readings == ()


def test_what_was_read_before_the_run_is_known_as_long_as_its_stat_is_the_same(tmp_path: Path) -> None:
    old(tmp_path / "in")
    stat = (tmp_path / "in").stat()
    known = FileRecord("in", stat.st_size, stat.st_mtime_ns, stat.st_ino, "d" * 64)
    eyes = Eyes(str(tmp_path), "", {"in": known, "gone": None})
    assert finish(eyes, inputs="in").inputs == (known,)
    (tmp_path / "in").write_text("y")
    assert finish(eyes, inputs="in").inputs[0].digest == b2sum(tmp_path / "in")


def test_files_above_the_limit_are_not_read(tmp_path: Path, eyes: Eyes) -> None:
    old(tmp_path / "in", "12345")
    old(tmp_path / "out", "123")
    evidence = finish(eyes, inputs="in", outputs="out", limit=4)
    assert evidence.inputs[0].digest == ""
    assert evidence.outputs[0].digest == b2sum(tmp_path / "out")


def test_a_script_is_part_of_what_is_looked_at(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "flow").mkdir()
    old(tmp_path / "flow/s.py", "print()")
    path = f"{FLOWDIR}/s.py"
    command = Command(script=("python3", path), script_file=path)
    one = task("a", command=command, policy=Policy(digest_limit=1))
    made = eyes.after(one, eyes.before(one), {})
    evidence = eyes.evidence(made, made.read())
    assert evidence.script is not None
    assert evidence.script.digest == b2sum(tmp_path / "flow/s.py"), "whatever the limit"
    assert path not in [record.path for record in evidence.inputs]


def test_an_input_that_changes_or_vanishes_meanwhile_is_stale(tmp_path: Path, eyes: Eyes) -> None:
    for name in ("changed", "gone", "kept"):
        old(tmp_path / name)
    one = task("a", inputs=["changed", "gone", "kept"])
    before = eyes.before(one)
    (tmp_path / "changed").write_text("longer")
    (tmp_path / "gone").unlink()
    made = eyes.after(one, before, {})
    evidence = eyes.evidence(made, made.read())
    assert evidence.stale == ("changed", "gone")
    assert [record.size for record in evidence.inputs] == [1, 1, 1]


def test_a_folder_input_does_not_count_what_the_task_makes_in_it(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "d").mkdir()
    old(tmp_path / "d/a")
    one = task("a", inputs=["d"], outputs=["d/all"])
    before = eyes.before(one)
    (tmp_path / "d/all").write_text("x")
    made = eyes.after(one, before, {})
    assert made.later is None, "it did not change"
    assert eyes.evidence(made, made.read()).inputs[0].digest


def test_missing_outputs_are_told_and_nothing_is_read(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "x").write_text("x")
    made = eyes.after(task("a", outputs=["x", "y", "z"]), {}, {})
    assert made.missing == ("y", "z")
    assert made.readings == ()


@pytest.mark.parametrize(("size", "small"), [(1000, True), (300_000, False)])
def test_large_contents_are_not_for_the_loop(tmp_path: Path, eyes: Eyes, size: int, small: bool) -> None:
    (tmp_path / "x").write_bytes(b"x" * size)
    assert eyes.after(task("a", outputs=["x"]), {}, {}).is_small is small


def test_a_content_that_cannot_be_read_is_a_disk_error(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "x").write_text("x")
    made = eyes.after(task("a", outputs=["x"]), {}, {})
    (tmp_path / "x").unlink()
    with pytest.raises(DiskError):
        made.read()

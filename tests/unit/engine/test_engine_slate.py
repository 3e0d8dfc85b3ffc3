"""The clean slate: only what attempts made is touched, inside folders too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from treadle.engine.check import Eyes
from treadle.engine.slate import Moved, look_over, set_aside_made, sweep
from treadle.plan.task import Policy, ScheduledTask
from treadle.records.event import FileRecord
from treadle.testing import plans


@pytest.fixture
def eyes(tmp_path: Path) -> Eyes:
    return Eyes(str(tmp_path), str(tmp_path))


def task(*outputs: str, resumable: bool = False, log: str = "") -> ScheduledTask:
    return plans.task("a", outputs=outputs, policy=Policy(resumable=resumable), log=log)


def record(eyes: Eyes, path: str) -> FileRecord:
    """How a success left `path`: with its digest."""
    return eyes.after(task(path), {}, {}).readings[0].read()


def clean(made: ScheduledTask, recorded: dict[str, FileRecord], eyes: Eyes) -> dict[str, FileRecord]:
    slate = look_over(made, recorded, eyes)
    sweep(made, slate, eyes)
    return {path: one for path, one in slate.standing.items() if path not in {*slate.remove, *slate.aside}}


def test_an_output_that_is_as_recorded_is_removed(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "x").write_text("result")
    recorded = {"x": record(eyes, "x")}
    assert clean(task("x"), recorded, eyes) == {}
    assert os.listdir(tmp_path) == []


def test_a_touched_output_is_still_as_recorded(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "x").write_text("result")
    recorded = {"x": record(eyes, "x")}
    os.utime(tmp_path / "x", (1, 1))
    clean(task("x"), recorded, eyes)
    assert os.listdir(tmp_path) == []


def test_an_output_that_someone_changed_is_set_aside(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "x").write_text("result")
    recorded = {"x": record(eyes, "x")}
    (tmp_path / "x").write_text("edited")
    clean(task("x"), recorded, eyes)
    assert (tmp_path / "x.failed").read_text() == "edited"


def test_an_output_that_nobody_recorded_stays(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "x").write_text("mine")
    assert set(clean(task("x"), {}, eyes)) == {"x"}
    assert os.listdir(tmp_path) == ["x"]


def test_a_resumable_task_keeps_its_outputs(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "x").write_text("result")
    recorded = {"x": record(eyes, "x")}
    clean(task("x", resumable=True), recorded, eyes)
    assert os.listdir(tmp_path) == ["x"]


def test_a_folder_is_removed_when_it_is_as_recorded_and_set_aside_when_not(
    tmp_path: Path, eyes: Eyes
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x").write_text("result")
    recorded = {"d": record(eyes, "d")}
    (tmp_path / "d/note").write_text("mine")
    clean(task("d"), recorded, eyes)
    assert sorted(os.listdir(tmp_path / "d.failed")) == ["note", "x"]
    os.rename(tmp_path / "d.failed", tmp_path / "d")
    (tmp_path / "d/note").unlink()
    clean(task("d"), recorded, eyes)
    assert os.listdir(tmp_path) == []


def test_the_folders_of_outputs_and_logs_are_made(tmp_path: Path, eyes: Eyes) -> None:
    clean(task("out/deep/x", log="logs/a/x.log"), {}, eyes)
    assert (tmp_path / "out/deep").is_dir()
    assert (tmp_path / "logs/a").is_dir()


def test_what_a_failed_attempt_made_or_changed_is_set_aside(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "kept").write_text("kept")
    made = task("new", "old", "kept", "never")
    standing = clean(made, {}, eyes)
    (tmp_path / "new").write_text("half")
    (tmp_path / "old").write_text("half of old")
    moved = set_aside_made(made.outputs, standing, str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["kept", "new.failed", "old.failed"]
    assert moved == [
        Moved("new", str(tmp_path / "new.failed")), Moved("old", str(tmp_path / "old.failed"))
    ]  # fmt: skip


def test_a_second_failure_gets_a_number(tmp_path: Path) -> None:
    for _ in range(3):
        (tmp_path / "x").touch()
        set_aside_made(("x",), {}, str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["x.failed", "x.failed.2", "x.failed.3"]


def test_in_a_folder_that_stood_there_only_what_was_made_or_changed_goes(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "d/sub").mkdir(parents=True)
    for name in ("mine", "old", "sub/mine"):
        (tmp_path / "d" / name).write_text(name)
    standing = clean(task("d"), {}, eyes)
    (tmp_path / "d/old").write_text("half of old")
    (tmp_path / "d/new").write_text("half")
    (tmp_path / "d/sub/new").write_text("half")
    (tmp_path / "d/tree/deep").mkdir(parents=True)
    (tmp_path / "d/tree/deep/x").write_text("half")
    set_aside_made(("d",), standing, str(tmp_path))
    assert sorted(os.listdir(tmp_path / "d")) == ["mine", "new.failed", "old.failed", "sub", "tree.failed"]
    assert sorted(os.listdir(tmp_path / "d/sub")) == ["mine", "new.failed"]
    assert (tmp_path / "d/tree.failed/deep/x").read_text() == "half"


def test_a_folder_that_is_new_goes_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x").write_text("half")
    set_aside_made(("d",), {}, str(tmp_path))
    assert (tmp_path / "d.failed/x").read_text() == "half"


def test_a_dead_link_that_the_attempt_made_goes_too(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to("nowhere")
    set_aside_made(("x",), {}, str(tmp_path))
    assert os.listdir(tmp_path) == ["x.failed"]


def test_in_a_folder_that_was_made_what_stood_there_before_stays(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "d/raw/deep").mkdir(parents=True)
    (tmp_path / "d/raw/deep/mine").write_text("mine")
    first = clean(task("d"), {}, eyes)
    (tmp_path / "d/made").write_text("made")
    (tmp_path / "d/raw/made").write_text("made")
    (tmp_path / "d/new/deep").mkdir(parents=True)
    (tmp_path / "d/new/deep/made").write_text("made")
    made = eyes.after(task("d"), {}, first)
    assert made.foreign == ("d/raw/deep/mine",)
    recorded = {"d": made.readings[0].read()}
    slate = look_over(task("d"), recorded, eyes, made.foreign)
    assert sorted(slate.remove) == ["d/made", "d/new", "d/raw/made"]
    assert set(slate.standing) == {"d", "d/raw/deep/mine"}
    sweep(task("d"), slate, eyes)
    assert [str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if one.is_file()] == [
        "d/raw/deep/mine"
    ]
    again = eyes.after(task("d"), {}, slate.standing, slate.foreign)
    assert again.foreign == made.foreign


def test_in_a_folder_that_someone_changed_what_stood_there_before_stays_too(
    tmp_path: Path, eyes: Eyes
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/mine").write_text("mine")
    (tmp_path / "d/made").write_text("made")
    recorded = {"d": record(eyes, "d")}
    (tmp_path / "d/made").write_text("edited by someone")
    slate = look_over(task("d"), recorded, eyes, ["d/mine"])
    assert sweep(task("d"), slate, eyes) == [Moved("d/made", str(tmp_path / "d/made.failed"))]
    assert sorted(os.listdir(tmp_path / "d")) == ["made.failed", "mine"]


def test_what_the_attempt_changed_or_an_earlier_one_left_is_not_foreign(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "d/old.failed").mkdir(parents=True)
    for name in ("d/changed", "d/left.failed", "d/old.failed/x", "d/same"):
        (tmp_path / name).write_text("x")
    standing = clean(task("d"), {}, eyes)
    (tmp_path / "d/changed").write_text("changed")
    assert eyes.after(task("d"), {}, standing).foreign == ("d/same",)
    assert eyes.after(task("d", resumable=True), {}, standing).foreign == ()
    assert eyes.after(task("d", resumable=True), {}, standing, ["d/same"]).foreign == ("d/same",)

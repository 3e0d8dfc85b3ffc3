"""The state folder: made kindly, refused when newer, migrated when older, never half-way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from records_story import fresh, journaled

from mounts import Mount
from treadle.base.errors import DiskError, RecordError
from treadle.base.layout import StateFolder
from treadle.records.past import load_past
from treadle.records.version import VERSION, migrate, prepare, read_version


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return fresh(tmp_path)


def test_the_state_folder_is_made_with_its_version_and_hidden_from_git(tmp_path: Path) -> None:
    state = StateFolder(str(tmp_path))
    assert read_version(state) is None
    prepare(state)
    assert Path(state.version).read_text() == f"{VERSION}\n"
    assert Path(state.ignore).read_text() == "*\n"
    Path(state.ignore).write_text("mine\n")
    prepare(state)
    assert Path(state.ignore).read_text() == "mine\n"


def test_records_of_a_newer_treadle_are_refused_and_both_versions_named(state: StateFolder) -> None:
    Path(state.version).write_text("12\n")
    for act in (prepare, load_past):
        with pytest.raises(RecordError, match=rf"version 12.*up to version {VERSION}") as caught:
            act(state)
        assert caught.value.diagnostics[0].place.file == state.version


def test_a_version_that_is_none_is_damage(state: StateFolder) -> None:
    Path(state.version).write_text("soon\n")
    with pytest.raises(RecordError, match="VERSION"):
        prepare(state)


def test_older_records_are_migrated_step_by_step_and_a_copy_is_kept(state: StateFolder) -> None:
    folder = journaled(state, ended=True)
    Path(state.checkpoint).write_text("old\n")
    Path(folder.attempt_log(1)).write_text("not copied")
    steps = {
        1: lambda s: Path(s.checkpoint).write_text("two\n"),
        2: lambda s: Path(s.checkpoint).write_text("three\n"),
    }
    assert migrate(state, target=3, migrations=steps) == [1, 2]
    assert Path(state.checkpoint).read_text() == "three\n"
    assert Path(state.version).read_text() == "3\n"
    kept = Path(state.kept_copy(1))
    assert (kept / "checkpoint.jsonl").read_text() == "old\n"
    assert (kept / "VERSION").read_text() == "1\n"
    assert (kept / "runs" / folder.run / "events.jsonl").exists()
    assert not (kept / "runs" / folder.run / "logs").exists()
    assert Path(state.kept_copy(2), "checkpoint.jsonl").read_text() == "two\n"
    assert not Path(state.kept_copy(2), "version-1").exists()
    assert migrate(state, target=3, migrations=steps) == []


def test_a_migration_that_died_is_begun_again_from_the_first_copy(state: StateFolder) -> None:
    Path(state.checkpoint).write_text("old\n")

    def dies(state: StateFolder) -> None:
        Path(state.checkpoint).write_text("half\n")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(state, target=2, migrations={1: dies})
    assert read_version(state) == 1
    assert migrate(state, target=2, migrations={1: lambda s: None}) == [1]
    assert Path(state.kept_copy(1), "checkpoint.jsonl").read_text() == "old\n"


def test_records_older_than_any_migration_are_refused(state: StateFolder) -> None:
    Path(state.version).write_text("0\n")
    prepare(state)
    with pytest.raises(RecordError, match="older version 0"):
        load_past(state)
    with pytest.raises(RecordError, match="version 0, which this Treadle can no longer read"):
        migrate(state)


def test_a_work_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="nowhere"):
        prepare(StateFolder(str(tmp_path / "nowhere")))


def test_a_file_where_the_state_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / ".treadle").write_text("")
    with pytest.raises(DiskError, match=r"\.treadle"):
        prepare(StateFolder(str(tmp_path)))


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_told_with_the_way_out(tmp_path: Path) -> None:
    state = fresh(tmp_path)
    os.chmod(state.root, 0o555)
    with pytest.raises(DiskError, match="--workdir"):
        prepare(state)


def test_a_file_system_that_is_read_only_is_told_with_the_way_out(mount: Mount) -> None:
    place = mount("ro", "-t", "tmpfs", "-o", "size=64k,ro", "none")
    with pytest.raises(DiskError, match=rf"{place}.*[Rr]ead-only") as caught:
        prepare(StateFolder(str(place)))
    assert caught.value.diagnostics[0].hint

"""Files are seen onto the disk, few or many; what is not there any more is passed over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from treadle.base.errors import DiskError
from treadle.base.sync import sync_paths


@pytest.mark.parametrize("count", [0, 1, 16, 17, 40])
def test_files_and_folders_are_synced_and_missing_ones_passed_over(tmp_path: Path, count: int) -> None:
    for n in range(count):
        (tmp_path / f"{n}").write_text("x")
    sync_paths([f"{tmp_path}/missing", f"{tmp_path}/0/below", *(f"{tmp_path}/{n}" for n in range(count))])
    sync_paths([str(tmp_path)])


def test_a_few_files_are_synced_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    paths = [tmp_path / f"{n}" for n in range(3)]
    for path in paths:
        path.write_text("x")
    sync_paths([str(path) for path in paths])
    assert synced == [path.stat().st_ino for path in paths]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    sync_paths([str(tmp_path / "pipe")])


def test_a_disk_that_refuses_is_said_with_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DiskError, match=str(tmp_path)) as raised:
        sync_paths([str(tmp_path)])
    assert raised.value.diagnostics[0].code == "disk-full"

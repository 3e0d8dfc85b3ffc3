"""Reading what a job left: whole, torn, empty, absent, of a newer format, of another attempt."""

from __future__ import annotations

import os

import pytest

from treadle.backends.cluster.exit_file import Damage, ExitFile, Witness, look_for_exit, read_exit
from treadle.base.layout import RunFolder

WHOLE = '{"format":1,"attempt":"r.1","exit_code":0,"start":1.5,"end":2.5,"outputs":[[0,"f",3,7,"ab"]]}\n'


@pytest.fixture
def folder(tmp_path):
    return RunFolder(str(tmp_path / "run")).job(1, "align/sample=S 1%,x")


def leave(folder, number: int, text: str | None) -> None:
    os.makedirs(folder.start(1, number))
    if text is not None:
        with open(folder.exit(1, number), "w") as file:
            file.write(text)


def test_the_name_of_a_folder_is_plain_whatever_the_task_is_called(folder):
    assert os.path.basename(folder.root) == "1-align-sample-S-1-x"


def test_a_whole_file_is_read(tmp_path):
    (tmp_path / "e").write_text(WHOLE)
    found = read_exit(str(tmp_path / "e"), "r.1")
    assert isinstance(found, ExitFile)
    assert (found.exit_code, found.end, found.outputs[0].digest) == (0, 2.5, "ab")


@pytest.mark.parametrize("kept", [0, 1, len(WHOLE) // 2, len(WHOLE) - 2])
def test_a_torn_or_empty_file_is_no_end(tmp_path, kept):
    (tmp_path / "e").write_text(WHOLE[:kept])
    assert read_exit(str(tmp_path / "e")) is Damage.TORN


@pytest.mark.parametrize(
    "text", ["\0" * 40, "[]", "null", '{"format":1}', '{"format":1,"exit_code":"0"}', "\xff"]
)
def test_what_is_no_exit_file_is_no_end(tmp_path, text):
    (tmp_path / "e").write_text(text, encoding="latin-1")
    assert read_exit(str(tmp_path / "e")) is Damage.TORN


def test_an_absent_file_is_none_and_a_folder_is_unreadable(tmp_path):
    assert read_exit(str(tmp_path / "e")) is None
    assert read_exit(str(tmp_path / "e" / "f")) is None
    assert read_exit(str(tmp_path)) is Damage.UNREADABLE


def test_a_newer_format_and_another_attempt_are_told_apart(tmp_path):
    (tmp_path / "e").write_text('{"format":2,"exit_code":{"new":1}}')
    assert read_exit(str(tmp_path / "e")) is Damage.NEWER
    (tmp_path / "e").write_text(WHOLE)
    assert read_exit(str(tmp_path / "e"), "r.2") is Damage.FOREIGN


def test_the_last_start_counts(folder):
    assert look_for_exit(folder, 1, refresh=True) == Witness()
    leave(folder, 1, WHOLE)
    assert look_for_exit(folder, 1, "r.1").exit is not None
    leave(folder, 2, None)
    assert look_for_exit(folder, 1, "r.1", refresh=True) == Witness(starts=2)


def test_a_refused_start_and_damage_are_told(folder):
    leave(folder, 1, "{")
    os.mkdir(folder.refused(1))
    assert look_for_exit(folder, 1) == Witness(None, Damage.TORN, 1, True)

"""What the front does with what is raised: our errors become words, a bug stays what it is."""

from __future__ import annotations

import pytest

from treadle.base.errors import DiskError, OptionError
from treadle.cli.main import failed


def test_an_error_of_ours_is_told_and_gives_its_exit_code(capsys):
    assert failed(OptionError("no such thing", hint="take another"), as_json=False) == 2
    assert failed(DiskError("it is gone"), as_json=False) == 3
    said = capsys.readouterr().err
    assert "error: no such thing\n  take another\n" in said
    assert "error: it is gone\n" in said


def test_a_bug_shows_where_it_is_and_how_to_report_it():
    with pytest.raises(ZeroDivisionError) as caught:
        failed(ZeroDivisionError("by zero"), as_json=True)
    (note,) = caught.value.__notes__
    assert "This is a bug in Treadle" in note
    assert "report it" in note

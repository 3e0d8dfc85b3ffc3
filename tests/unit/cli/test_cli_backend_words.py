"""Remarks of schedulers' backends, as people read them."""

from __future__ import annotations

import re
from pathlib import Path

import treadle.backends.cluster
from treadle.cli.backend_words import backend_words
from treadle.cli.words import notice
from treadle.records.event import Noticed


def test_every_remark_of_a_scheduler_has_a_sentence() -> None:
    folder = Path(treadle.backends.cluster.__file__).parent
    codes = {
        code
        for path in folder.glob("*.py")
        for code in re.findall(r"\b(?:link|_link|self)\.note\(\s*\"([a-z_]+)\"", path.read_text())
    }
    assert {"backend_down", "backend_up", "not_cancelled"} <= codes
    assert [code for code in sorted(codes) if not backend_words(code, {})] == []


def test_an_outage_is_told_with_the_schedulers_words() -> None:
    event = Noticed(
        time=0.0, code="backend_down", values={"backend": "slurm", "message": "Unable to contact"}
    )
    assert notice(event).startswith("slurm does not answer (Unable to contact)")


def test_what_could_not_be_cancelled_is_told_with_the_command_that_does() -> None:
    event = Noticed(time=0.0, code="not_cancelled", values={"jobs": "2", "command": "scancel 7 8"})
    assert "scancel 7 8" in notice(event)

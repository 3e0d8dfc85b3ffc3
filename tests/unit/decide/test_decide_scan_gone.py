"""An output that a run removes between the look at it and the reading of it is not there."""

from __future__ import annotations

import os
import pathlib

import pytest

from treadle.decide import scan
from treadle.decide.facts import gather
from treadle.decide.options import Options
from treadle.plan.build import build
from treadle.records.past import Past
from treadle.testing.drafts import draft


def test_a_file_that_goes_away_while_it_is_looked_at_is_missing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").write_text("x")
    real = scan.digest_of

    def gone_first(place: str, *rest: object) -> str:
        os.unlink(place)
        return real(place, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(scan, "digest_of", gone_first)
    plan = build("story", [draft("a", "in", "out")])
    facts = gather(
        plan, Past(), Options(selected=None, workdir=str(tmp_path), flowdir=str(tmp_path)), read=True
    )
    assert facts.record("in") is None

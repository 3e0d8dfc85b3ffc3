"""What runs of steps say: refusals, reasons, and the way out."""

from __future__ import annotations

import pathlib

import pytest
from story_steps import Calls

from treadle import ResourceConfig, StepError, StepRunner, StepSpec


def test_disk_space_that_there_is_not_is_refused_before_anything_runs(tmp_path: pathlib.Path) -> None:
    calls = Calls()
    first = StepSpec("first", fn=calls.put("first"))
    large = StepSpec("large", fn=calls.put("large"), deps=[first], resources=ResourceConfig(disk_gb=10**7))
    with pytest.raises(StepError, match=r"step 'large' asks for .* GB are free for .*large_"):
        StepRunner(workdir=tmp_path).run([large])
    assert not calls.names
    assert not (tmp_path / ".treadle").exists()

"""Workflow files to plans: the whole front of the pipe, to the byte, wherever the work folder is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from treadle.plan.build import build
from treadle.plan.show import plan_object
from treadle.rules.expand.expand import expand
from treadle.rules.file.read import ReadOptions, read
from treadle.rules.pattern.listing import DiskListing

FLOWS = sorted((Path(__file__).parent / "flows").glob("*.oxoflow"))
FILES = ("ref/genome.fa", "reads/S1.fq", "reads/S2.fq", "reads/S 3.fq")


def planned(flow: Path, workdir: Path) -> dict[str, Any]:
    for name in FILES:
        (workdir / name).parent.mkdir(parents=True, exist_ok=True)
        (workdir / name).write_text("x\n")
    file = shutil.copy(flow, workdir / "main.oxoflow")
    workflow = read(str(file), ReadOptions())
    expansion = expand(workflow, DiskListing(str(workdir)))
    return plan_object(build(workflow.name, expansion.drafts, pools=workflow.pools))


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.stem)
def test_the_plan_of_a_workflow_is_as_it_was(flow, tmp_path, golden_json):
    golden_json(f"plans/flow-{flow.stem}.json", planned(flow, tmp_path))


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.stem)
def test_the_work_folder_changes_no_byte(flow, tmp_path):
    here, there = tmp_path / "a", tmp_path / "b c"
    assert msgspec.json.encode(planned(flow, here)) == msgspec.json.encode(planned(flow, there))

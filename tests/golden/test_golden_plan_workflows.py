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

# One workflow for each feature; the files that it finds are named in its first line.
FOLDER = Path(__file__).parent / "flows"
FLOWS = sorted(FOLDER.glob("*.oxoflow"))
FILES = "# files: "


def planned(flow: Path, workdir: Path) -> dict[str, Any]:
    """The plan as `plan --json` shows it, with the warnings of reading, expanding and building."""
    first = flow.read_text(encoding="utf-8").partition("\n")[0]
    for name in first.removeprefix(FILES).split() if first.startswith(FILES) else ():
        (workdir / name).parent.mkdir(parents=True, exist_ok=True)
        (workdir / name).write_text("x\n")
    shutil.copytree(FOLDER / "sheets", workdir / "sheets")
    shutil.copy(flow, workdir / "main.oxoflow")
    workflow = read(str(workdir / "main.oxoflow"), ReadOptions())
    expansion = expand(workflow, DiskListing(str(workdir)))
    rules = [rule.name for rule in workflow.rules]
    plan = build(workflow.name, expansion.drafts, pools=workflow.pools, rules=rules)
    warnings = (*workflow.warnings, *expansion.notes, *plan.notes)
    told = [str(one).replace(f"{workdir}/", "") for one in warnings]
    return {**plan_object(plan), **({"warnings": told} if told else {})}


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.stem)
def test_the_plan_of_a_workflow_is_as_it_was(flow, tmp_path, golden_json):
    golden_json(f"plans/flow-{flow.stem}.json", planned(flow, tmp_path))


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.stem)
def test_the_work_folder_changes_no_byte(flow, tmp_path):
    here, there = tmp_path / "a", tmp_path / "b c"
    assert msgspec.json.encode(planned(flow, here)) == msgspec.json.encode(planned(flow, there))

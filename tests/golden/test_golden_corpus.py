"""tests/corpus: a workflow for each feature and each known trap; its plan or refusal, and what it makes.

A folder holds `main.oxoflow` and what it reads. Comments at the top of the file say what it is about, the
arguments of its command line (`# args:`), those of a run before it (`# first:`), how the run exits where
that is not 0 (`# exits:`), and whether it is not run (`# run: no`). Beside it stand
`plan.json` with the warnings, or `refused.txt`; and `made.json`, what a run leaves.
`pytest tests/golden --update-golden` writes them anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from treadle.api.pipe import Request, look
from treadle.base.errors import UserError
from treadle.cli import plan_command
from treadle.cli.options import request_of, subcommand_parser
from treadle.plan.show import plan_object
from treadle.rules.toml.fields import RESOURCES, RULE, State

FOLDER = Path(__file__).parents[1] / "corpus"
FLOWS = sorted(file.parent for file in FOLDER.glob("*/main.oxoflow"))
PINNED = ("plan.json", "refused.txt", "made.json")
TREADLE = str(Path(sys.executable).with_name("treadle"))

# What the format's description calls traps, each of which has a workflow here by name.
TRAPS = {
    "literal-wildcard-in-names",
    "pair-id-alone-in-the-output",
    "control-shared-by-two-pairs",
    "shell-variables",
    "foreign-braces",
    "config-integers-compared-as-text",
    "fractional-memory",
    "measures-that-cannot-be-read",
    "one-output-of-two-rules",
    "instance-names-that-collide",
    "pair-and-sample-wildcards-mixed",
    "array-in-a-path",
    "two-rules-of-one-name",
    "profile-precedence",
    "values-with-commas",
    "names-that-differ-in-case",
    "names-that-differ-in-composition",
    "relative-paths",
    "chunk-files-shared",
    "header-lost",
    "fields-of-a-parent-lost",
    "defaults-of-a-module-ignored",
    "two-rules-of-one-name-by-include",
    "include-cycle",
    "subset-run-overwrites-the-cohort",
}


def said(flow: Path, key: str) -> str:
    """What a line `# KEY: ...` at the top of the file says."""
    found = re.search(rf"^# {key}: (.*)$", (flow / "main.oxoflow").read_text(encoding="utf-8"), re.M)
    return found[1] if found else ""


def copied(flow: Path, to: Path) -> Path:
    shutil.copytree(flow, to, ignore=shutil.ignore_patterns(*PINNED, ".treadle"), dirs_exist_ok=True)
    return to


def request(flow: Path) -> Request:
    parser = subcommand_parser("plan", "corpus")
    plan_command.configure(parser)
    return request_of(parser.parse(["main.oxoflow", *shlex.split(said(flow, "args"))]))


@pytest.fixture(autouse=True)
def _nobody_elses_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / "nobody"))


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_a_workflow_is_planned_or_refused_as_it_was(
    flow: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    golden: Callable[[str, str], None],
    golden_json: Callable[[str, Any], None],
) -> None:
    here = copied(flow, tmp_path / "w")
    monkeypatch.chdir(here)
    try:
        view = look(request(flow))
    except UserError as error:
        told = [f"{one.code}: {one}" for one in error.diagnostics]
        golden(f"../corpus/{flow.name}/refused.txt", "\n".join(told).replace(f"{here}/", "") + "\n")
        assert not (flow / "plan.json").exists()
        return
    assert not (flow / "refused.txt").exists()
    warnings = [f"{one.code}: {one}".replace(f"{here}/", "") for one in view.warnings]
    golden_json(
        f"../corpus/{flow.name}/plan.json",
        {**plan_object(view.plan), **({"warnings": warnings} if warnings else {})},
    )


def ran(here: Path, args: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [TREADLE, "run", "-q", "--yes", "main.oxoflow", *shlex.split(args)]
    environment = {**os.environ, "NO_COLOR": "1", "HOME": str(home), "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)


RUN = [flow for flow in FLOWS if said(flow, "run") != "no" and not (flow / "refused.txt").exists()]


@pytest.mark.parametrize("flow", RUN, ids=lambda flow: flow.name)
def test_a_workflow_makes_what_it_made(
    flow: Path, tmp_path: Path, golden_json: Callable[[str, Any], None]
) -> None:
    here = copied(flow, tmp_path / "w")
    if first := said(flow, "first"):
        assert ran(here, first, tmp_path).returncode == 0
    done = ran(here, said(flow, "args"), tmp_path)
    assert done.returncode == int(said(flow, "exits") or 0), done.stdout + done.stderr
    given = {str(path.relative_to(flow)) for path in flow.rglob("*")}
    made = {
        str(path.relative_to(here)): path.read_text(encoding="utf-8")
        for path in sorted(here.rglob("*"))
        if path.is_file() and ".treadle" not in path.parts and str(path.relative_to(here)) not in given
    }
    golden_json(f"../corpus/{flow.name}/made.json", made)


def test_the_corpus_is_whole() -> None:
    names = {flow.name for flow in FLOWS}
    assert len(names) >= 40
    assert {f"trap-{name}" for name in TRAPS} - names == set()
    kept = {file.parent.name for name in ("plan.json", "refused.txt") for file in FOLDER.glob(f"*/{name}")}
    assert kept == names


PLANNED = [flow for flow in FLOWS if (flow / "plan.json").exists()]


def planned(flow: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(here)
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(plan_object(look(request(flow)).plan)))
    return found


def pinned(flow: Path) -> dict[str, Any]:
    plan = json.loads((flow / "plan.json").read_text(encoding="utf-8"))
    return {key: value for key, value in plan.items() if key != "warnings"}


@pytest.mark.parametrize("flow", PLANNED, ids=lambda flow: flow.name)
def test_the_order_in_which_a_folder_is_read_changes_no_byte(
    flow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = copied(flow, tmp_path / "w")
    real_list, real_scan = os.listdir, os.scandir

    @contextlib.contextmanager
    def backwards(path: Any = ".") -> Iterator[Iterator[os.DirEntry[str]]]:
        with real_scan(path) as entries:
            yield iter(sorted(entries, key=lambda entry: entry.name, reverse=True))

    with monkeypatch.context() as other_disk:
        other_disk.setattr(os, "listdir", lambda path=".": sorted(real_list(path), reverse=True))
        other_disk.setattr(os, "scandir", backwards)
        found = planned(flow, here, other_disk)
    assert found == pinned(flow)


@pytest.mark.parametrize("flow", PLANNED, ids=lambda flow: flow.name)
def test_a_mark_at_the_beginning_and_windows_line_ends_change_no_byte(
    flow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = copied(flow, tmp_path / "w")
    for file in (
        here / "main.oxoflow",
        *here.glob("*.tsv"),
        *here.glob("sheets/*"),
        *here.glob("profiles/*"),
    ):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert planned(flow, here, monkeypatch) == pinned(flow)


@pytest.mark.parametrize("flow", PLANNED, ids=lambda flow: flow.name)
def test_no_plan_holds_a_brace_that_its_author_did_not_write(flow: Path) -> None:
    plan = json.loads((flow / "plan.json").read_text())
    paths = [path for task in plan["tasks"] for path in (*task["inputs"], *task["outputs"])]
    assert [path for path in paths if "{" in path] == []


def test_every_field_of_a_rule_stands_in_a_workflow_of_the_corpus() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in FOLDER.rglob("*.oxoflow"))
    silent = (State.NO_EFFECT, State.INSTEAD)
    asked = {name for known in (RULE, RESOURCES) for name, one in known.items() if one.state not in silent}
    assert {name for name in asked if not re.search(rf"\b{name}\b", text)} == set()

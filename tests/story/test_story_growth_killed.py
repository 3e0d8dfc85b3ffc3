"""Growth over deaths of the driver, killed with -9 at every event."""

from __future__ import annotations

import json
import pathlib
import signal
from collections import Counter

import pytest
from story_steps import KILLER, run_script, start_script

STEPS = """
    here = pathlib.Path.cwd()
    def mark(name, value=None):
        def work(out):
            with open(here / "calls", "a") as log: log.write(name + "\\n")
            open(out, "w").write(name)
            return value
        return work
    def parts(names):
        found = [StepSpec(name, fn=mark(name), deps=[look], HOW) for name in names]
        return [*found, StepSpec("all", fn=mark("all"), deps=found, HOW)]
    look = StepSpec("look", fn=mark("look", ["a", "b"]), grow=parts, HOW)
    top = StepSpec("top", fn=mark("top"), deps=[look], HOW)
"""
NAMES = {"look", "a", "b", "all", "top"}


def calls(folder: pathlib.Path) -> Counter[str]:
    log = folder / "calls"
    return Counter(log.read_text().split() if log.exists() else [])


def settled(folder: pathlib.Path) -> set[str]:
    """The steps of which the journal that the kill left tells that they succeeded."""
    journal = folder / ".treadle" / "runs" / "latest" / "events.jsonl"
    events = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    return {str(one["task"])[1:].rpartition("_")[0] for one in events if one.get("state") == "succeeded"}


@pytest.mark.parametrize("how", ["", 'isolation="process"'], ids=["threads", "processes"])
def test_growth_goes_on_wherever_the_driver_was_killed(tmp_path: pathlib.Path, how: str) -> None:
    steps = STEPS.replace("HOW", how)
    run = "    StepRunner().run([top])\n"
    preview = "    print(*(f'{line.step}={line.state}' for line in StepRunner().run([top], dry_run=True)))\n"
    born_later = 0
    for at in range(1, 60):
        folder = tmp_path / str(at)
        folder.mkdir()
        killed = start_script(folder, KILLER + steps + run, str(at))
        killed.communicate(timeout=60)
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL
        done, before = settled(folder), calls(folder)
        born_later += "look" in done and not before.keys() & {"a", "b"}
        shown = [word.rpartition("=") for word in run_script(folder, steps + preview + run).split()]
        previewed = {name.rpartition("_")[0] for name, _, state in shown if state == "will_run"}
        again = calls(folder) - before
        assert calls(folder).keys() == NAMES
        assert not again.keys() & done, "what was recorded was done again"
        # A preview tells all that a run does, but for what grows of steps that are still to run. What had
        # been called, and announced its artifact when the driver died, is completed without another call.
        run_now = set(again) | (previewed & (before.keys() - done))
        assert run_now == previewed or ("look" in previewed and run_now >= previewed)
        for name in NAMES:
            (path,) = (folder / ".treadle" / "artifacts").glob(f"{name}_*")
            assert path.read_text() == name
    assert born_later, "none of the deaths came between the end of the step and the first that it grew"

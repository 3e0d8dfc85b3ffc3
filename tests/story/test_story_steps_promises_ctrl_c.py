"""Ctrl-C in every phase of a run of steps: it ends soon, is told once, and the next run goes on."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import time

import pytest
from story_steps import run_script, start_script

from waiting import until

SCRIPT = """
def put(out):
    pathlib.Path(out).write_text("x")
def listens(out, ctx):
    pathlib.Path("there").touch()
    while not ctx.cancelled:
        time.sleep(0.01)
    raise RuntimeError("as asked")
def sleeps(out):
    pathlib.Path("there").touch()
    time.sleep(60)
def grows(value):
    pathlib.Path("there").touch()
    time.sleep(60)
def again(out, ctx):
    pathlib.Path("there").touch()
    raise OSError("again")
def endless():
    for number in range(10 ** 9):
        if number == 50:
            pathlib.Path("there").touch()
        yield StepSpec(f"e{number}", fn=put)
def many():
    steps = [StepSpec(f"m{number}", fn=put, hash_attrs={"n": number}) for number in range(60_000)]
    pathlib.Path("there").touch()
    return steps
PHASES = {
    "planning": many,
    "a thread": lambda: [StepSpec("one", fn=listens)],
    "a process": lambda: [StepSpec("one", fn=sleeps, isolation="process")],
    "a process that listens": lambda: [StepSpec("one", fn=listens, isolation="process")],
    "growth": lambda: [StepSpec("one", fn=lambda out: 1, grow=grows)],
    "a stream": endless,
    "retries": lambda: [StepSpec("one", fn=again, retries=10_000)],
}
try:
    print(StepRunner().run(PHASES[sys.argv[1]](), max_concurrent=2))
except KeyboardInterrupt as error:
    print("told", flush=True)
"""
PHASES = ["planning", "a thread", "a process", "a process that listens", "growth", "a stream", "retries"]


@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c_ends_a_run_soon_and_in_order(tmp_path: pathlib.Path, phase: str) -> None:
    process = start_script(tmp_path, SCRIPT, phase)
    until((tmp_path / "there").exists)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert out == "told\n", err
    assert "Traceback" not in err
    assert time.monotonic() - began < 20
    for journal in tmp_path.glob(".treadle/runs/*/events.jsonl"):
        last = json.loads(journal.read_text().splitlines()[-1])
        assert (last["event"], last["exit_code"]) == ("run_ended", 130)
    assert not list(tmp_path.rglob("*.lease.*"))
    assert not list(tmp_path.rglob(".treadle-artifacts/work/*"))


def test_ctrl_c_ends_who_waits_for_another_run_and_that_one_goes_on(tmp_path: pathlib.Path) -> None:
    text = """
        def slow(out):
            pathlib.Path("begun").touch()
            while not os.path.exists("go"):
                time.sleep(0.01)
            pathlib.Path(out).write_text("x")
        try:
            print(StepRunner().run([StepSpec("one", fn=slow)]))
        except KeyboardInterrupt:
            print("told")
    """
    first = start_script(tmp_path, text)
    until((tmp_path / "begun").exists)
    second = start_script(tmp_path, text)

    def waits() -> bool:
        journals = tmp_path.glob(".treadle/runs/*/events.jsonl")
        return any("lease_held" in journal.read_text() for journal in journals)

    until(waits)
    second.send_signal(signal.SIGINT)
    assert second.communicate(timeout=60)[0] == "told\n"
    (tmp_path / "go").touch()
    assert first.communicate(timeout=60)[0] == "1 succeeded\n"


def test_what_was_interrupted_is_done_by_the_next_run(tmp_path: pathlib.Path) -> None:
    text = """
        def maybe(out):
            pathlib.Path("there").touch()
            while not os.path.exists("go"):
                time.sleep(0.01)
            pathlib.Path(out).write_text("x")
        step = StepSpec("one", fn=maybe, isolation="process", resumable=True)
        print(StepRunner().run([step]))
    """
    process = start_script(tmp_path, text)
    until((tmp_path / "there").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    (tmp_path / "go").touch()
    assert run_script(tmp_path, text) == "1 succeeded\n"
    left = subprocess.run(["find", str(tmp_path), "-name", "*.resume"], capture_output=True, text=True)
    assert left.stdout == ""

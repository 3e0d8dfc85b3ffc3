"""Steps in threads and processes, as a script runs them: what dies, what is left, what the next run finds."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from treadle.base.groups import process_gone, start_time

HEAD = """
import os, signal, sys, time
from treadle import ResourceConfig, StepRunner, StepSpec

def until(name):
    while not os.path.exists(name):
        time.sleep(0.01)

def note(name, text="x"):
    with open(name, "a") as file:
        file.write(text)
"""


def start(folder, text: str = "", name: str = "pipeline.py", **options) -> subprocess.Popen[str]:
    """Start a script (without `text`: one that is there) with the folder as its own."""
    if text:
        folder.write(name, HEAD + text)
    return subprocess.Popen(
        [sys.executable, name],
        cwd=folder.path,
        env=folder.env(**options.pop("env", {})),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run(folder, text: str = "", *, exits: int = 0, **options) -> str:
    process = start(folder, text, **options)
    out, err = process.communicate(timeout=120)
    assert process.returncode == exits, f"exit {process.returncode}\n{out}\n{err}"
    return out if exits == 0 else err


def gone(pid: int, started: int) -> bool:
    deadline = time.monotonic() + 20
    while not process_gone(pid, started):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def beside(folder, pattern: str) -> list[str]:
    """What stands beside artifacts, by a pattern."""
    return sorted(one.name for one in folder.path.glob(f".treadle/artifacts/.treadle-artifacts/{pattern}"))


STUBBORN = """
def train(out):
    note(out, "half")
    os.system("sleep 300 & echo $! > child")
    note("pid", str(os.getpid()))
    if not os.path.exists("again"):
        time.sleep(300)
    return "made"

StepRunner().run([StepSpec("train", fn=train, isolation="process")])
"""


def test_kill_9_of_the_driver_ends_its_workers_and_the_next_run_makes_it(folder):
    driver = start(folder, STUBBORN)
    folder.until("pid")
    pids = [int(folder.read(name)) for name in ("pid", "child")]
    started = [start_time(pid) for pid in pids]
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert all(map(gone, pids, started))
    folder.write("again", "")
    before = time.monotonic()
    run(folder)
    assert time.monotonic() - before < 30  # a lease whose process is gone is not waited for
    (record,) = beside(folder, "*.json")
    assert (
        json.loads(folder.read(f".treadle/artifacts/.treadle-artifacts/{record}"))["result"]["value"]
        == "made"
    )
    assert beside(folder, "work/*") == []
    assert beside(folder, "*.lease.*") == []


def test_kill_9_of_a_worker_is_the_failure_of_its_step_alone(folder):
    err = run(
        folder,
        """
def killed(out):
    note(out)
    os.kill(os.getpid(), signal.SIGKILL)

StepRunner().run([
    StepSpec("killed", fn=killed, isolation="process"),
    StepSpec("fine", fn=note, isolation="process"),
])
""",
        exits=1,
    )
    assert "SIGKILL" in err
    assert [one.partition("_")[0] for one in beside(folder, "*.json") if "status" not in one] == ["fine"]
    assert beside(folder, "work/*") == []


def test_a_script_without_guard_is_not_run_by_its_workers(folder):
    text = """
print("once")
steps = [StepSpec(f"s{i}", fn=lambda out, i=i: [i, os.getpid()], isolation="process") for i in range(3)]
StepRunner().run(steps)
values = [step.load() for step in steps]
assert [one for one, _ in values] == [0, 1, 2]
assert os.getpid() not in [pid for _, pid in values]
"""
    assert run(folder, text) == "once\n"


def test_a_script_from_stdin_has_workers(folder):
    text = HEAD + 'step = StepSpec("s", fn=lambda out: os.getpid(), isolation="process")\n'
    text += "StepRunner().run([step])\nassert step.load() != os.getpid()\n"
    done = subprocess.run(
        [sys.executable, "-"], input=text, cwd=folder.path, env=folder.env(), text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr


def test_a_module_that_runs_its_steps_as_it_is_imported_runs_them_once(folder):
    folder.write(
        "jobs.py",
        HEAD
        + """
note("imports")
def make(out):
    note("calls")
step = StepSpec("s", fn=make, isolation="process")
StepRunner().run([step])
""",
    )
    run(folder, "import jobs\n")
    assert folder.read("calls") == "x"
    assert folder.read("imports") == "xx"  # once more in the worker, where it only collects


def test_a_timeout_ends_a_step(folder):
    err = run(
        folder,
        'StepRunner().run([StepSpec("slow", fn=lambda out: time.sleep(300), timeout=1)])',
        exits=1,
    )
    assert "time limit of 1s" in err


def test_functions_that_cannot_be_sent_are_all_told_before_anything_runs(folder):
    text = """
import threading
from treadle import StepError
lock = threading.Lock()
steps = [StepSpec(f"s{i}", fn=lambda out, i=i: [i, lock], isolation="process") for i in range(2)]
try:
    StepRunner().run([StepSpec("fine", fn=note), *steps])
except StepError as error:
    print([one.code for one in error.diagnostics], os.path.exists(".treadle/runs"))
StepRunner().run([StepSpec("s0", fn=lambda out: lock.locked())])  # a thread needs no pickle
StepRunner().run(steps[:1])  # and what is complete needs none
"""
    assert run(folder, text).startswith("['function-not-picklable', 'function-not-picklable'] False")


@pytest.mark.parametrize("isolation", ["", "process"])
def test_two_runs_of_one_graph_share_the_work(folder, isolation):
    text = f"""
def make(out, name):
    note("calls." + name)
    if name == "base":
        note("begun")
        until("go")

def spec(name, deps=()):
    return StepSpec(name, fn=lambda out: make(out, name), deps=deps, isolation={isolation!r} or None)

base = spec("base")
top = [spec(f"top{{i}}", [base]) for i in range(4)]
print(StepRunner().run(top))
"""
    first = start(folder, text)
    folder.until("begun")
    second = start(folder)
    time.sleep(0.5)  # for the second to come to the lease; what follows holds if it does not
    folder.write("go", "")
    told = [one.communicate(timeout=120) for one in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), told
    calls = {one.name: one.read_text() for one in folder.path.glob("calls.*")}
    assert calls == {"calls.base": "x", **{f"calls.top{i}": "x" for i in range(4)}}
    assert beside(folder, "*.lease.*") == []


def test_a_resumable_step_goes_on_where_a_killed_run_stopped(folder):
    text = """
def train(out):
    note(out, "part ")
    note("pid", str(os.getpid()))
    if open(out).read() == "part ":
        time.sleep(300)

step = StepSpec("train", fn=train, resumable=True, isolation="process")
StepRunner().run([step])
print(open(step.output_path).read())
"""
    driver = start(folder, text)
    folder.until("pid")
    pid = int(folder.read("pid"))
    started = start_time(pid)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert gone(pid, started)
    assert run(folder) == "part part \n"


@pytest.mark.parametrize("isolation", ["", "process"])
def test_ctrl_c_ends_what_runs_and_gives_leases_back(folder, isolation):
    text = f"""
def slow(out, ctx):
    note(out)
    note("pid", str(os.getpid()))
    while not ctx.cancelled:
        time.sleep(0.01)
    raise RuntimeError("stopping")

StepRunner().run([StepSpec("slow", fn=slow, isolation={isolation!r} or None), StepSpec("fine", fn=note)])
"""
    driver = start(folder, text)
    folder.until("pid")
    before = time.monotonic()
    driver.send_signal(signal.SIGINT)
    _, err = driver.communicate(timeout=60)
    assert time.monotonic() - before < 30
    assert driver.returncode not in (0, None), err
    assert beside(folder, "*.lease.*") == []
    assert beside(folder, "work/*") == []
    (status,) = beside(folder, "slow*.status.json")
    path = f".treadle/artifacts/.treadle-artifacts/{status}"
    assert json.loads(folder.read(path))["state"] == "interrupted"


def test_ctrl_c_does_not_wait_for_a_deaf_thread(folder):
    text = """
def deaf(out):
    note("pid", str(os.getpid()))
    time.sleep(300)

StepRunner().run([StepSpec("deaf", fn=deaf)])
"""
    driver = start(folder, text)
    folder.until("pid")
    before = time.monotonic()
    driver.send_signal(signal.SIGINT)
    driver.communicate(timeout=60)
    assert time.monotonic() - before < 40

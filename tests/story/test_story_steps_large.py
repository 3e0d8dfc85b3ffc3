"""Deep chains and wide graphs of steps: no recursion, and a cost that is linear."""

from __future__ import annotations

import pathlib
import time

import pytest
from story_steps import start_script

from treadle import StepRunner, StepSpec

MANY = 100_000


@pytest.mark.big
def test_a_chain_of_a_hundred_thousand_steps_is_planned_and_pruned(tmp_path: pathlib.Path) -> None:
    started = time.monotonic()
    step = StepSpec("s0", fn=lambda out: 0)
    for i in range(1, MANY):
        step = StepSpec(f"s{i}", fn=lambda out: 0, deps=[step])
    report = StepRunner(workdir=tmp_path).run([step], dry_run=True)
    assert report.counts == {"will_run": MANY}
    assert time.monotonic() - started < 60


@pytest.mark.big
def test_a_chain_of_ten_thousand_steps_runs(tmp_path: pathlib.Path) -> None:
    step = StepSpec("s0", fn=lambda out: 0)
    for i in range(1, 10_000):
        step = StepSpec(f"s{i}", fn=lambda out: 0, deps=[step])
    started = time.monotonic()
    assert StepRunner(workdir=tmp_path).run([step]).counts == {"succeeded": 10_000}
    assert time.monotonic() - started < 60


RUN = """
import resource, time
from treadle import StepRunner, StepSpec
def nothing(out): pass
steps = []
for i in range({many}):
    steps.append(StepSpec(f"s{{i}}", fn=nothing, deps={deps}))
report = StepRunner().run(steps[-1:] if {deep} else steps)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(report.counts["succeeded"], memory, time.process_time())
"""


GROW = """
import resource, time
from treadle import StepRunner, StepSpec
def nothing(out): pass
def more(many):
    parts = [StepSpec("s", fn=nothing, hash_attrs={"i": i}) for i in range(many)]
    return [*parts, StepSpec("all", fn=nothing, deps=parts)]
def run(many):
    started = time.process_time()
    look = StepSpec("look", fn=lambda out: many, grow=more)
    assert StepRunner(prefix=str(many)).run([look]).counts == {"succeeded": many + 2}
    return (time.process_time() - started) / many
few = run(5000)
each = run(MANY)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(each / few, memory, each * MANY)
"""


@pytest.mark.big
def test_a_step_grows_a_hundred_thousand_steps_in_bounded_memory_and_time(tmp_path: pathlib.Path) -> None:
    process = start_script(tmp_path, GROW.replace("MANY", str(MANY)))
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    ratio, megabytes, seconds = map(float, out.split())
    assert ratio < 2  # linear
    assert megabytes < 800
    assert seconds < 60  # of CPU


@pytest.mark.big
@pytest.mark.parametrize("deep", [False, True], ids=["wide", "deep"])
def test_a_hundred_thousand_steps_run_in_bounded_memory_and_time(tmp_path: pathlib.Path, deep: bool) -> None:
    text = RUN.format(many=MANY, deep=deep, deps="steps[-1:]" if deep else "()")
    process = start_script(tmp_path, text)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    succeeded, megabytes, seconds = map(float, out.split())
    assert succeeded == MANY
    assert megabytes < 800
    assert seconds < 60  # of CPU: what else is at work here does not count


@pytest.mark.big
def test_a_hundred_thousand_steps_under_one_are_planned(tmp_path: pathlib.Path) -> None:
    started = time.monotonic()
    base = StepSpec("base", fn=lambda out: 0)
    steps = [StepSpec(f"s{i}", fn=lambda out: 0, deps=[base]) for i in range(MANY - 2)]
    top = StepSpec("top", fn=lambda out: 0, deps=steps)
    report = StepRunner(workdir=tmp_path).run([top], dry_run=True)
    assert report.counts == {"will_run": MANY}
    assert time.monotonic() - started < 60


@pytest.mark.big
def test_ten_thousand_steps_run_and_are_confirmed_complete(tmp_path: pathlib.Path) -> None:
    steps = [StepSpec(f"s{i}", fn=lambda out: 0) for i in range(10_000)]
    started = time.monotonic()
    assert StepRunner(workdir=tmp_path).run(steps).counts == {"succeeded": 10_000}
    ran = time.monotonic()
    assert StepRunner(workdir=tmp_path).run(steps).counts == {"up_to_date": 10_000}
    assert ran - started < 60
    assert time.monotonic() - ran < 10

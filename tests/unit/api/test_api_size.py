"""What a task weighs: bytes of memory that one more of them takes, from the table to the decision."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from treadle.api.pipe import Request, View, look
from treadle.base.layout import StateFolder
from treadle.decide.adopt import touch
from treadle.decide.options import Options
from treadle.decide.reason import Verdict
from treadle.records.compact import Checkpoint
from treadle.records.event import End, TaskSettled

TASKS = 5000
FLOW = """
[workflow]
name = "weights"
shell_executable = "sh"
[[tables]]
name = "t"
file = "t.tsv"
[[rules]]
name = "w"
output = ["out/{i}"]
shell = ": > {output}"
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder of many small tasks, all of them recorded."""
    folder = tmp_path_factory.mktemp("weights")
    (folder / "main.oxoflow").write_text(FLOW)
    (folder / "t.tsv").write_text("i\n" + "".join(f"{number}\n" for number in range(TASKS)))
    (folder / "out").mkdir()
    for number in range(TASKS):
        path = folder / "out" / str(number)
        path.touch()
        os.utime(path, (1e9, 1e9))
    record(folder)
    return folder


def record(folder: Path) -> None:
    """Put a line of evidence for every task into the checkpoint file."""
    view = look(Request(file=str(folder / "main.oxoflow")))
    evidence = touch(view.plan, view.past, Options(workdir=str(folder), flowdir=str(folder)))
    events = [
        TaskSettled(
            time=1.0, task=task, key=view.plan.tasks[task].outputs[0], state=End.SUCCEEDED, evidence=one
        )
        for task, one in evidence.items()
    ]
    state = StateFolder(str(folder))
    os.makedirs(state.root, exist_ok=True)
    checkpoint = Checkpoint.open(state, "20260101T000000Z-ab12")
    checkpoint.note(events)
    checkpoint.flush()
    checkpoint.close()


def bytes_per_task(folder: Path) -> float:
    """The most that a look at it held at a time."""
    peak, view = weighed(folder)
    assert all(answer.verdict is Verdict.UP_TO_DATE for answer in view.decision.answers.values())
    return peak / len(view.plan.tasks)


def weighed(folder: Path) -> tuple[int, View]:
    request = Request(file=str(folder / "main.oxoflow"))
    look(request)  # modules that are imported on the way do not count
    tracemalloc.start()
    try:
        view = look(request)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return peak, view


def test_a_task_that_is_up_to_date_weighs_about_two_kilobytes(done: Path) -> None:
    assert bytes_per_task(done) < 2400


def test_lines_of_the_checkpoint_that_are_superseded_weigh_nothing(done: Path) -> None:
    once = bytes_per_task(done)
    for _ in range(3):
        record(done)
    assert bytes_per_task(done) < once * 1.2


def test_a_rule_with_one_task_weighs_about_eight_kilobytes(tmp_path: Path) -> None:
    count = 1000
    rules = (
        f"""
[[rules]]
name = "r{number}"
input = ["out/{number - number % 10}.txt"]
output = ["out/{number + 1}.txt"]
shell = "sort {{input}} > {{output}}"
"""
        for number in range(1, count)
        if number % 10
    )
    (tmp_path / "main.oxoflow").write_text('[workflow]\nname = "weights"\n' + "".join(rules))
    (tmp_path / "out").mkdir()
    for number in range(0, count, 10):
        (tmp_path / "out" / f"{number}.txt").touch()
    peak, view = weighed(tmp_path)
    assert peak / len(view.plan.tasks) < 10_000


def test_tasks_after_all_of_another_rule_weigh_the_same_whatever_their_number(tmp_path: Path) -> None:
    few, many = (after(tmp_path / str(count), count) for count in (300, 900))
    assert many < 1.2 * few


def after(folder: Path, count: int) -> float:
    """Bytes for each task, where so many are ordered after as many."""
    folder.mkdir()
    values = [str(number) for number in range(count)]
    (folder / "main.oxoflow").write_text(f"""
[workflow]
name = "weights"
[[values]]
name = "i"
values = {values}
[[rules]]
name = "a"
output = ["a/{{i}}"]
shell = ": > {{output}}"
[[rules]]
name = "b"
output = ["b/{{i}}"]
depends_on = ["a"]
shell = ": > {{output}}"
""")
    peak, view = weighed(folder)
    return peak / len(view.plan.tasks)

"""Cost: a constant amount for each task and edge, and no recursion, whatever the shape of the plan."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.base.layout import RunFolder
from treadle.decide.reason import Answer, Upstream, Verdict
from treadle.engine.budget import Budget
from treadle.engine.loop import DriveOptions, drive
from treadle.engine.news import (
    Added,
    Ended,
    Examine,
    Examined,
    Finish,
    Launch,
    News,
    Opened,
    Sealed,
    Started,
)
from treadle.engine.state import Machine, Settings
from treadle.plan.task import Resources, ScheduledPlan, ScheduledTask
from treadle.records.event import End, EndReason, Event, Outcome
from treadle.records.past import Past
from treadle.testing import plans
from treadle.testing.backend import FakeBackend
from treadle.testing.clock import JumpingClock

OK = Outcome()
CUT = Answer(Verdict.WILL_RUN, (Upstream("t"),), may_cut_off=True)


def wide(size: int) -> list[ScheduledTask]:
    return [plans.task(f"t{at}") for at in range(size)]


def chain(size: int) -> list[ScheduledTask]:
    return [plans.task(f"t{at}", [f"t{at - 1}"] if at else []) for at in range(size)]


def gather(size: int) -> list[ScheduledTask]:
    return [*wide(size), plans.task("all", [f"t{at}" for at in range(size)])]


def layers(size: int) -> list[ScheduledTask]:
    """Ten to a layer, each of which needs three of the layer before."""
    made = []
    for at in range(size):
        layer, place = divmod(at, 10)
        needs = [f"t{10 * (layer - 1) + (place + step) % 10}" for step in range(3)] if layer else []
        made.append(plans.task(f"t{at}", needs))
    return made


def steps_wide(size: int) -> list[ScheduledTask]:
    return [plans.step(f"@t{at}") for at in range(size)]


def steps_chain(size: int) -> list[ScheduledTask]:
    return [plans.step(f"@t{at}", [f"@t{at - 1}"] if at else []) for at in range(size)]


def shapes(size: int) -> list[ScheduledTask]:
    """Every task asks for an amount of memory of its own."""
    return [plans.task(f"t{at}", resources=Resources(memory=1000 + at)) for at in range(size)]


def run(plan: ScheduledPlan, outcome: Outcome = OK, answers: dict[str, Answer] | None = None) -> Machine:
    """Through the machine with answers at once."""
    machine = Machine(Settings(keep_going=True), Budget(threads=2, memory=1 << 40, slots=2))
    turn = machine.handle([Opened(plan, plans.decision(plan, answers))], 0.0)
    while not machine.finished:
        news: list[News] = []
        for command in turn.commands:
            match command:
                case Launch(task=task, n=n):
                    news += (Started(task.id, n, str(n)), Ended(task.id, n, outcome))
                case Examine(task=task):
                    news.append(Examined(task.id, command.round))
                case Finish():
                    return machine
        turn = machine.handle(news, 0.0)
    return machine


def calls(act: Callable[[], Any]) -> int:
    """How many functions were called, Python's and C's."""
    count = 0

    def tracer(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tracer)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", [wide, chain, gather, layers, shapes, steps_wide, steps_chain])
def test_the_machine_does_the_same_work_for_each_task_however_many_there_are(
    shape: Callable[[int], list[ScheduledTask]],
) -> None:
    small, large = plans.plan(shape(300)), plans.plan(shape(3000))
    few, many = calls(lambda: run(small)) / 300, calls(lambda: run(large)) / 3000
    assert many < 1.25 * few


@pytest.mark.parametrize("shape", [chain, gather])
def test_cut_off_and_blocking_cost_the_same_for_each_task_too(
    shape: Callable[[int], list[ScheduledTask]],
) -> None:
    small, large = plans.plan(shape(300)), plans.plan(shape(3000))
    cut = dict.fromkeys(large.order[1:], CUT)
    failed = Outcome(reason=EndReason.APP)
    for outcome, answers in ((OK, cut), (failed, {})):
        few = calls(lambda: run(small, outcome, answers)) / 300  # noqa: B023 - called at once
        many = calls(lambda: run(large, outcome, answers)) / 3000  # noqa: B023
        assert many < 1.25 * few


@pytest.mark.parametrize("shape", [wide, chain, steps_wide, steps_chain])
def test_a_hundred_thousand_tasks_go_through(shape: Callable[[int], list[ScheduledTask]]) -> None:
    assert run(plans.plan(shape(100_000))).counts[End.SUCCEEDED] == 100_000


def test_the_first_of_a_hundred_thousand_fails() -> None:
    machine = run(plans.plan(chain(100_000)), Outcome(reason=EndReason.APP))
    assert machine.counts[End.BLOCKED] == 99_999
    assert machine.blocked["t99999"] == "t0"


class Nothing:
    """Records that keep nothing."""

    def write(self, events: list[Event]) -> None:
        pass

    def sync(self) -> None:
        pass


def in_batches(size: int, batch: int) -> Machine:
    """Steps that arrive in batches, each with the chain of its place in them; two batches ahead."""
    machine = Machine(Settings(forget=True), Budget(slots=2))
    empty = plans.plan([])
    turn = machine.handle([Opened(empty, plans.decision(empty), more=True)], 0.0)
    arrived = 0
    while not machine.finished:
        news: list[News] = []
        for command in turn.commands:
            if isinstance(command, Launch):
                news += (
                    Started(command.task.id, command.n, str(command.n)),
                    Ended(command.task.id, command.n, OK),
                )
        if arrived < size and machine.counts[End.SUCCEEDED] > arrived - 2 * batch:
            made = range(arrived, arrived + batch)
            needs = [[f"@t{at - batch}"] if at >= batch else [] for at in made]
            plan = plans.plan([plans.step(f"@t{at}", its) for at, its in zip(made, needs)])
            news.append(Added(plan, plans.decision(plan)))
            arrived += batch
        elif arrived >= size and not news:
            news.append(Sealed())
        turn = machine.handle(news, 0.0)
    return machine


def test_a_batch_costs_the_same_however_many_came_before() -> None:
    few, many = calls(lambda: in_batches(300, 10)) / 300, calls(lambda: in_batches(3000, 10)) / 3000
    assert many < 1.25 * few


def test_of_a_stream_only_the_ends_are_kept() -> None:
    machine = in_batches(20_000, 20)
    assert machine.counts[End.SUCCEEDED] == 20_000
    kept = {name: len(held) for name, held in vars(machine).items() if hasattr(held, "__len__")}
    large = {name for name, size in kept.items() if size > 100}
    assert large == {"_gone"}


@pytest.mark.parametrize("chain", [chain, steps_chain])
def test_the_loop_does_the_same_work_for_each_task(
    tmp_path: Path, chain: Callable[[int], list[ScheduledTask]]
) -> None:
    def through(size: int) -> None:
        plan = plans.plan(chain(size))
        result = drive(
            plan,
            plans.decision(plan),
            Past(),
            FakeBackend(),
            Nothing(),  # type: ignore[arg-type]
            DriveOptions(jobs=2, max_concurrent=2),
            run=RunFolder(str(tmp_path)),
            workdir=str(tmp_path),
            clock=JumpingClock(),
        )
        assert result.counts == {"succeeded": size}

    few, many = calls(lambda: through(200)) / 200, calls(lambda: through(2000)) / 2000
    assert many < 1.25 * few

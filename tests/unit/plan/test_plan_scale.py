"""Cost is linear in the plan: the lines of Python that run are counted, not the seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from treadle.plan.build import build
from treadle.plan.graph import critical_path, downstream, upstream
from treadle.plan.select import select
from treadle.plan.show import plan_object
from treadle.plan.task import Draft, Skip
from treadle.testing.drafts import draft

SMALL, FACTOR = 250, 4


def lines(work: Callable[[], Any]) -> int:
    """How many lines of Python run while `work` does."""
    count = 0

    def on_line(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return on_line

    before = sys.gettrace()
    sys.settrace(on_line)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def chain(n: int) -> list[Draft]:
    return [draft(f"t/i={i}", f"f{i}", f"f{i + 1}") for i in range(n)]


def gather(n: int) -> list[Draft]:
    return [
        *(draft(f"t/i={i}", "", f"d/{i}") for i in range(n)),
        draft("all", [f"d/{i}" for i in range(n)], "all"),
    ]


def folder(n: int) -> list[Draft]:
    """Two tasks read a folder as a whole; the tasks that fill it read from a folder of another task."""
    fill = [draft(f"t/i={i}", f"refs/part/{i}", f"d/{i}/x") for i in range(n)]
    return [*fill, draft("refs", "", "refs"), draft("one", "d", "one"), draft("two", "d", "two")]


def deep_folders(n: int) -> list[Draft]:
    path = "/".join(["a"] * 50)
    return [draft(f"t/i={i}", f"s/{path}/{i}", f"o/{path}/{i}", log=f"l/{path}/{i}") for i in range(n)]


def ordered(n: int) -> list[Draft]:
    return [
        *(draft(f"a/i={i}", "", f"a/{i}") for i in range(n)),
        draft("gate", "", "gate", depends_on=("a",)),
        *(draft(f"b/i={i}", "", f"b/{i}", depends_on=("gate",)) for i in range(n)),
    ]


def after(n: int) -> list[Draft]:
    """Each task of a rule is ordered after each of another."""
    first = [draft(f"a/i={i}", "", f"a/{i}") for i in range(n)]
    return [*first, *(draft(f"b/i={i}", "", f"b/{i}", depends_on=("a",)) for i in range(n))]


def falling(n: int) -> list[Draft]:
    """The first of a chain is skipped, and a gather sees half of its files go."""
    paths = [f"g/{i}" for i in range(n)]
    off = Skip("when", "x")
    return [
        *(draft(f"g/i={i}", "", f"g/{i}", skip=off if i % 2 else None) for i in range(n)),
        draft("all", paths, "all", gathered=frozenset(paths)),
        draft("first", "", "f0", skip=off),
        *chain(n),
    ]


def logs(n: int) -> list[Draft]:
    """All write one log, and all paths have a twin in another case."""
    return [draft(f"{rule}/i={i}", "", f"{rule}/x{i}", log="one.log") for i in range(n) for rule in "aA"]


SHAPES = [chain, gather, folder, deep_folders, ordered, falling, logs]


@pytest.mark.parametrize("shape", [*SHAPES, after], ids=lambda shape: shape.__name__)
def test_building_a_plan_costs_in_proportion(shape):
    few, many = shape(SMALL), shape(FACTOR * SMALL)
    build("flow", few)  # what is imported on first use does not count
    cost = lines(lambda: build("flow", few))
    assert lines(lambda: build("flow", many)) < 1.05 * FACTOR * cost


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_looking_at_a_plan_costs_in_proportion(shape):
    def look(drafts: list[Draft]) -> int:
        plan = build("flow", drafts)
        last = [plan.order[-1]]

        def work() -> None:
            plan_object(plan)
            critical_path(plan, plan.order, {})
            upstream(plan, last)
            downstream(plan, plan.order[:1])
            select(plan, last)

        work()
        return lines(work)

    assert look(shape(FACTOR * SMALL)) < 1.05 * FACTOR * look(shape(SMALL))


def circles(n: int) -> list[Draft]:
    """One long circle with many short cuts."""
    return [draft(f"t/i={i:06}", f"f{i} f{(i * 7) % n}x", f"f{(i + 1) % n} f{i}x") for i in range(n)]


def test_finding_a_cycle_costs_in_proportion():
    def fail(drafts: list[Draft]) -> None:
        with pytest.raises(ValueError, match="circle"):
            build("flow", drafts)

    few, many = circles(SMALL), circles(FACTOR * SMALL)
    fail(few)
    assert lines(lambda: fail(many)) < 1.1 * FACTOR * lines(lambda: fail(few))


@pytest.mark.big
def test_a_chain_of_100_000_is_planned():
    plan = build("flow", chain(100_000)[::-1])
    assert plan.order[0] == "t/i=0"
    assert plan.order[-1] == "t/i=99999"
    assert len(plan.groups) == 100_000
    assert critical_path(plan, plan.order, dict.fromkeys(plan.order, 1.0)) == (list(plan.order), 100_000.0)
    assert len(upstream(plan, ["t/i=99999"])) == 100_000


@pytest.mark.big
def test_a_circle_of_100_000_is_found():
    drafts = [draft(f"t/i={i:06}", f"f{i}", f"f{(i + 1) % 100_000}") for i in range(100_000)]
    with pytest.raises(ValueError, match="circle"):
        build("flow", drafts)


@pytest.mark.big
def test_a_task_may_gather_100_000_files():
    plan = build("flow", gather(100_000))
    assert len(plan.tasks["all"].needs) == 100_000
    assert plan.order[-1] == "all"


@pytest.mark.big
def test_a_skip_falls_down_a_chain_of_100_000():
    drafts = [draft("first", "", "f0", skip=Skip("when", "x")), *chain(100_000)]
    plan = build("flow", drafts)
    assert plan.tasks["t/i=99999"].skip == Skip("upstream", "f99999")
    assert len(plan.groups) == 1

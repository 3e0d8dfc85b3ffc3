"""The graph: closures, critical path; order, levels and cycles of numbered nodes."""

from __future__ import annotations

import pytest

from treadle.plan.build import build
from treadle.plan.graph import critical_path, cycles, dependents, downstream, levels, topological, upstream
from treadle.plan.task import ScheduledPlan
from treadle.testing.drafts import draft


@pytest.fixture
def diamond() -> ScheduledPlan:
    """a -> b, c -> d; and e by itself."""
    drafts = [
        draft("a", "", "1"),
        draft("b", "1", "2"),
        draft("c", "1", "3"),
        draft("d", "2 3", "4"),
        draft("e"),
    ]
    return build("flow", drafts)


def test_upstream_is_all_that_a_task_needs_and_itself(diamond):
    assert upstream(diamond, ["b"]) == {"a", "b"}
    assert upstream(diamond, ["d"]) == {"a", "b", "c", "d"}
    assert upstream(diamond, []) == frozenset()


def test_downstream_is_all_that_needs_a_task_and_itself(diamond):
    assert downstream(diamond, ["b"]) == {"b", "d"}
    assert downstream(diamond, ["a", "e"]) == {"a", "b", "c", "d", "e"}


def test_dependents_are_those_that_need_a_task_and_many_that_need_the_same_are_one_tuple(diamond):
    found = {need: [one.id for one in those] for need, those in dependents(diamond.tasks.values()).items()}
    assert found == {"a": ["b", "c"], "b": ["d"], "c": ["d"]}
    drafts = [
        *(draft(f"a/i={i}", "", f"a{i}") for i in range(20)),
        *(draft(f"b/i={i}", "", f"b{i}", depends_on=("a",)) for i in range(5)),
        *(draft(f"c/i={i}", "", f"c{i}", depends_on=("a", "b")) for i in range(5)),
        draft("d", "a7", "d"),
    ]
    plan = build("flow", drafts)
    many = dependents(task for task in plan.tasks.values() if task.rule != "c")
    assert many["a/i=0"] is many["a/i=19"]
    for tasks in (plan.tasks.values(), [task for task in plan.tasks.values() if task.rule != "c"]):
        expected: dict[str, set[str]] = {}
        for task in tasks:
            for need in task.needs:
                expected.setdefault(need, set()).add(task.id)
        assert {need: {one.id for one in those} for need, those in dependents(tasks).items()} == expected


def test_the_critical_path_follows_the_longest_branch(diamond):
    seconds = {"a": 10.0, "b": 5.0, "c": 60.0, "d": 0.5, "e": 70.0}
    assert critical_path(diamond, diamond.order, seconds) == (["a", "c", "d"], 70.5)
    assert critical_path(diamond, diamond.order, {**seconds, "e": 71.0}) == (["e"], 71.0)


def test_the_critical_path_of_some_tasks_leaves_out_the_others(diamond):
    assert critical_path(diamond, ["b", "d"], {"a": 10.0, "b": 5.0, "c": 60.0}) == (["b", "d"], 5.0)
    assert critical_path(diamond, [], {}) == ([], 0.0)


def test_among_ready_nodes_the_lowest_rank_comes_first():
    assert topological([[], [], [], []], [2, 0, 3, 1]) == [1, 3, 0, 2]
    assert topological([[], [2], [], []], [3, 0, 2, 1]) == [3, 2, 1, 0]


def test_nodes_of_a_cycle_and_those_behind_it_are_left_out_of_the_order():
    needs = [[], [0, 2], [1], [2], [0]]
    order = topological(needs, range(5))
    assert order == [0, 4]
    assert cycles(needs, order) == [[1, 2]]


def test_two_cycles_that_share_a_node_are_one_tangle():
    needs = [[1, 2], [0], [0]]
    assert cycles(needs, []) == [[0, 1]]


def test_levels_are_lengths_of_the_longest_path():
    assert levels([[], [0], [0, 1], []], [0, 3, 1, 2]) == [0, 1, 2, 0]

"""Which outputs may be removed on purpose, and when."""

from __future__ import annotations

import pytest
from decide_world import draft

from treadle.decide.tombstones import Temporaries, removable
from treadle.plan.build import build
from treadle.plan.task import Skip
from treadle.records.event import End

DONE = End.SUCCEEDED


def plan_of(*drafts):
    return build("flow", drafts)


def paths(found):
    return [path for _, path in found]


DIAMOND = plan_of(draft("a", "in", "t", temporary=True), draft("b", "t", "b.out"), draft("c", "t", "c.out"))


@pytest.mark.parametrize("end", [End.SUCCEEDED, End.UP_TO_DATE, End.UNCHANGED])
def test_temporary_outputs_go_once_all_dependents_are_done(end):
    assert paths(removable(DIAMOND, {"a": DONE, "b": DONE, "c": end})) == ["t"]


@pytest.mark.parametrize("end", [End.FAILED, End.BLOCKED, End.CANCELLED, End.SKIPPED])
def test_they_stay_when_a_dependent_was_kept_from_them(end):
    assert removable(DIAMOND, {"a": DONE, "b": DONE, "c": end}) == []


def test_they_stay_while_a_dependent_that_is_not_selected_has_not_run():
    assert removable(DIAMOND, {"a": DONE, "b": DONE}) == []


def test_they_stay_when_their_own_task_failed():
    assert removable(DIAMOND, {"a": End.FAILED, "b": DONE, "c": DONE}) == []


def test_a_dependent_that_the_plan_skips_needs_nothing():
    plan = plan_of(
        draft("a", "in", "t", temporary=True),
        draft("b", "t", "b.out"),
        draft("c", "t", "c.out", skip=Skip("when", "x")),
    )
    assert paths(removable(plan, {"a": DONE, "b": DONE})) == ["t"]


def test_a_leaf_keeps_its_temporary_outputs():
    plan = plan_of(draft("a", "in", "t", temporary=True))
    assert removable(plan, {"a": DONE}) == []


def test_plain_outputs_stay():
    plan = plan_of(draft("a", "in", "a.out"), draft("b", "a.out", "b.out"))
    assert removable(plan, {"a": DONE, "b": DONE}) == []


def test_a_task_ordered_after_it_counts_as_a_dependent():
    plan = plan_of(draft("a", "in", "t", temporary=True), draft("b", "in", "b.out", depends_on=("a",)))
    assert removable(plan, {"a": DONE}) == []
    assert paths(removable(plan, {"a": DONE, "b": DONE})) == ["t"]


def test_all_outputs_of_an_evicted_rule_go_once_they_are_read():
    plan = plan_of(draft("a", "in", "a.out a.log"), draft("b", "a.out", "b.out"))
    assert removable(plan, {"a": DONE, "b": End.FAILED}, frozenset({"a"})) == []
    assert paths(removable(plan, {"a": DONE, "b": DONE}, frozenset({"a"}))) == ["a.out", "a.log"]


def test_an_evicted_leaf_goes():
    plan = plan_of(draft("a", "in", "a.out"))
    assert paths(removable(plan, {"a": DONE}, frozenset({"a"}))) == ["a.out"]


def test_counting_as_tasks_end_frees_each_output_at_its_last_dependent():
    count = Temporaries(DIAMOND)
    assert count.ended("a", DONE) == []
    assert count.ended("c", DONE) == []
    assert [(task.id, path) for task, path in count.ended("b", End.UNCHANGED)] == [("a", "t")]

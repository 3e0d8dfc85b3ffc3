"""Outputs that nobody recorded: offered for adoption, adopted when asked, and touched."""

from __future__ import annotations

import os

import pytest
from decide_world import World, draft

from treadle.base.errors import PlanError
from treadle.decide.adopt import touch
from treadle.decide.reason import NeverRan, Verdict
from treadle.plan.task import Skip
from treadle.records.event import End


@pytest.fixture
def world(tmp_path):
    """in -> a -> b, all there, nothing recorded."""
    world = World(tmp_path, draft("a", "in", "a.out"), draft("b", "a.out", "b.out"))
    for path in ("in", "a.out", "b.out"):
        world.write(path)
    return world


def test_unknown_outputs_are_not_trusted_but_offered(world):
    decision = world.decide()
    assert decision.to_run() == ["a", "b"]
    assert decision.answers["a"].reasons == (NeverRan(outputs_exist=True),)
    assert decision.adoptable == ("a", "b")
    assert decision.adopted == {}


def test_adoption_takes_them_over_as_up_to_date_with_a_note(world):
    decision = world.decide(adopt=True)
    assert decision.to_run() == []
    assert decision.answers["a"].note == "adopted"
    assert decision.adoptable == ()
    assert [evidence.note for evidence in decision.adopted.values()] == ["adopted", "adopted"]


def test_what_was_adopted_is_up_to_date_from_then_on(world):
    world.run(adopt=True)
    assert world.to_run() == []
    assert world.answer("a").note == "adopted"
    world.touch("in")
    assert world.to_run() == []
    world.write("in", "other")
    assert world.to_run() == ["a", "b"]


def test_outputs_older_than_inputs_are_not_offered(world):
    world.touch("in")
    assert world.decide().adoptable == ("b",)


def test_an_ancient_input_may_be_younger(world):
    world.set(draft("a", "in", "a.out", ancient=("in",)))
    world.touch("in")
    assert world.decide().adoptable == ("a", "b")


def test_a_task_that_lacks_an_output_is_not_offered(world):
    world.set(draft("a", "in", "a.out a.log"))
    assert world.decide().adoptable == ("b",)


def test_a_task_that_lacks_an_input_is_not_offered(world):
    world.remove("a.out")
    assert world.decide().adoptable == ()


def test_a_task_that_failed_is_not_offered(world):
    world.fail("a")
    assert world.decide().adoptable == ("b",)


def test_a_task_whose_output_another_recorded_is_not_offered(world):
    other = World(world.root, draft("x", "in", "x.out b.out"))
    other.past = world.past
    other.run()
    assert world.decide().adoptable == ("a",)


def test_a_task_without_outputs_is_not_offered(world):
    world.set(draft("mail", "b.out"))
    assert "mail" not in world.decide().adoptable


def test_a_forced_task_is_not_adopted(world):
    decision = world.decide(adopt=True, forced=frozenset({"a"}))
    assert list(decision.adopted) == ["b"]
    assert decision.answers["a"].verdict is Verdict.WILL_RUN


def test_below_a_task_that_runs_adopted_evidence_serves_for_cut_off(world):
    world.touch("in")
    decision = world.decide(adopt=True)
    assert decision.answers["b"].may_cut_off
    assert list(decision.adopted) == ["b"]


def test_touch_records_outputs_as_up_to_date_and_changes_no_time(world):
    before = os.stat(world.root / "a.out").st_mtime_ns
    for task, evidence in touch(world.plan, world.past, world.options()).items():
        assert evidence.note == "touched"
        world.settle(world.plan.tasks[task], End.UP_TO_DATE, evidence)
    assert world.to_run() == []
    assert world.answer("b").note == "touched"
    assert os.stat(world.root / "a.out").st_mtime_ns == before


def test_touch_takes_a_changed_command_as_it_stands(world):
    world.run()
    world.set(draft("a", "in", "a.out", text="other"))
    touched = touch(world.plan, world.past, world.options(selected=frozenset({"a"})))
    world.settle(world.plan.tasks["a"], End.UP_TO_DATE, touched["a"])
    assert world.to_run() == []


def test_touch_refuses_tasks_whose_outputs_are_not_there(world):
    world.remove("a.out")
    world.remove("b.out")
    with pytest.raises(PlanError) as caught:
        touch(world.plan, world.past, world.options())
    assert [one.code for one in caught.value.diagnostics] == ["touch-missing-output"] * 2
    assert "its output a.out is not there" in caught.value.diagnostics[0].message


def test_touch_leaves_out_what_is_not_selected_and_what_is_skipped(world):
    world.set(draft("c", "in", "c.out", skip=Skip("when", "x")))
    assert list(touch(world.plan, world.past, world.options())) == ["a", "b"]
    assert list(touch(world.plan, world.past, world.options(selected=frozenset({"b"})))) == ["b"]


def test_touch_counts_what_was_removed_on_purpose_as_there(world):
    world.set(draft("a", "in", "a.out", temporary=True))
    world.run()
    world.evict("a.out")
    for task, evidence in touch(world.plan, world.past, world.options()).items():
        world.settle(world.plan.tasks[task], End.UP_TO_DATE, evidence)
    assert world.to_run() == []
    world.remove("b.out")
    assert world.to_run() == ["a", "b"]

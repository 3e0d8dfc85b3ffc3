"""What is skipped, with whom, and whatever lies on the disk."""

from __future__ import annotations

import pytest
from decide_world import World, draft

from treadle.decide.reason import CohortKept, ConditionFalse, SourceMissing, UpstreamSkipped, Verdict
from treadle.plan.task import Policy, Skip

OPTIONAL = Policy(optional=True)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.write("in")
    return world


def skipped(world, **options):
    """By skipped task, why."""
    answers = world.decide(**options).answers
    return {task: one.reasons for task, one in answers.items() if one.verdict is Verdict.SKIPPED}


def test_a_task_whose_condition_is_false_is_skipped(world):
    world.set(draft("a", "in", "a.out", skip=Skip("when", "config.x")))
    assert skipped(world) == {"a": (ConditionFalse(condition="config.x"),)}


def test_what_reads_only_from_a_skipped_task_is_skipped_whatever_lies_on_disk(world):
    world.set(draft("a", "in", "a.out", skip=Skip("when", "config.x")), draft("b", "a.out", "b.out"))
    world.write("a.out")
    assert skipped(world)["b"] == (UpstreamSkipped(path="a.out"),)


def test_an_optional_task_without_its_source_is_skipped_and_its_readers_with_it(world):
    world.set(
        draft("a", "in none", "a.out", policy=OPTIONAL),
        draft("b", "a.out", "b.out"),
        draft("c", "b.out", "c.out"),
        draft("d", "in", "d.out", depends_on=("a",)),
    )
    world.write("a.out")
    assert skipped(world) == {
        "a": (SourceMissing(path="none"),),
        "b": (UpstreamSkipped(path="a.out"),),
        "c": (UpstreamSkipped(path="b.out"),),
    }
    assert world.to_run() == ["d"]


def test_an_optional_task_with_its_sources_runs(world):
    world.set(draft("a", "in", "a.out", policy=OPTIONAL))
    assert world.to_run() == ["a"]


def test_an_optional_task_is_not_skipped_for_an_input_that_another_task_makes(world):
    world.set(draft("a", "in", "a.out"), draft("b", "a.out", "b.out", policy=OPTIONAL))
    assert world.to_run() == ["a", "b"]


def test_a_forced_task_that_is_skipped_stays_skipped(world):
    world.set(draft("a", "none", "a.out", policy=OPTIONAL))
    assert list(skipped(world, force_all=True)) == ["a"]


@pytest.fixture
def cohort(world):
    """A gather over three samples, made, and a report on it."""
    for sample in "xyz":
        world.write(sample)
    world.set(draft("all", "x y z", "all.out"), draft("report", "all.out", "report.out"))
    world.run()
    world.set(draft("all", "x y", "all.out"))
    return world


NARROWED = frozenset({"all.out"})


def test_a_gather_over_a_selection_does_not_overwrite_that_over_the_cohort(cohort):
    assert skipped(cohort, narrowed=NARROWED) == {
        "all": (CohortKept(path="all.out"),),
        "report": (UpstreamSkipped(path="all.out"),),
    }


def test_it_overwrites_it_when_asked(cohort):
    found = cohort.decide(narrowed=NARROWED, overwrite_cohort=True)
    assert found.to_run() == ["all", "report"]


def test_a_gather_that_was_never_made_is_made_over_the_selection(cohort):
    cohort.remove("all.out")
    assert cohort.to_run(narrowed=NARROWED) == ["all", "report"]


def test_a_gather_over_the_same_set_is_decided_as_ever(cohort):
    cohort.set(draft("all", "x y z", "all.out"))
    assert skipped(cohort, narrowed=NARROWED) == {}
    cohort.write("x", "other")
    assert cohort.to_run(narrowed=NARROWED) == ["all", "report"]


def test_an_output_that_nobody_recorded_is_no_cohort(cohort):
    cohort.set(draft("new", "x y", "new.out"))
    cohort.write("new.out")
    assert "new" in cohort.to_run(narrowed=frozenset({"new.out"}))

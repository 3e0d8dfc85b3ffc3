"""The skip cascade: what `when` takes out, and what cannot be had without it."""

from __future__ import annotations

import pytest

from treadle.base.errors import PlanError
from treadle.plan.build import build
from treadle.plan.task import ScheduledPlan, Skip
from treadle.testing.drafts import draft

OFF = Skip("when", "config.qc")


def skips(made: ScheduledPlan) -> dict[str, Skip]:
    return {task.id: task.skip for task in made.tasks.values() if task.skip}


def test_a_skipped_task_stays_in_the_plan_and_makes_nothing():
    made = build("flow", [draft("a", "in.txt", "x", skip=OFF)])
    assert made.tasks["a"].skip == OFF
    assert made.producer == {}
    assert made.sources == frozenset()


def test_what_reads_only_from_skipped_tasks_is_skipped_and_so_on_down():
    made = build(
        "flow", [draft("a", "", "x", skip=OFF), draft("b", "other x", "y"), draft("c", "y", "z"), draft("d")]
    )
    assert skips(made) == {"a": OFF, "b": Skip("upstream", "x"), "c": Skip("upstream", "y")}
    assert made.tasks["b"].needs == ()


def test_two_rules_of_opposite_conditions_may_make_one_path():
    made = build("flow", [draft("a", "", "x", skip=OFF), draft("b", "", "x"), draft("c", "x", "y")])
    assert skips(made) == {"a": OFF}
    assert made.tasks["c"].needs == ("b",)
    assert made.producer["x"] == "b"


def test_two_makers_of_one_path_are_fine_when_all_are_skipped():
    made = build("flow", [draft("a", "", "x", skip=OFF), draft("b", "", "x", skip=OFF), draft("c", "x", "y")])
    assert skips(made)["c"] == Skip("upstream", "x")


def test_two_makers_of_which_one_falls_with_its_upstream_are_fine():
    made = build(
        "flow",
        [draft("a", "", "w", skip=OFF), draft("b", "w", "x"), draft("c", "", "x"), draft("d", "x", "y")],
    )
    assert set(skips(made)) == {"a", "b"}
    assert made.tasks["d"].needs == ("c",)


def test_depends_on_a_skipped_task_is_met():
    made = build("flow", [draft("a", "", "x", skip=OFF), draft("b", "", "y", depends_on=("a",))])
    assert skips(made) == {"a": OFF}
    assert made.tasks["b"].needs == ()


def gather(paths: str, **more):
    return draft("sum", paths, "sum.txt", gathered=frozenset(paths.split()), **more)


def test_a_gather_has_fewer_files():
    made = build(
        "flow",
        [
            draft("a/s=1", "", "1", skip=OFF),
            draft("a/s=2", "", "2"),
            gather("1 2 3", ancient=frozenset("12")),
        ],
    )
    assert made.tasks["sum"].skip is None
    assert made.tasks["sum"].inputs == ("2", "3")
    assert made.tasks["sum"].ancient == {"2"}
    assert made.tasks["sum"].needs == ("a/s=2",)
    assert made.sources == {"3"}


def test_a_gather_that_has_nothing_left_is_skipped():
    made = build(
        "flow",
        [
            draft("a/s=1", "", "1", skip=OFF),
            draft("a/s=2", "", "2", skip=OFF),
            gather("2 1"),
            draft("r", "sum.txt"),
        ],
    )
    assert skips(made)["sum"] == Skip("empty", "2")
    assert skips(made)["r"] == Skip("upstream", "sum.txt")


def test_a_gather_falls_with_a_fixed_input():
    fixed = draft("sum", "ref 1 2", "s", gathered=frozenset({"1", "2"}))
    made = build("flow", [draft("a", "", "ref", skip=OFF), fixed])
    assert skips(made)["sum"] == Skip("upstream", "ref")


def test_a_gather_whose_command_names_what_is_skipped_is_refused():
    drafts = [draft("a/s=1", "", "out/1", skip=OFF), gather("out/1 out/2", text="cat out/1 out/2 > sum.txt")]
    with pytest.raises(PlanError) as caught:
        build("flow", drafts)
    assert [one.code for one in caught.value.diagnostics] == ["gather-skipped"]


def test_a_folder_of_which_all_makers_are_skipped_skips_its_reader():
    made = build(
        "flow", [draft("a", "", "qc/1", skip=OFF), draft("b", "", "qc/2", skip=OFF), draft("r", "qc")]
    )
    assert skips(made)["r"] == Skip("upstream", "qc")


def test_a_folder_of_which_some_makers_are_skipped_needs_the_others():
    made = build("flow", [draft("a", "", "qc/1", skip=OFF), draft("b", "", "qc/2"), draft("r", "qc")])
    assert made.tasks["r"].needs == ("b",)


def test_a_file_in_a_folder_of_a_skipped_maker_skips_its_reader():
    made = build("flow", [draft("a", "", "refs", skip=OFF), draft("r", "refs/SA")])
    assert skips(made)["r"] == Skip("upstream", "refs/SA")


def test_a_folder_made_one_way_or_file_by_file_the_other_way():
    made = build("flow", [draft("a", "", "refs", skip=OFF), draft("b", "", "refs/SA"), draft("r", "refs")])
    assert skips(made) == {"a": OFF}
    assert made.tasks["r"].needs == ("b",)


def test_the_reason_is_the_first_input_that_is_lost():
    made = build("flow", [draft("z", "", "1", skip=OFF), draft("a", "", "2", skip=OFF), draft("r", "1 2")])
    assert skips(made)["r"] == Skip("upstream", "1")


def test_a_source_that_nobody_makes_skips_nothing():
    made = build("flow", [draft("a", "", "x", skip=OFF), draft("b", "in.txt", "y")])
    assert "b" not in skips(made)

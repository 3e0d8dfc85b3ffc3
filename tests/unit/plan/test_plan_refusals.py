"""What no plan may hold: refused before anything runs, all at once, with places and a way out."""

from __future__ import annotations

import pytest

from treadle.base.errors import CycleError, PlanError
from treadle.base.place import Diagnostic, Place
from treadle.plan.build import build
from treadle.plan.task import Resources, Skip
from treadle.testing.drafts import draft


def at(line: int) -> Place:
    return Place("flow.oxoflow", line, "rules")


def refused(*drafts, **options) -> tuple[Diagnostic, ...]:
    with pytest.raises(PlanError) as caught:
        build("flow", drafts, **options)
    return caught.value.diagnostics


def only(*drafts, **options) -> Diagnostic:
    (found,) = refused(*drafts, **options)
    return found


def test_two_makers_of_one_path_are_refused_with_both_names_and_places():
    found = only(
        draft("a", "", "x.txt", place=at(3)),
        draft("b/sample=S1", "", "y.txt x.txt", place=at(9)),
    )
    assert found.code == "two-producers"
    assert found.place.line == 9
    assert found.message == "a (flow.oxoflow:3 [rules]) and b/sample=S1 both make x.txt"
    assert found.hint


def test_two_makers_under_two_spellings_are_two_makers():
    assert only(draft("a", "", "out/x"), draft("b", "", "./out//x")).code == "two-producers"


def test_what_many_tasks_of_two_rules_share_is_told_once():
    drafts = [draft(f"{rule}/i={i}", "", f"out/{i}") for i in range(50) for rule in "ab"]
    found = only(*drafts)
    assert found.message == "a/i=0 and b/i=0 both make out/0 (and 49 more like it)"


def test_two_tasks_of_one_id_are_refused():
    found = only(draft("a/s=1", "", "x", place=at(1)), draft("a/s=1", "", "y", place=at(2)))
    assert (found.code, "a/s=1" in found.message) == ("duplicate-task", True)


def test_a_folder_that_a_task_makes_may_hold_no_output_of_another():
    found = only(draft("index", "", "refs"), draft("fetch", "", "refs/deep/hg38.fa"))
    assert found.code == "output-in-output"
    assert "index makes the folder refs" in found.message
    assert "fetch makes refs/deep/hg38.fa" in found.message


def test_a_task_may_name_a_folder_and_a_file_in_it():
    made = build("flow", [draft("index", "", "refs refs/SA"), draft("use", "refs/SA refs", "x")])
    assert made.tasks["use"].needs == ("index",)


def test_reading_ones_own_output_is_refused():
    found = only(draft("sort", "x.bam", "x.bam"))
    assert (found.code, found.message) == (
        "reads-own-output",
        "sort reads x.bam, which is its own output",
    )


def test_reading_from_ones_own_output_folder_is_refused():
    found = only(draft("sort", "data/in.txt", "data"))
    assert found.message == "sort reads data/in.txt, which lies in its own output data"


@pytest.mark.parametrize("path", [".treadle", ".treadle/x", "./.treadle/runs/x"])
def test_outputs_in_the_state_folder_are_refused(path):
    assert only(draft("a", "", path)).code == "output-in-state-folder"


@pytest.mark.parametrize("path", [".", "./", "..", "../..", "/", "a/.."])
def test_an_output_that_is_or_holds_the_work_folder_is_refused(path):
    assert only(draft("a", "", path)).code == "output-holds-work-folder"


def test_names_that_begin_like_the_state_folder_are_fine():
    assert build("flow", [draft("a", "", ".treadle-notes ..x ../x")]).order == ("a",)


@pytest.mark.parametrize("output", ["flow.oxoflow", "sub", "sub/flows", "sub/flows/main.oxoflow"])
def test_an_output_may_not_be_or_hold_the_workflow(output):
    found = only(draft("a", "", output), protected=("flow.oxoflow", "sub/flows/main.oxoflow"))
    assert found.code == "output-holds-workflow"


def test_an_output_beside_the_workflow_is_fine():
    assert build("flow", [draft("a", "", "sub/x")], protected=("sub/flow.oxoflow",)).order == ("a",)


def test_depends_on_an_unknown_rule_names_the_nearest():
    found = only(draft("align", "", "x"), draft("call", "", "y", depends_on=("algin",), place=at(7)))
    assert (found.code, found.place.line) == ("unknown-rule", 7)
    assert found.hint == "did you mean 'align'?"


def test_a_group_that_there_is_not_is_refused():
    found = only(draft("a", resources=Resources(groups=(("licence", 1),))), pools=(("licences", 2),))
    assert (found.code, found.hint) == ("unknown-group", "did you mean 'licences'?")


def test_more_of_a_group_than_there_is_can_never_be_had():
    greedy = Resources(groups=(("db", 3),))
    found = only(draft("a/i=1", resources=greedy), draft("a/i=2", resources=greedy), pools=(("db", 2),))
    assert found.code == "group-too-small"
    assert "3 of the resource group db, which has 2" in found.message


def test_as_much_of_a_group_as_there_is_can_be_had():
    all_of_it = Resources(groups=(("db", 2),))
    assert build("flow", [draft("a", resources=all_of_it)], pools=(("db", 2),)).pools == (("db", 2),)


def test_everything_that_is_wrong_is_told_at_once_by_place():
    found = refused(
        draft("twin", "", "x", place=at(40)),
        draft("other", "", "x", place=at(10)),
        draft("lost", "", "y", depends_on=("nobody",), place=at(30)),
        draft("own", "z", "z", place=at(20)),
    )
    assert [(one.place.line, one.code) for one in found] == [
        (20, "reads-own-output"),
        (30, "unknown-rule"),
        (40, "two-producers"),
    ]


def cycle_of(*drafts) -> CycleError:
    with pytest.raises(CycleError) as caught:
        build("flow", drafts)
    return caught.value


def test_a_cycle_is_drawn_as_a_path_with_the_files_and_places():
    error = cycle_of(
        draft("b/sample=1", "a.txt", "b.txt", place=at(8)), draft("a/sample=1", "b.txt", "a.txt", place=at(2))
    )
    (found,) = error.diagnostics
    assert found.code == "cycle"
    assert found.message == ("tasks need each other in a circle: a/sample=1 -> b/sample=1 -> a/sample=1")
    assert found.hint.splitlines() == [
        "flow.oxoflow:8 [rules]: b/sample=1 reads a.txt, which a/sample=1 makes",
        "  flow.oxoflow:2 [rules]: a/sample=1 reads b.txt, which b/sample=1 makes",
    ]
    assert error.path == ("a/sample=1", "b/sample=1")
    assert isinstance(error, ValueError)
    assert error.exit_code == 2


def test_tasks_that_only_hang_on_a_cycle_are_not_in_its_path():
    error = cycle_of(
        draft("before", "", "0"), draft("a", "0 2", "1"), draft("b", "1", "2"), draft("after", "2", "3")
    )
    assert error.path == ("a", "b")


def test_the_shortest_cycle_is_drawn():
    error = cycle_of(draft("a", "b c", "a"), draft("b", "a", "b"), draft("c", "b", "c"))
    assert error.path == ("a", "b")


def test_cycles_of_rules_that_have_nothing_in_common_are_all_told():
    error = cycle_of(draft("a", "2", "1"), draft("b", "1", "2"), draft("c", "4", "3"), draft("d", "3", "4"))
    assert [one.message.partition(": ")[2] for one in error.diagnostics] == ["a -> b -> a", "c -> d -> c"]


def test_the_same_cycle_in_many_samples_is_told_once():
    error = cycle_of(
        *(draft(f"a/s={i}", f"b{i}", f"a{i}") for i in range(30)),
        *(draft(f"b/s={i}", f"a{i}", f"b{i}") for i in range(30)),
    )
    (found,) = error.diagnostics
    assert found.message.endswith("(and 29 more like it)")


def test_a_cycle_by_depends_on_says_so():
    error = cycle_of(draft("a", "b.txt", "a.txt"), draft("b", "", "b.txt", depends_on=("a",)))
    assert "b depends on the rule a" in error.diagnostics[0].hint


def test_a_cycle_through_a_folder_is_found():
    error = cycle_of(draft("report", "qc", "r.txt"), draft("qc", "r.txt", "qc/x"))
    assert error.path == ("qc", "report")


def test_a_long_cycle_is_drawn_short():
    error = cycle_of(*(draft(f"t/i={i:03}", f"f{i}", f"f{(i + 1) % 500}") for i in range(500)))
    (found,) = error.diagnostics
    assert "... 492 more ..." in found.message
    assert len(found.message) < 300
    assert len(error.path) == 500


def test_a_cycle_and_other_errors_are_told_together():
    error = cycle_of(draft("a", "2", "1"), draft("b", "1", "2"), draft("c", "", "3", depends_on=("nobody",)))
    assert {one.code for one in error.diagnostics} == {"cycle", "unknown-rule"}


@pytest.mark.parametrize("names", ["abc", "acb", "cab"])
def test_a_path_with_two_makers_closes_no_cycle(names):
    one, two, three = names
    found = only(draft(one, "y", "x"), draft(two, "", "y"), draft(three, "x", "y"))
    assert found.code == "two-producers"


def test_a_skipped_task_closes_no_cycle():
    made = build("flow", [draft("a", "2", "1", skip=Skip("when", "config.x")), draft("b", "1", "2")])
    assert {task.skip.why for task in made.tasks.values() if task.skip} == {"when", "upstream"}

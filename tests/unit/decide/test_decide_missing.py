"""The refusal of plans whose sources are not there."""

from __future__ import annotations

import pytest
from decide_world import World, draft
from msgspec.structs import replace

from treadle.base.errors import PlanError
from treadle.base.place import Place
from treadle.plan.task import Command
from treadle.plan.tokens import FLOWDIR


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def findings(world, **options):
    with pytest.raises(PlanError) as caught:
        world.decide(**options)
    return caught.value.diagnostics


def test_all_missing_sources_are_told_at_once_with_who_wants_them(world):
    world.set(
        draft("a", "data/one.fq data/two.fq", "a.out"),
        replace(draft("b", "data/one.fq", "b.out"), place=Place("flow.oxoflow", 7)),
    )
    found = findings(world)
    assert [(one.code, one.message) for one in found] == [
        ("missing-input", "the input data/one.fq does not exist, and no task makes it (wanted by a, b)"),
        ("missing-input", "the input data/two.fq does not exist, and no task makes it (wanted by a)"),
    ]


def test_the_place_of_the_rule_is_told(world):
    world.set(replace(draft("a", "in", "a.out"), place=Place("flow.oxoflow", 7)))
    assert findings(world)[0].place == Place("flow.oxoflow", 7)


def test_the_nearest_name_in_the_folder_is_told(world):
    world.set(draft("a", "data/S1.fq", "a.out"))
    world.write("data/S1.fastq")
    world.write("data/readme")
    assert findings(world)[0].hint == "did you mean 'data/S1.fastq'?"


def test_a_missing_folder_is_told(world):
    world.set(draft("a", "data/S1.fq", "a.out"), draft("b", "in", "b.out"))
    assert findings(world)[0].hint == "there is no folder data"


def test_no_more_than_twenty_are_told_one_by_one(world):
    world.set(*(draft(f"r{n:02}", f"{n:02}.in", f"{n:02}.out") for n in range(25)))
    found = findings(world)
    assert len(found) == 21
    assert found[-1].message == "and 5 more that do not exist"


def test_of_a_rule_that_lacks_very_much_a_few_are_told_and_the_others_counted(world):
    many = replace(draft("r", "in", "r.out"), inputs=tuple(f"{n}.in" for n in range(9)))
    world.set(many, draft("s", "s.in", "s.out"))
    found = findings(world)
    assert len(found) == 7
    assert found[5].message == "and 4 more files that rule r reads do not exist"
    assert "s.in" in found[6].message


def test_many_who_want_one_file_are_counted(world):
    world.set(*(draft(f"r{n}", "in", f"{n}.out") for n in range(5)))
    assert findings(world)[0].message.endswith("(wanted by r0, r1, r2 and 2 more)")


def test_a_missing_source_of_a_task_that_is_up_to_date_is_no_error(world):
    world.set(draft("a", "in", "a.out"))
    world.write("in")
    world.run()
    world.remove("in")
    assert world.to_run() == []
    world.remove("a.out")
    assert findings(world)[0].code == "missing-input"


def test_a_missing_source_of_a_task_that_is_not_selected_is_no_error(world):
    world.set(draft("a", "in", "a.out"), draft("b", "none", "b.out"))
    world.write("in")
    assert world.to_run(selected=frozenset({"a"})) == ["a"]


def test_a_missing_source_of_a_task_that_may_be_cut_off_is_no_error_yet(world):
    world.set(draft("a", "in", "a.out"), draft("b", "a.out more", "b.out"))
    world.write("in")
    world.write("more")
    world.run()
    world.remove("more")
    world.remove("a.out")
    assert world.to_run() == ["a", "b"]
    assert world.run() == ["a"]


def test_an_output_of_a_task_that_is_not_selected_must_be_there(world):
    world.set(draft("a", "in", "a.out"), draft("b", "a.out", "b.out"))
    world.write("in")
    found = findings(world, selected=frozenset({"b"}))
    assert found[0].message == "the input a.out does not exist (wanted by b), and a is not selected"
    world.write("a.out")
    assert world.to_run(selected=frozenset({"b"})) == ["b"]


def test_a_folder_that_tasks_fill_need_not_be_there(world):
    world.set(draft("a", "in", "d/a.out"), draft("b", "d", "b.out"))
    world.write("in")
    assert world.to_run() == ["a", "b"]


def test_a_missing_script_is_told(world):
    command = Command(script=("python", f"{FLOWDIR}/s.py"), script_file=f"{FLOWDIR}/s.py")
    world.set(replace(draft("a", "", "a.out"), command=command))
    assert [(one.code, one.message) for one in findings(world)] == [
        ("missing-script", "the script {flowdir}/s.py does not exist (wanted by a)")
    ]


def test_a_script_that_a_task_makes_need_not_be_there(world):
    command = Command(script=("python", f"{FLOWDIR}/s.py"), script_file=f"{FLOWDIR}/s.py")
    world.set(draft("make", "", "s.py"), replace(draft("a", "s.py", "a.out"), command=command))
    assert world.to_run() == ["a", "make"]

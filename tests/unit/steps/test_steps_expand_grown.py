"""From the steps asked for to drafts: what complete steps have grown."""

from __future__ import annotations

import pytest
from expand_world import Disk, codes, expand, names, needs, step

from treadle.base.errors import StepError


def test_a_complete_step_grows_further_steps_in_the_expansion():
    def more(count):
        return [step(f"part_{number}", deep) for number in range(count)]

    deep = step("deep")
    grows = step("grows", grow=more)
    found = expand(grows, disk=Disk(grows, results={grows: 2}))
    assert names(found) == ["grows", "deep", "part_0", "part_1"]
    assert [target.partition("_")[0] for target in found.targets] == ["@grows", "@part", "@part"]


def test_a_grown_step_may_grow():
    def more(left):
        return step(f"level_{left}", grow=more if left else None)

    first = step("first", grow=more)
    level_3 = more(3)
    found = expand(first, disk=Disk(first, level_3, results={first: 3, level_3: 2}))
    assert names(found) == ["first", "level_3", "level_2"]


@pytest.mark.parametrize("options", [{"forced": True}, {}])
def test_a_step_that_is_made_again_has_not_grown_yet(options):
    grows = step("grows", version="" if options else "dev", grow=lambda value: [step("part")])
    assert names(expand(grows, disk=Disk(grows, results={grows: 1}), **options)) == ["grows"]


def test_what_grows_knows_its_parent_and_its_depth():
    def level(number):
        return step(f"level_{number}", grow=lambda value: [level(number + 1)])

    disk = Disk(*map(level, range(3)), results={level(number): 0 for number in range(3)})
    found = expand(level(0), disk=disk)
    assert found.parents == {level(n + 1).task_id: level(n).task_id for n in range(3)}
    assert [found.book[level(n).task_id].depth for n in range(4)] == [0, 1, 2, 3]


def test_a_step_that_something_else_leads_to_counts_as_asked_for_though_it_grows_as_well():
    late = step("late")
    grows = step("grows", late, inputs=["in.txt"], grow=lambda value: [late, grows])
    for asked in ((grows,), (grows, late), (step("top", late), grows)):
        found = expand(*asked, disk=Disk(grows, results={grows: 0}))
        assert found.parents == {}


@pytest.mark.parametrize("complete", [True, False])
def test_a_step_that_grows_below_a_complete_one_is_met_where_it_is_complete_itself(complete):
    low = step("low", grow=lambda value: [step("part")])
    top = step("top", step("middle", low))
    found = expand(top, disk=Disk(top, *([low] if complete else []), results={low: 0}))
    assert sorted(names(found)) == (["low", "part", "top"] if complete else ["top"])
    assert needs(found)["top"] == []


def test_a_step_of_a_plan_has_grown_no_deeper_than_thirty_two():
    def level(number):
        return step(f"level_{number}", grow=lambda value: [level(number + 1)])

    disk = Disk(*map(level, range(40)), results={level(number): 0 for number in range(40)})
    with pytest.raises(StepError, match="more than 32 deep") as caught:
        expand(level(0), disk=disk)
    assert codes(caught) == ["grow-too-deep"]
    with pytest.raises(StepError, match="more than 32 deep"):
        expand(level(20), disk=disk, depths={level(20).identity: 25})
    assert len(names(expand(level(20), disk=disk, depths={level(20).identity: 12}))) == 21


def test_growth_that_fails_is_an_error_of_the_step():
    for grow, text in (
        (lambda value: 1 / 0, "ZeroDivisionError"),
        (lambda value: ["x"], r"\[0\]: a step is wanted"),
    ):
        grows = step("grows", grow=grow)
        with pytest.raises(StepError, match=f"grow of step {grows.name_with_hash}.*{text}"):
            expand(grows, disk=Disk(grows))

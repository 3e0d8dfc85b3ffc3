"""From the steps asked for to drafts: steps that do not go together, pins that do not hold, circles."""

from __future__ import annotations

import pytest
from expand_world import Disk, codes, expand, names, other_work, step, work

from treadle.base.errors import CycleError, StepError
from treadle.steps.resources import ResourceConfig
from treadle.steps.spec import StepSpec


def test_a_fixed_step_may_not_build_on_a_development_version():
    with pytest.raises(StepError, match="development version") as caught:
        expand(step("b", step("a", version="dev")))
    assert codes(caught) == ["mutable-dep"]


def test_a_step_without_function_must_be_there():
    a = StepSpec("a")
    with pytest.raises(StepError, match="no complete artifact stands at /w/") as caught:
        expand(step("b", a))
    assert codes(caught) == ["nothing-to-call"]
    assert names(expand(step("b", a), disk=Disk(a))) == ["a", "b"]


def test_one_step_may_be_there_twice_with_the_same_code():
    twins = [step("a", fn=lambda out, i=i: i) for i in (1, 1)]
    assert names(expand(*twins)) == ["a"]


def test_one_step_with_two_codes_is_refused():
    with pytest.raises(StepError, match="different code") as caught:
        expand(step("b", step("a")), step("c", step("a", fn=other_work)))
    assert codes(caught) == ["step-twice"]


def test_one_step_with_two_resources_or_places_is_refused():
    with pytest.raises(StepError, match="different resources and output path"):
        expand(step("a"), step("a", resources=ResourceConfig(cpu=2), override_output_path="x"))


def test_of_a_step_with_and_without_function_the_one_with_it_counts():
    for twins in ([StepSpec("a"), step("a")], [step("a"), StepSpec("a")]):
        found = expand(*twins)
        assert found.book[twins[0].task_id].spec.fn is work


def test_two_steps_at_one_place_are_refused():
    absolute = step("a", override_output_path="/w/here")
    joined = step("b", output_path_prefix="/w/x/..", override_output_path="here")
    with pytest.raises(StepError, match="both have the output path /w/here") as caught:
        expand(absolute, joined)
    assert codes(caught) == ["two-steps-one-path"]


def test_all_that_does_not_go_together_is_told_at_once():
    with pytest.raises(StepError) as caught:
        expand(
            step("b", step("a", version="dev")),
            StepSpec("missing"),
            step("c", override_output_path="x"),
            step("d", override_output_path="x"),
        )
    assert sorted(codes(caught)) == ["mutable-dep", "nothing-to-call", "two-steps-one-path"]


def test_a_pin_that_does_not_hold_is_told_before_anything_is_looked_at():
    good = step("good")
    pinned = step("deep", expected_identity="0" * 32)
    disk = Disk()
    with pytest.raises(StepError, match="pinned to identity 000") as caught:
        expand(step("top", pinned, good), disk=disk)
    assert codes(caught) == ["identity-pinned"]
    assert disk.looked == []
    held = step("good", expected_identity=good.identity)
    assert names(expand(step("top", held, step("good", expected_identity=good.hash_id)))) == ["good", "top"]


def test_a_pin_is_seen_below_complete_artifacts():
    top = step("top", step("deep", expected_identity="0" * 12))
    with pytest.raises(StepError, match="pinned"):
        expand(top, disk=Disk(top))


def test_a_cycle_that_someone_forged_is_told_as_a_path():
    a = step("a")
    b = step("b", a)
    c = step("c", b)
    object.__setattr__(a, "deps", (c,))
    with pytest.raises(CycleError) as caught:
        expand(step("top", c))
    assert isinstance(caught.value, ValueError)
    assert caught.value.path == (a.task_id, b.task_id, c.task_id)
    assert f"{a.name_with_hash} -> {b.name_with_hash} -> {c.name_with_hash} -> {a.name_with_hash}" in str(
        caught.value
    )


def test_what_is_no_step_is_told_by_its_number():
    with pytest.raises(StepError, match=r"steps\[1\]: a StepSpec is wanted, not 3"):
        expand(step("a"), 3)

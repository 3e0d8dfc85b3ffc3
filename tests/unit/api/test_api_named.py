"""Which outputs targets stand for."""

from __future__ import annotations

import pytest

from treadle.api.named import Named
from treadle.base.errors import OptionError
from treadle.plan.build import build
from treadle.plan.task import ScheduledPlan
from treadle.testing.drafts import draft

WORKDIR = "/work"


@pytest.fixture(scope="module")
def plan() -> ScheduledPlan:
    drafts = [
        draft("align/sample=A", "A.fq", "bam/A.bam bam/A.bai"),
        draft("align/sample=B", "B.fq", "bam/B.bam bam/B.bai"),
        draft("tree", "", "tree"),
        draft("end", "bam/A.bam bam/B.bam tree", "end.txt"),
    ]
    return build("p", drafts, rules=["align", "tree", "end"])


def named(plan: ScheduledPlan, *targets: str) -> dict[str, tuple[str, ...]]:
    found = Named(plan, targets, WORKDIR)
    return {task.id: found.outputs(task) for task in found.tasks()}


@pytest.mark.parametrize("target", ["align", "align/sample=*", "bam", "/work/bam", "bam/"])
def test_a_rule_a_pattern_and_a_folder_stand_for_all_outputs(plan, target):
    assert named(plan, target) == {
        "align/sample=A": ("bam/A.bam", "bam/A.bai"),
        "align/sample=B": ("bam/B.bam", "bam/B.bai"),
    }


def test_a_task_stands_for_its_outputs_and_not_for_what_it_needs(plan):
    assert named(plan, "end") == {"end": ("end.txt",)}


@pytest.mark.parametrize("target", ["bam/A.bai", "./bam/A.bai", "/work/bam/A.bai", "bam//A.bai"])
def test_a_path_stands_for_itself(plan, target):
    found = Named(plan, [target], WORKDIR)
    (task,) = found.tasks()
    assert found.outputs(task) == ("bam/A.bai",)
    assert not found.is_whole(task)


def test_a_task_and_one_of_its_paths_are_the_task(plan):
    assert named(plan, "bam/A.bai", "align/sample=A") == {"align/sample=A": ("bam/A.bam", "bam/A.bai")}


def test_a_name_is_a_rule_before_it_is_a_path(plan):
    found = Named(plan, ["tree"], WORKDIR)
    assert [found.is_whole(task) for task in found.tasks()] == [True]
    found = Named(plan, ["./tree"], WORKDIR)
    assert [found.is_whole(task) for task in found.tasks()] == [False]


def test_no_targets_stand_for_everything(plan):
    assert list(named(plan)) == list(plan.order)


def test_a_part_of_an_output_folder_is_refused_with_its_name(plan):
    with pytest.raises(OptionError, match=r"tree/x/y is only a part of the output tree"):
        Named(plan, ["tree/x/y"], WORKDIR)


def test_all_wrong_targets_are_told_at_once(plan):
    with pytest.raises(OptionError) as caught:
        Named(plan, ["A.fq", "aling"], WORKDIR)
    assert len(caught.value.diagnostics) == 2

"""Targets to tasks."""

from __future__ import annotations

import pytest

from treadle.base.errors import OptionError
from treadle.plan.build import build
from treadle.plan.select import select
from treadle.plan.task import Policy, ScheduledPlan, Skip
from treadle.testing.drafts import draft

S1, S2 = "align/sample=S1", "align/sample=S2"


@pytest.fixture
def plan() -> ScheduledPlan:
    return build(
        "flow",
        [
            draft(S1, "S1.fq", "bam/S1.bam"),
            draft(S2, "S2.fq", "bam/S2.bam"),
            draft("index", "hg38.fa", "refs/star"),
            draft("qc::fastqc/sample=S1", "S1.fq", "qc/S1.html"),
            draft("call", "bam/S1.bam bam/S2.bam", "call"),
            draft("report", "call", "/srv/report.html"),
            draft("never", "", "never.txt", skip=Skip("when", "config.x")),
        ],
    )


def test_without_targets_every_task_is_selected(plan):
    assert select(plan) == set(plan.order)


def test_without_targets_rules_that_are_marked_are_selected_with_what_they_need():
    made = build("flow", [draft("a", "", "x"), draft("b", "x", "y", policy=Policy(target=True)), draft("c")])
    assert select(made) == {"a", "b"}
    assert select(made, upstream=False) == {"b"}


@pytest.mark.parametrize(
    ("target", "tasks"),
    [
        ("align", {S1, S2}),
        (S1, {S1}),
        ("qc::fastqc", {"qc::fastqc/sample=S1"}),
        ("bam/S2.bam", {S2}),
        ("./bam//S2.bam", {S2}),
        ("/work/bam/S2.bam", {S2}),
        ("/srv/report.html", {"report"}),
        ("bam", {S1, S2}),
        ("bam/", {S1, S2}),
        ("refs/star/SA", {"index"}),
        ("align/*", {S1, S2}),
        ("*/sample=S1", {S1, "qc::fastqc/sample=S1"}),
        ("never", {"never"}),
        ("never.txt", {"never"}),
    ],
)
def test_a_target_names_tasks(plan, target, tasks):
    assert select(plan, [target], workdir="/work", upstream=False) == tasks


def test_a_target_comes_with_all_that_it_needs(plan):
    assert select(plan, ["report"]) == {"report", "call", S1, S2}


def test_on_wish_all_that_needs_the_target_comes_too(plan):
    assert select(plan, [S1], upstream=False, downstream=True) == {S1, "call", "report"}
    assert select(plan, [S1], downstream=True) == {S1, S2, "call", "report"}


def test_several_targets_are_taken_together(plan):
    assert select(plan, ["index", S1]) == {"index", S1}


def test_a_name_that_is_both_means_the_rule_and_with_a_dot_the_path():
    made = build("flow", [draft("x", "", "y"), draft("y", "", "x")])
    assert select(made, ["x"]) == {"x"}
    assert select(made, ["./x"]) == {"y"}


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("algin", "did you mean 'align'?"),
        ("align/sample=S3", f"did you mean '{S2}'?"),
        ("bam/S1.bma", "did you mean 'bam/S1.bam'?"),
        ("nothing-like-it", "treadle plan --tasks lists what there is"),
    ],
)
def test_a_target_that_names_nothing_names_the_nearest(plan, target, hint):
    with pytest.raises(OptionError) as caught:
        select(plan, [target])
    (found,) = caught.value.diagnostics
    assert found.code == "unknown-target"
    assert target in found.message
    assert found.hint == hint


def test_a_source_file_as_target_says_so(plan):
    with pytest.raises(OptionError, match=r"no task makes S1\.fq"):
        select(plan, ["S1.fq"])


def test_a_pattern_that_matches_nothing_is_an_error(plan):
    with pytest.raises(OptionError, match="no task id matches"):
        select(plan, ["align/sample=X*"])


def test_all_wrong_targets_are_told_at_once(plan):
    with pytest.raises(OptionError) as caught:
        select(plan, ["algin", "report", "cal"])
    assert [one.hint for one in caught.value.diagnostics] == ["did you mean 'align'?", "did you mean 'call'?"]


def test_a_path_is_found_through_a_link_to_the_work_folder_and_as_the_author_wrote_it(tmp_path):
    (tmp_path / "real" / "out").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    absolute = f"{tmp_path}/real/abs.txt"
    made = build("flow", [draft("a", "", "out/x.txt"), draft("b", "", absolute)])
    for workdir in ("real", "link"):
        for named in ("real", "link"):
            targets = [f"{tmp_path}/{named}/out/x.txt"]
            assert select(made, targets, workdir=f"{tmp_path}/{workdir}") == {"a"}
        assert select(made, [absolute], workdir=f"{tmp_path}/{workdir}") == {"b"}
    with pytest.raises(OptionError):
        select(made, [f"{tmp_path}/elsewhere/out/x.txt"], workdir=f"{tmp_path}/link")

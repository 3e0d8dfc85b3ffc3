"""Execution groups in the plan: order, levels and circles, with no needs and no edge for each pair."""

from __future__ import annotations

import pytest

from treadle.base.errors import CycleError
from treadle.plan.build import build
from treadle.plan.findings import Findings
from treadle.plan.nodes import numbered
from treadle.plan.sequence import with_barriers
from treadle.plan.show import digest
from treadle.plan.task import Draft, ExecutionGroup, Policy


def draft(rule: str, n: int = 0, *inputs: str, **more: object) -> Draft:
    return Draft(
        rule=rule,
        wildcards=(("n", str(n)),),
        outputs=(f"{rule}{n}",),
        inputs=inputs,
        **more,  # type: ignore[arg-type]
    )


def sequence(*rules: str) -> tuple[ExecutionGroup, ...]:
    return (ExecutionGroup("line", rules),)


def test_tasks_of_a_sequence_stand_one_rule_after_the_other_and_need_nothing_for_it():
    drafts = [draft(rule, n) for rule in "abc" for n in (1, 2)]
    plan = build("w", drafts, sequences=sequence("c", "a"))
    assert plan.groups == (("b/n=1", "b/n=2", "c/n=1", "c/n=2"), ("a/n=1", "a/n=2"))
    assert plan.order == ("b/n=1", "b/n=2", "c/n=1", "c/n=2", "a/n=1", "a/n=2")
    assert not any(task.needs or task.ordered for task in plan.tasks.values())
    assert digest(plan) != digest(build("w", drafts[:-1]))


def test_a_priority_does_not_jump_over_a_sequence():
    drafts = [draft("a", policy=Policy(priority=9)), draft("b")]
    assert build("w", drafts).order == ("a/n=0", "b/n=0")
    assert build("w", drafts, sequences=sequence("b", "a")).order == ("b/n=0", "a/n=0")


def test_a_rule_without_tasks_in_the_middle_is_passed_over():
    plan = build("w", [draft("a"), draft("c")], sequences=sequence("c", "b", "a"), rules=["b"])
    assert plan.groups == (("c/n=0",), ("a/n=0",))
    first = build("w", [draft("a"), draft("c")], sequences=sequence("b", "a"), rules=["b"])
    assert first.groups == (("a/n=0", "c/n=0"),)


def test_a_sequence_against_the_files_is_a_circle_that_says_why():
    drafts = [draft("a"), draft("b", 0, "a0")]
    with pytest.raises(CycleError) as caught:
        build("w", drafts, sequences=sequence("b", "a"))
    (found,) = caught.value.diagnostics
    assert found.message == "tasks need each other in a circle: a/n=0 -> b/n=0 -> a/n=0"
    assert "b/n=0 reads a0, which a/n=0 makes" in found.hint
    assert "a/n=0 comes after the rule b in the execution group line" in found.hint


def test_a_sequence_costs_one_edge_for_each_task():
    drafts = [draft(rule, n) for rule in "abc" for n in range(100)]
    nodes = numbered(drafts, Findings())
    needs = with_barriers(nodes, [()] * 300, sequence("a", "b", "c"))
    assert len(needs) == 302
    assert sum(map(len, needs)) == 200 + 200 + 1

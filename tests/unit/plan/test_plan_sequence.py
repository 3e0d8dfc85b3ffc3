"""Execution groups in the plan: order, levels and circles, with no needs and no edge for each pair."""

from __future__ import annotations

import pytest

from treadle.base.errors import CycleError
from treadle.plan.build import build
from treadle.plan.findings import Findings
from treadle.plan.nodes import numbered
from treadle.plan.sequence import WORTH_SHARING, behind_barriers, with_barriers
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


def test_many_needs_that_many_tasks_share_cost_one_edge_for_each_task():
    shared = tuple(range(100))
    needs = [*[()] * 100, *[shared] * 100, (100,), tuple(range(100))]
    found = behind_barriers(needs)
    assert found == [*[()] * 100, *[(202,)] * 100, (100,), shared, shared]
    few = [*[()] * 100, *[tuple(range(WORTH_SHARING))] * 100]
    assert behind_barriers(few) is few


def test_tasks_after_all_of_a_rule_stand_where_they_would_stand_with_needs_of_their_own():
    """Each `b` needs all of `a`: by its name alone, or by reading one of them, too."""
    names = [(rule, n) for rule in "ab" for n in range(WORTH_SHARING + 2)]

    def planned(*, reading: bool):
        inputs = {("b", n): (f"a{n}",) if reading else () for _, n in names}
        drafts = [
            draft(
                rule,
                n,
                *inputs.get((rule, n), ()),
                depends_on=("a",) if rule == "b" else (),
                policy=Policy(priority=n % 3),
            )
            for rule, n in names
        ]
        return build("w", [*drafts, draft("c", 0, "b3"), draft("c", 1, "a1", depends_on=("b",))])

    shared, apart = planned(reading=False), planned(reading=True)
    assert (shared.order, shared.groups) == (apart.order, apart.groups)
    assert {id: task.needs for id, task in shared.tasks.items()} == {
        id: task.needs for id, task in apart.tasks.items()
    }
    assert shared.tasks["b/n=0"].needs is shared.tasks["b/n=1"].needs
    assert shared.tasks["b/n=0"].ordered is shared.tasks["b/n=1"].ordered


def test_a_circle_through_many_shared_needs_is_drawn_with_its_tasks_alone():
    many = range(WORTH_SHARING + 2)
    drafts = [
        *(draft("a", n, depends_on=("b",)) for n in many),
        *(draft("b", n, depends_on=("a",)) for n in many),
    ]
    with pytest.raises(CycleError) as caught:
        build("w", drafts)
    assert "a/n=0 -> b/n=0 -> a/n=0" in caught.value.diagnostics[0].message

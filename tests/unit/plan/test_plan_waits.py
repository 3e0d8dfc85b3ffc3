"""Needs that only order: after checkpoint tasks that found a task's values, or may add to what it reads."""

from __future__ import annotations

from treadle.plan.build import build
from treadle.plan.task import Draft


def draft(rule: str, *, reads=(), makes=(), born=(), awaits=(), turn=0, manifest="") -> Draft:
    return Draft(
        rule=rule,
        inputs=tuple(reads),
        outputs=tuple(makes) or (f"{rule}.txt",),
        born=tuple(born),
        awaits=tuple(awaits),
        turn=turn,
        manifest=manifest,
    )


def tasks(*drafts: Draft):
    return build("flow", drafts).tasks


def test_a_task_needs_the_checkpoint_that_found_it_for_its_order_alone():
    found = tasks(draft("find"), draft("make", born=["find"]))["make"]
    assert found.needs == ("find",)
    assert found.born == {"find"}
    assert found.awaits == ()


def test_a_task_that_reads_what_its_checkpoint_made_needs_it_for_that():
    found = tasks(draft("find"), draft("make", reads=["find.txt"], born=["find"]))["make"]
    assert found.needs == ("find",)
    assert found.born == frozenset()


def test_a_task_awaits_a_checkpoint_unless_that_builds_on_it():
    found = tasks(
        draft("base", awaits=["find"]),
        draft("find", reads=["base.txt"]),
        draft("all", awaits=["find"]),
    )
    assert found["base"].awaits == ()
    assert found["base"].needs == ()
    assert found["all"].awaits == ("find",)
    assert found["all"].needs == ("find",)


def test_what_lies_between_counts_even_where_it_only_awaits():
    found = tasks(
        draft("base", awaits=["first", "second"]),
        draft("first", reads=["base.txt"]),
        draft("second", born=["first"], awaits=["first"], turn=1),
    )
    assert found["second"].awaits == ("first",)
    assert found["base"].awaits == ()


def test_of_two_checkpoints_that_would_wait_for_each_other_the_lower_turn_goes_first():
    def both(one: int, other: int):
        return tasks(
            draft("a", awaits=["y"]),
            draft("x", reads=["a.txt"], turn=one),
            draft("b", awaits=["x"]),
            draft("y", reads=["b.txt"], turn=other),
        )

    found = both(1, 2)
    assert (found["a"].awaits, found["b"].awaits) == ((), ("x",))
    found = both(2, 1)
    assert (found["a"].awaits, found["b"].awaits) == (("y",), ())


def test_a_checkpoint_that_is_not_in_the_plan_is_not_waited_for():
    found = tasks(draft("all", awaits=["gone"], born=["gone"]))["all"]
    assert (found.needs, found.awaits, found.born) == ((), (), frozenset())

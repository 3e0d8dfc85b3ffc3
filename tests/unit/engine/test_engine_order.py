"""The state machine: which ready task goes first, and what of the machine it takes."""

from __future__ import annotations

import pytest
from machine_drive import Drive, launches, task
from msgspec.structs import replace

from treadle.engine.budget import Budget
from treadle.engine.news import Launch
from treadle.engine.node import Node, link, rank
from treadle.plan.sequence import WORTH_SHARING
from treadle.plan.task import Policy, Resources
from treadle.records.event import End, EndReason
from treadle.testing import plans


def test_ready_tasks_go_by_priority_then_critical_path_then_id() -> None:
    drive = Drive(
        task("c"),
        task("b"),
        task("long"),
        task("urgent", policy=Policy(priority=5)),
        task("end", "long"),
        budget=Budget(threads=1),
    )
    for name in ("urgent", "long", "b", "c", "end"):
        drive.end(name)
    assert drive.launched() == ["urgent", "long", "b", "c", "end"]


def test_threads_are_never_over_the_budget() -> None:
    drive = Drive(*(task(name, resources=Resources(threads=2)) for name in "abc"), budget=Budget(threads=4))
    assert drive.launched() == ["a", "b"]
    assert launches(drive.end("a")) == ["c"]


def test_a_large_task_is_not_starved_by_small_ones() -> None:
    small = [task(f"small{at}", policy=Policy(priority=1)) for at in range(2)]
    later = [task(f"z{at}") for at in range(4)]
    large = task("large", resources=Resources(threads=4), policy=Policy(priority=1))
    drive = Drive(*small, large, *later, budget=Budget(threads=4))
    assert drive.launched() == ["large"], "the first by rank fits"
    drive.end("large")
    drive = Drive(task("first", policy=Policy(priority=2)), large, *later, budget=Budget(threads=4))
    assert drive.launched() == ["first"], "what the large one lacks, nobody else may take"
    assert launches(drive.end("first")) == ["large"]
    assert launches(drive.end("large")) == ["z0", "z1", "z2", "z3"]


def test_a_task_that_lacks_only_a_pool_lets_others_pass() -> None:
    licence = Resources(groups=(("licence", 1),))
    drive = Drive(
        task("a", resources=licence),
        task("b", resources=licence),
        task("c"),
        budget=Budget(threads=3, pools=(("licence", 1),)),
    )
    assert drive.launched() == ["a", "c"]
    assert launches(drive.end("a")) == ["b"]


def test_what_the_first_in_line_needs_is_held_for_it() -> None:
    licence = Resources(groups=(("licence", 1),))
    drive = Drive(
        task("a", resources=licence),
        task("b", resources=Resources(threads=2, groups=(("licence", 1),))),
        task("c"),
        budget=Budget(threads=3, pools=(("licence", 1),)),
    )
    assert drive.launched() == ["a"], "b waits for the licence and holds two threads"


def test_memory_is_counted() -> None:
    big = Resources(memory=6)
    drive = Drive(task("a", resources=big), task("b", resources=big), budget=Budget(threads=9, memory=10))
    assert drive.launched() == ["a"]
    assert launches(drive.end("a")) == ["b"]


def test_requests_beyond_the_machine_are_capped_with_one_warning_each() -> None:
    greedy = Resources(threads=64, memory=1000)
    drive = Drive(
        task("a", resources=greedy), task("b", resources=greedy), budget=Budget(threads=4, memory=100)
    )
    first = drive.commands[0]
    assert isinstance(first, Launch)
    assert (first.resources.threads, first.resources.memory) == (4, 100)
    assert drive.codes() == ["capped", "capped"]
    drive.end("a")
    drive.end("b")
    assert drive.exit_code == 0


def test_a_pool_that_is_too_small_does_not_hang() -> None:
    want = Resources(groups=(("licence", 3),))
    drive = Drive(task("a", resources=want), budget=Budget(threads=1, pools=(("licence", 2),)))
    assert drive.launched() == ["a"]


@pytest.mark.parametrize("fails", ["", "a04"])
def test_tasks_that_share_many_needs_run_as_those_that_have_their_own(fails: str) -> None:
    def driven(*, share: bool) -> Drive:
        first = [task(f"a{at:02}") for at in range(WORTH_SHARING + 2)]
        needs = tuple(one.id for one in first)
        after = [replace(task(f"b{at:02}"), needs=needs if share else (*needs,)) for at in range(5)]
        others = [task("c", "a03"), task("d", "b02"), task("e", "d")]
        drive = Drive(*first, *after, *others, budget=Budget(threads=3), keep_going=True)
        while running := drive.machine.held():
            drive.end(running[0], EndReason.APP if running[0] == fails else EndReason.OK)
        return drive

    shared, apart = driven(share=True), driven(share=False)
    assert shared.events == apart.events
    assert shared.launched() == apart.launched()
    assert (shared.settled()["e"] is End.BLOCKED) == bool(fails)


def test_what_many_need_has_one_list_of_them() -> None:
    first = [task(f"a{at:02}") for at in range(WORTH_SHARING + 2)]
    needs = tuple(one.id for one in first)
    nodes = {
        one.id: Node(one, plans.RUN)
        for one in (*first, task("c", "a03"), *(replace(task(f"b{at}"), needs=needs) for at in range(5)))
    }
    link(nodes, nodes.values())
    assert nodes["a00"].dependents is nodes["a01"].dependents
    assert [one.task.id for one in nodes["a03"].dependents] == ["c", "b0", "b1", "b2", "b3", "b4"]
    assert [nodes[f"b{at}"].missing for at in range(5)] == [len(first)] * 5
    rank(nodes)
    assert [nodes[task].depth for task in ("a00", "a03", "b0", "c")] == [1, 1, 0, 0]

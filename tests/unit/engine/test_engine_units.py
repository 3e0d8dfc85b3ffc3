"""Units: connected tasks of a group as one job, whose ends come in any order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.decide.reason import Answer, Upstream, Verdict
from treadle.engine.brakes import Settings
from treadle.engine.budget import Budget
from treadle.engine.news import (
    Cancel,
    Elapsed,
    Ended,
    Finish,
    InFlight,
    Launch,
    News,
    Opened,
    Order,
    Started,
    Wait,
)
from treadle.engine.node import Node, State, link
from treadle.engine.state import Machine
from treadle.engine.units import can_join, units_of
from treadle.plan.task import Policy, Resources, ScheduledTask
from treadle.records.event import AttemptEnded, End, EndReason, Event, Noticed, Outcome, TaskSettled
from treadle.testing import plans

ELSEWHERE = Budget(local_rules=frozenset())
G = Policy(group="g")
SKIPPED = EndReason.INTERRUPTED


def few(wanted) -> bool:
    return len(wanted) <= 3


def task(id: str, needs: str = "", policy: Policy = G) -> ScheduledTask:
    return plans.task(id, needs.split(), policy=policy)


class Drive:
    """A machine on a backend that takes units."""

    def __init__(
        self, *tasks: ScheduledTask, fits=lambda wanted: True, budget=ELSEWHERE, answers=None, **how
    ):
        self.machine = Machine(Settings(**{"keep_going": True, **how}), budget, None, fits)
        self.events: list[Event] = []
        self.commands: list[Order] = []
        self.launches: dict[str, Launch] = {}
        self.plan = plans.plan(tasks)
        self.tell(Opened(self.plan, plans.decision(self.plan, answers)))

    def tell(self, *news: News) -> list[str]:
        """Hand over news; the tasks that are launched by that."""
        turn = self.machine.handle(news, 1000.0)
        self.events += turn.events
        self.commands += turn.commands
        new = [one for one in turn.commands if isinstance(one, Launch)]
        self.launches.update((one.task.id, one) for one in new)
        for one in new:
            more = self.machine.handle(
                [Started(one.task.id, one.n, one.task.id, running=False, stays=True)], 1000.0
            )
            self.events += more.events
            self.commands += more.commands
        return [one.task.id for one in new]

    def end(self, task: str, reason: EndReason = EndReason.OK) -> list[str]:
        return self.tell(Ended(task, self.launches[task].n, Outcome(reason=reason)))

    def settled(self) -> dict[str, End]:
        found = [event for event in self.events if isinstance(event, TaskSettled)]
        assert len(found) == len({event.task for event in found}), "settled once"
        return {event.task: event.state for event in found}

    @property
    def over(self) -> bool:
        return any(isinstance(one, Finish) for one in self.commands)


CHAIN = (task("a"), task("b", "a"), task("c", "b"))


def test_connected_tasks_are_launched_together_in_their_order():
    drive = Drive(*CHAIN, task("d", "c", Policy()))
    assert list(drive.launches) == ["a", "b", "c"]
    assert {one.unit for one in drive.launches.values()} == {1}
    assert [one.after for one in drive.launches.values()] == [(), (1,), (2,)]


def test_without_a_backend_that_takes_units_each_goes_by_itself():
    assert list(Drive(*CHAIN, fits=None).launches) == ["a"]
    assert list(Drive(*CHAIN, budget=Budget(threads=4)).launches) == ["a"]


def test_a_unit_waits_for_all_that_it_needs_from_elsewhere():
    drive = Drive(task("x", policy=Policy()), task("y", policy=Policy()), task("a", "x"), task("b", "a y"))
    assert list(drive.launches) == ["x", "y"]
    assert drive.end("x") == []
    assert drive.end("y") == ["a", "b"]


def test_an_end_that_comes_before_those_of_its_needs_counts_after_them():
    drive = Drive(*CHAIN)
    drive.end("c")
    drive.end("b")
    assert drive.settled() == {}
    drive.end("a")
    assert list(drive.settled()) == ["a", "b", "c"]
    assert drive.over


def test_what_was_built_on_an_attempt_that_failed_is_made_again_after_it():
    drive = Drive(task("a", policy=Policy(group="g", retries=1)), task("b", "a"))
    drive.end("b")
    assert drive.end("a", EndReason.APP) == ["a"]
    assert {event.task for event in drive.events if isinstance(event, AttemptEnded)} == {"a", "b"}
    assert drive.end("a") == ["b"]
    drive.end("b")
    assert drive.settled() == {"a": End.SUCCEEDED, "b": End.SUCCEEDED}


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_behind_a_failure_all_are_blocked_whatever_the_order_of_the_news(order):
    drive = Drive(*CHAIN)
    for one in order:
        drive.end(one, EndReason.APP if one == "a" else SKIPPED)
    assert drive.settled() == {"a": End.FAILED, "b": End.BLOCKED, "c": End.BLOCKED}
    assert drive.over


def test_one_that_is_never_to_start_lets_the_others_of_its_unit_go():
    drive = Drive(task("x", policy=Policy()), task("a"), task("b", "a x"), task("c", "a"))
    assert list(drive.launches) == ["x"]
    assert drive.end("x", EndReason.APP) == ["a"]
    assert drive.end("a") == ["c"]
    drive.end("c")
    assert drive.settled()["b"] is End.BLOCKED
    assert drive.over


def test_what_may_be_cut_off_goes_by_itself():
    may = Answer(Verdict.WILL_RUN, (Upstream("a"),), may_cut_off=True)
    assert list(Drive(*CHAIN, answers={"b": may, "c": may}).launches) == ["a"]
    assert list(Drive(*CHAIN, answers={"b": may, "c": may}, cutoff=False).launches) == ["a", "b", "c"]


def test_a_required_failure_cancels_what_has_not_begun_in_the_same_job():
    drive = Drive(*CHAIN, keep_going=False)
    drive.end("a", EndReason.APP)
    assert Cancel(("b", "c"), False, True) in drive.commands
    drive.end("c", EndReason.CANCELLED)
    drive.end("b", EndReason.CANCELLED)
    assert drive.settled() == {"a": End.FAILED, "b": End.CANCELLED, "c": End.CANCELLED}
    assert drive.over


def test_a_group_is_divided_where_a_path_comes_back_or_a_job_is_too_much():
    drive = Drive(task("a"), task("x", "a", Policy()), task("b", "a x"), task("c", "b"))
    assert list(drive.launches) == ["a"]
    assert drive.end("a") == ["x"]
    assert drive.end("x") == ["b", "c"]
    long = Drive(*CHAIN, task("d", "c"), fits=few)
    assert list(long.launches) == ["a", "b", "c"]
    noticed = [event for one in (drive, long) for event in one.events if isinstance(event, Noticed)]
    assert [(one.code, one.values["why"]) for one in noticed] == [
        ("group_divided", "path"),
        ("group_divided", "long"),
    ]


def test_one_that_comes_late_into_a_group_does_not_divide_it():
    chain = (task("s"), task("i", "s", Policy()), task("a"), task("b", "a i"))
    drive = Drive(*chain)
    assert list(drive.launches) == ["s"]
    drive.end("s")
    assert drive.end("i") == ["a", "b"]


graphs = st.lists(
    st.tuples(st.sets(st.integers(1, 4), max_size=3), st.sampled_from(["", "g", "h"])),
    min_size=1,
    max_size=12,
)


def grown(graph, retries: int = 0) -> list[ScheduledTask]:
    """Tasks of a random graph: each tells how far back its needs are, and its group."""
    tasks = []
    for at, (back, group) in enumerate(graph):
        needs = [f"t{at - far:02}" for far in back if at - far >= 0]
        tasks.append(plans.task(f"t{at:02}", needs, policy=Policy(group=group, retries=retries)))
    return tasks


@settings(max_examples=150, deadline=None)
@given(graphs)
def test_no_unit_waits_for_itself(graph):
    tasks = grown(graph)
    plan = plans.plan(tasks)
    answers = plans.decision(plan).answers
    nodes = {one.id: Node(one, answers[one.id]) for one in tasks}
    link(nodes, nodes.values())
    units, _ = units_of(nodes, lambda node: can_join(node, cutoff=True), few)
    of = {node.task.id: f"unit {at}" for at, unit in enumerate(units) for node in unit.members}
    needs: dict[str, set[str]] = {}
    for one in tasks:
        own = of.get(one.id, one.id)
        needs.setdefault(own, set()).update(
            of.get(need, need) for need in one.needs if of.get(need, need) != own
        )
    while free := [own for own, some in needs.items() if not some]:
        for own in free:
            del needs[own]
        for some in needs.values():
            some.difference_update(free)
    assert not needs


@settings(max_examples=150, deadline=None)
@given(graphs, st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)), st.randoms(use_true_random=False))
def test_every_task_settles_as_without_units_whatever_the_order_of_news(
    graph, bad: set[int], flaky: set[int], chance: random.Random
):
    tasks = grown(graph, retries=1)
    fails = {f"t{at:02}" for at in bad}
    once = {f"t{at:02}" for at in flaky}
    drive = Drive(*tasks, fits=few)
    world: dict[int, EndReason] = {}
    held: dict[str, Launch] = {}
    seen = 0
    while not drive.over:
        for one in drive.commands[seen:]:
            if isinstance(one, Launch):
                held[one.task.id] = one
                good = all(world[n] is EndReason.OK for n in one.after)
                failed = one.task.id in fails or (one.task.id in once and one.attempt == 1)
                world[one.n] = SKIPPED if not good else EndReason.APP if failed else EndReason.OK
        seen = len(drive.commands)
        waits = [one.task for one in drive.commands if isinstance(one, Wait) and one.task]
        if held:
            name = chance.choice(sorted(held))
            one = held.pop(name)
            drive.tell(Ended(name, one.n, Outcome(reason=world[one.n])))
        else:
            assert waits, drive.machine.held()
            drive.tell(*map(Elapsed, waits))
    failed_above: set[str] = set()
    for one in tasks:
        if one.id in fails or not failed_above.isdisjoint(one.needs):
            failed_above.add(one.id)
    ends = drive.settled()
    assert {name for name, end in ends.items() if end is not End.SUCCEEDED} == failed_above
    assert len(ends) == len(tasks)


def test_jobs_of_an_earlier_run_settle_in_the_order_of_their_needs():
    machine = Machine(Settings(), ELSEWHERE, None, lambda wanted: True)
    plan = plans.plan(CHAIN[:2])
    flying = {"a": Answer(Verdict.IN_FLIGHT), "b": Answer(Verdict.IN_FLIGHT)}
    adopted = {"a": InFlight(1, 1, "j"), "b": InFlight(1, 2, "j2")}
    machine.handle([Opened(plan, plans.decision(plan, flying), adopted=adopted)], 0.0)
    turn = machine.handle([Ended("b", 2, Outcome())], 1.0)
    assert [event for event in turn.events if isinstance(event, TaskSettled)] == []
    turn = machine.handle([Ended("a", 1, Outcome())], 2.0)
    assert [event.task for event in turn.events if isinstance(event, TaskSettled)] == ["a", "b"]
    assert machine.state("b") is not State.RUNNING
    assert Resources() == plan.tasks["a"].resources


def test_a_long_chain_is_divided_without_looking_at_all_of_it_for_each_part():
    looked = 0

    def hundred(wanted) -> bool:
        nonlocal looked
        looked += len(wanted)
        return len(wanted) <= 100

    chain = [task(f"t{at:05}", f"t{at - 1:05}" if at else "") for at in range(3000)]
    drive = Drive(*chain, fits=hundred)
    assert len(drive.launches) == 100
    assert looked < 20 * 3000

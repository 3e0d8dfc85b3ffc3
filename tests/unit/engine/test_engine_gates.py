"""Execution groups and ceilings in the machine: who waits for whom, and what may be under way at a time."""

from __future__ import annotations

from msgspec.structs import replace

from treadle.decide.reason import Answer, OutputNeeded, Upstream, Verdict
from treadle.engine.budget import Budget
from treadle.engine.news import Ended, Examine, Examined, Finish, Grew, Launch, News, Opened, Order, Started
from treadle.engine.state import Machine, Settings
from treadle.plan.task import Ceilings, Command, ExecutionGroup, Policy, Resources, ScheduledTask
from treadle.records.event import End, EndReason, Outcome
from treadle.testing import plans

FAILED = Outcome(reason=EndReason.APP, exit_code=1)
ROOM = Budget(threads=100)
OK = Outcome(reason=EndReason.OK)


class Drive:
    """A machine that is told how attempts end."""

    def __init__(
        self,
        *tasks: ScheduledTask,
        line: tuple[str, ...] = (),
        budget: Budget = ROOM,
        answers: dict[str, Answer] | None = None,
        **settings: object,
    ) -> None:
        self.machine = Machine(Settings(**settings), budget)  # type: ignore[arg-type]
        plan = replace(plans.plan(tasks), sequences=(ExecutionGroup("line", line),) if line else ())
        self.n: dict[str, int] = {}
        self.launched = self.tell(Opened(plan, plans.decision(plan, answers)))

    def tell(self, *news: News) -> list[str]:
        """The tasks that are launched after these news."""
        self.orders: list[Order] = self.machine.handle(news, 1000.0).commands
        found = [one for one in self.orders if isinstance(one, Launch)]
        for one in found:
            self.n[one.task.id] = one.n
            self.machine.handle([Started(one.task.id, one.n, f"j{one.n}", 1000, True)], 1000.0)
        return [one.task.id for one in found]

    def end(self, task: str, outcome: Outcome = OK) -> list[str]:
        return self.tell(Ended(task, self.n[task], outcome))


def task(rule: str, n: int = 1, *needs: str, **more: object) -> ScheduledTask:
    command = Command(text="true")
    return ScheduledTask(id=f"{rule}{n}", rule=rule, command=command, needs=needs, **more)  # type: ignore[arg-type]


def test_a_rule_waits_until_all_tasks_of_the_one_before_have_ended():
    drive = Drive(task("a"), task("a", 2), task("b"), task("b", 2), task("c"), line=("a", "b"))
    assert drive.launched == ["a1", "a2", "c1"]
    assert drive.end("a1") == []
    assert drive.end("a2") == ["b1", "b2"]


def test_a_failure_ends_the_wait_as_well():
    drive = Drive(task("a"), task("b"), line=("a", "b"), keep_going=True)
    assert drive.end("a1", FAILED) == ["b1"]
    assert drive.machine.state("b1") is not End.BLOCKED


def test_a_retry_is_waited_for():
    drive = Drive(task("a", policy=Policy(retries=1)), task("b"), line=("a", "b"))
    assert drive.end("a1", FAILED) == ["a1"]
    assert drive.end("a1") == ["b1"]


def test_what_is_blocked_is_not_waited_for():
    drive = Drive(task("x"), task("a", 1, "x1"), task("b"), line=("a", "b"), keep_going=True)
    assert drive.launched == ["x1"]
    assert drive.end("x1", FAILED) == ["b1"]


def test_a_rule_with_nothing_to_do_is_passed_over():
    up_to_date = {"b1": Answer(Verdict.UP_TO_DATE)}
    drive = Drive(task("a"), task("b"), task("c"), line=("a", "b", "c"), answers=up_to_date)
    assert drive.launched == ["a1"]
    assert drive.end("a1") == ["c1"]


def test_a_task_that_is_cut_off_counts_as_ended():
    cut = {"a1": Answer(Verdict.WILL_RUN, (Upstream("x1"),), may_cut_off=True)}
    drive = Drive(task("x"), task("a", 1, "x1"), task("b"), line=("a", "b"), answers=cut)
    assert drive.end("x1") == []
    (asked,) = [one for one in drive.orders if isinstance(one, Examine)]
    assert drive.tell(Examined(asked.task.id, asked.round, ())) == ["b1"]


def test_a_rule_of_two_groups_waits_for_both():
    machine = Drive(task("a"), task("b"), task("c"), line=("a", "c"))
    assert machine.launched == ["a1", "b1"]
    plan = replace(
        plans.plan([task("a"), task("b"), task("c")]),
        sequences=(ExecutionGroup("one", ("a", "c")), ExecutionGroup("two", ("b", "c"))),
    )
    drive = Drive(task("z"))
    drive.machine = Machine(Settings(), Budget(threads=9))
    assert drive.tell(Opened(plan, plans.decision(plan))) == ["a1", "b1"]
    assert drive.end("a1") == []
    assert drive.end("b1") == ["c1"]
    drive.end("c1")
    assert any(isinstance(one, Finish) for one in drive.orders)


def test_no_more_attempts_are_under_way_than_the_ceiling_says():
    budget = Budget(threads=None, ceilings=Ceilings(jobs=2), local_rules=frozenset())
    drive = Drive(*(task("a", n) for n in range(1, 5)), budget=budget)
    assert drive.launched == ["a1", "a2"]
    assert drive.end("a1") == ["a3"]


def test_threads_and_memory_count_here_and_elsewhere_together():
    budget = Budget(threads=100, ceilings=Ceilings(threads=4, memory=10), local_rules=frozenset({"here"}))
    drive = Drive(
        task("here", 1, resources=Resources(threads=3)),
        task("there", 1, resources=Resources(threads=2)),
        task("there", 2, resources=Resources(threads=1, memory=10)),
        task("there", 3, resources=Resources(threads=0, memory=1)),
        budget=budget,
    )
    assert drive.launched == ["here1"]
    assert drive.end("here1") == ["there1", "there2"]
    assert drive.end("there1") == []
    assert drive.end("there2") == ["there3"]


def test_a_request_that_grew_beyond_a_ceiling_takes_all_of_it():
    budget = Budget(ceilings=Ceilings(threads=4, memory=10, jobs=3), pools=(("db", 2),))
    _, demand = budget.weigh(task("a"), Resources(threads=9, memory=99, groups=(("db", 1),)))
    assert demand == (9, 99, 0, 1, 4, 10, 1)


def test_a_task_that_is_woken_stands_in_line_again():
    buried = {"b1": Answer(Verdict.WILL_RUN, (OutputNeeded("x"),), may_cut_off=True)}
    drive = Drive(task("a"), task("b"), task("c", 1, "b1"), line=("a", "b", "c"), answers=buried)
    (asked,) = [one for one in drive.orders if isinstance(one, Examine)]
    assert drive.launched == ["a1"]
    assert drive.tell(Examined(asked.task.id, asked.round, ())) == []
    assert drive.end("a1") == ["b1"]
    assert drive.end("b1") == ["c1"]


def test_work_that_is_discovered_stands_in_the_same_lines():
    first = [task("a"), task("b"), task("c")]
    drive = Drive(*first, line=("a", "b", "c"))
    assert drive.end("a1") == ["b1"]
    grown = replace(
        plans.plan([*first, task("b", 2), task("a", 2)]), sequences=(ExecutionGroup("line", ("a", "b", "c")),)
    )
    done = {"a1": Answer(Verdict.UP_TO_DATE), "b1": Answer(Verdict.WILL_RUN)}
    assert drive.tell(Grew(grown, plans.decision(grown, done))) == ["a2"]
    assert drive.end("b1") == []
    assert drive.end("a2") == ["b2"]
    assert drive.end("b2") == ["c1"]

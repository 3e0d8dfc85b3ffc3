"""Gathers that may lack some of what they gather, in the machine."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from msgspec.structs import replace

from treadle.decide.reason import Answer, Upstream, Verdict
from treadle.engine.budget import Budget
from treadle.engine.news import Ended, Examine, Examined, Finish, Grew, Launch, News, Opened, Order, Started
from treadle.engine.state import Machine, Settings
from treadle.plan.task import Policy, ScheduledTask
from treadle.records.event import End, EndReason, Event, Outcome, TaskSettled
from treadle.testing import plans

ONE = Policy(allow_missing=1)
CUT = Answer(Verdict.WILL_RUN, (Upstream(task="a"),), may_cut_off=True)


def fewer(task: ScheduledTask, lost: Collection[str]) -> ScheduledTask | None:
    """All inputs but those named `fixed` may lack."""
    if any("fixed" in path for path in lost):
        return None
    return replace(task, inputs=tuple(path for path in task.inputs if path not in lost))


class Drive:
    """A machine with what came out of it, told of ends by task."""

    def __init__(
        self, *tasks: ScheduledTask, answers: dict[str, Answer] | None = None, **settings: object
    ) -> None:
        self.machine = Machine(Settings(**settings), Budget(threads=100), fewer)  # type: ignore[arg-type]
        self.commands: list[Order] = []
        self.events: list[Event] = []
        self.plan = plans.plan(tasks)
        self.tell(Opened(self.plan, plans.decision(self.plan, answers)))

    def tell(self, *news: News) -> None:
        turn = self.machine.handle(news, 1000.0)
        self.commands += turn.commands
        self.events += turn.events

    def launch(self, task: str) -> Launch | None:
        found = [one for one in self.commands if isinstance(one, Launch) and one.task.id == task]
        return found[-1] if found else None

    def end(self, task: str, reason: EndReason = EndReason.OK) -> None:
        launch = self.launch(task)
        assert launch is not None
        self.tell(Started(task, launch.n, f"job-{task}"), Ended(task, launch.n, Outcome(reason=reason)))

    def ends(self) -> dict[str, End]:
        return {one.task: one.state for one in self.events if isinstance(one, TaskSettled)}

    @property
    def exit_code(self) -> int | None:
        last = self.commands[-1]
        return last.exit_code if isinstance(last, Finish) else None


def source(name: str, needs: str = "") -> ScheduledTask:
    return plans.task(name, needs.split(), outputs=[f"{name}.txt"])


def gather(needs: str, name: str = "all", policy: Policy = ONE, **more: object) -> ScheduledTask:
    names = needs.split()
    inputs = [f"{one}.txt" for one in names]
    return plans.task(name, names, inputs=inputs, outputs=[f"{name}.txt"], policy=policy, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ["abc", "cba", "bac"])
def test_it_goes_ahead_without_what_failed_whatever_ends_first(order: str) -> None:
    drive = Drive(source("a"), source("b"), source("c"), gather("a b c"))
    for name in order:
        drive.end(name, EndReason.APP if name == "b" else EndReason.OK)
    launch = drive.launch("all")
    assert launch is not None
    assert launch.whole == drive.plan.tasks["all"]
    assert launch.task.inputs == ("a.txt", "c.txt")
    assert launch.lost == ("b.txt",)
    drive.end("all")
    assert drive.ends()["all"] is End.SUCCEEDED
    assert drive.exit_code == 1


def test_one_more_than_is_allowed_blocks_it_and_what_needs_it() -> None:
    drive = Drive(
        source("a"), source("b"), source("c"), gather("a b c"), source("last", "all"), keep_going=True
    )
    for name in "ab":
        drive.end(name, EndReason.APP)
    assert drive.ends() == {"a": End.FAILED, "b": End.FAILED, "all": End.BLOCKED, "last": End.BLOCKED}
    drive.end("c")
    assert drive.exit_code == 1


def test_a_failure_that_is_borne_lets_the_run_go_on_and_one_more_does_not() -> None:
    drive = Drive(source("a"), source("b"), source("c"), source("d", "c"), gather("a b d"))
    drive.end("a", EndReason.APP)
    drive.end("c")
    assert drive.launch("d") is not None
    drive = Drive(source("a"), source("b"), source("c"), source("d", "c"), gather("a b d"))
    drive.end("a", EndReason.APP)
    drive.end("b", EndReason.APP)
    drive.end("c")
    assert drive.launch("d") is None


def test_what_is_blocked_counts_as_failed() -> None:
    drive = Drive(source("a"), source("b", "a"), source("c"), gather("b c"))
    drive.end("a", EndReason.APP)
    drive.end("c")
    launch = drive.launch("all")
    assert launch is not None
    assert launch.lost == ("b.txt",)


def test_gathers_of_gathers_each_bear_their_own() -> None:
    drive = Drive(source("a"), source("fixed"), source("c"), gather("a fixed", "one"), gather("one c", "two"))
    drive.end("fixed", EndReason.APP)
    drive.end("a")
    drive.end("c")
    assert drive.ends()["one"] is End.BLOCKED
    launch = drive.launch("two")
    assert launch is not None
    assert launch.lost == ("one.txt",)


def test_all_of_its_upstream_cannot_be_missing() -> None:
    drive = Drive(source("a"), gather("a", policy=Policy(allow_missing_part=1.0)))
    drive.end("a", EndReason.APP)
    assert drive.ends()["all"] is End.BLOCKED


def test_what_it_only_comes_after_may_not_fail() -> None:
    drive = Drive(source("a"), source("b"), source("x"), gather("a b x", ordered=["x"]))
    drive.end("x", EndReason.APP)
    assert drive.ends()["all"] is End.BLOCKED


def test_whether_it_is_cut_off_is_asked_with_what_it_lacks() -> None:
    drive = Drive(source("a"), source("b"), gather("a b"), answers={"all": CUT})
    drive.end("a", EndReason.APP)
    drive.end("b")
    asked = [one for one in drive.commands if isinstance(one, Examine)]
    assert [one.lost for one in asked] == [("a.txt",)]
    drive.tell(Examined("all", asked[0].round))
    assert drive.ends()["all"] is End.UNCHANGED


def test_a_plan_that_grows_forgets_no_failure() -> None:
    tasks = [source("a"), source("b"), source("c"), gather("a b c")]
    drive = Drive(*tasks)
    drive.end("a", EndReason.APP)
    drive.end("b")
    grown = plans.plan([*tasks, source("new")])
    drive.tell(Grew(grown, plans.decision(grown)))
    drive.end("c")
    launch = drive.launch("all")
    assert launch is not None
    assert launch.lost == ("a.txt",)
    launches = [one for one in drive.commands if isinstance(one, Launch) and one.task.id == "all"]
    assert len(launches) == 1


def test_a_part_is_counted_over_all_upstream() -> None:
    policy = Policy(allow_missing_part=0.1)
    assert [policy.bearable(number) for number in (0, 9, 10, 19, 20, 30, 1000)] == [0, 0, 1, 1, 2, 3, 100]
    assert Policy(allow_missing=2).bearable(3) == 2

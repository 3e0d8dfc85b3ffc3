"""The state machine: jobs of earlier runs, and a plan that grows while it runs."""

from __future__ import annotations

import pytest
from machine_drive import Drive, launches, task

from treadle.base.errors import PlanError
from treadle.decide.reason import Answer, Upstream, Verdict
from treadle.engine.budget import Budget
from treadle.engine.news import Ended, Examine, Grew, InFlight, Running, Vacated
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.event import End, EndReason, Outcome
from treadle.testing import plans

CUT = Answer(Verdict.WILL_RUN, (Upstream("up"),), may_cut_off=True)

UP_TO_DATE = Answer(Verdict.UP_TO_DATE)


def test_a_job_of_an_earlier_run_is_taken_over() -> None:
    answers = {"a": Answer(Verdict.IN_FLIGHT)}
    adopted = {"a": InFlight(2, 7, "job-old")}
    drive = Drive(task("a"), task("b", "a"), answers=answers, adopted=adopted)
    assert drive.commands == []
    drive.tell(Running("a", 7))
    assert launches(drive.tell(Ended("a", 7, Outcome()))) == ["b"]
    assert drive.n["b"] == 8


def grown(*tasks: ScheduledTask) -> ScheduledPlan:
    return plans.plan(tasks)


def test_a_larger_plan_enters_the_running_machine() -> None:
    drive = Drive(task("scan"), task("gather", "scan"), task("other"))
    drive.start("other")
    drive.end("scan")
    # the gather was launched already in this plan, so it keeps its place; new work joins
    plan = grown(task("scan"), task("gather", "scan"), task("other"), task("new", "scan"), task("end", "new"))
    assert launches(drive.tell(Grew(plan, plans.decision(plan)))) == ["new"]
    for name in ("gather", "new", "end"):
        drive.end(name)
    drive.end("other", start=False)
    assert drive.exit_code == 0
    assert drive.machine.counts[End.SUCCEEDED] == 5


def test_a_task_that_waits_may_get_more_to_wait_for() -> None:
    drive = Drive(task("scan"), task("gather", "scan"), budget=Budget(threads=1))
    drive.start("scan")
    plan = grown(task("scan"), task("new", "scan"), task("gather", "new scan"))
    drive.tell(Grew(plan, plans.decision(plan)))
    assert launches(drive.end("scan", start=False)) == ["new"]
    assert launches(drive.end("new")) == ["gather"]


def test_new_work_below_a_failure_is_blocked_as_it_enters() -> None:
    drive = Drive(task("a"), task("b"), keep_going=True)
    drive.end("a", EndReason.APP)
    plan = grown(task("a"), task("b"), task("c", "a"))
    drive.tell(Grew(plan, plans.decision(plan)))
    assert drive.settled()["c"] is End.BLOCKED
    drive.end("b")
    assert drive.exit_code == 1


def test_a_larger_plan_that_changes_a_started_task_is_refused() -> None:
    drive = Drive(task("a"), task("b", "a"))
    plan = grown(task("a", text="other"), task("b", "a"))
    with pytest.raises(PlanError, match="would change a, which has started"):
        drive.tell(Grew(plan, plans.decision(plan)))


def test_a_checkpoint_whose_job_is_done_takes_nothing_while_its_round_is_to_come() -> None:
    drive = Drive(task("find"), task("other"), budget=Budget(threads=1))
    drive.start("find")
    assert launches(drive.tell(Vacated("find", drive.n["find"]))) == ["other"]
    plan = grown(task("find"), task("other"), task("new", "find"))
    drive.tell(Ended("find", drive.n["find"], Outcome()), Grew(plan, plans.decision(plan), found=("find",)))
    assert launches(drive.end("other")) == ["new"]
    drive.end("new")
    assert drive.exit_code == 0


def test_a_plan_of_a_checkpoint_that_failed_after_all_does_not_count() -> None:
    drive = Drive(task("find"))
    drive.start("find")
    plan = grown(task("find"), task("new", "find"))
    failed = Ended("find", drive.n["find"], Outcome(reason=EndReason.APP))
    drive.tell(failed, Grew(plan, plans.decision(plan), found=("find",)))
    assert "new" not in drive.settled()
    assert drive.exit_code == 1


def test_a_task_that_is_the_same_in_a_larger_plan_keeps_its_answer() -> None:
    drive = Drive(task("a"), task("b", "a"), task("find"), answers={"b": CUT})
    drive.start("a")
    plan = grown(task("a"), task("b", "a"), task("find"), task("new", "find"))
    found = {"a": UP_TO_DATE, "b": UP_TO_DATE, "find": UP_TO_DATE}
    drive.start("find")
    ended = Ended("find", drive.n["find"], Outcome())
    drive.tell(ended, Grew(plan, plans.decision(plan, found), found=("find",)))
    (asked,) = [one for one in drive.end("a", start=False) if isinstance(one, Examine)]
    assert asked.task.id == "b", "it waits for what it waited for, whatever the new decision says of it"
    assert drive.machine.counts[End.UP_TO_DATE] == 0


def test_a_blocked_gather_may_become_another_one_and_stays_blocked() -> None:
    drive = Drive(task("a"), task("find"), task("all", "a find"), keep_going=True)
    drive.end("a", EndReason.APP)
    assert drive.settled()["all"] is End.BLOCKED
    plan = grown(task("a"), task("find"), task("new", "find"), task("all", "a new"))
    drive.start("find")
    drive.tell(Ended("find", drive.n["find"], Outcome()), Grew(plan, plans.decision(plan), found=("find",)))
    drive.end("new")
    assert drive.machine.counts[End.BLOCKED] == 1
    assert drive.exit_code == 1

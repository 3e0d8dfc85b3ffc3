"""The state machine: what a failure blocks, stops and cancels, and what it lets go on."""

from __future__ import annotations

from machine_drive import Drive, task

from treadle.engine.budget import Budget
from treadle.engine.news import Cancel, Finish, Running
from treadle.plan.task import Policy
from treadle.records.event import End, EndReason, TaskSettled


def test_everything_below_a_failure_is_blocked_with_its_cause() -> None:
    drive = Drive(task("a"), task("b", "a"), task("c", "b"), task("d", "b c"), task("e"), keep_going=True)
    drive.end("a", EndReason.APP)
    blocked = {e.task: e.cause for e in drive.events if isinstance(e, TaskSettled) and e.state == "blocked"}
    assert blocked == {"b": "a", "c": "a", "d": "a"} == drive.machine.blocked
    drive.end("e")
    assert drive.exit_code == 1


def test_after_a_required_failure_nothing_new_starts_and_what_runs_ends() -> None:
    drive = Drive(task("a"), task("b"), task("c"), task("d", "b"), budget=Budget(threads=2))
    drive.start("b")
    assert drive.end("a", EndReason.APP) == []
    assert drive.end("b", start=False) == [Finish(1)]
    assert drive.settled() == {"a": End.FAILED, "b": End.SUCCEEDED}
    assert drive.machine.counts[End.CANCELLED] == 2
    assert drive.machine.state("c") is End.CANCELLED


def test_after_a_required_failure_what_runs_is_not_tried_again() -> None:
    drive = Drive(task("a"), task("b", policy=Policy(retries=5)))
    drive.start("b")
    drive.end("a", EndReason.APP)
    drive.end("b", EndReason.APP, start=False)
    assert drive.settled() == {"a": End.FAILED, "b": End.FAILED}
    assert drive.exit_code == 1


def test_after_a_required_failure_a_task_in_its_pause_has_failed() -> None:
    drive = Drive(task("a"), task("b", policy=Policy(retries=5, retry_delay=60)), task("c", "b"))
    drive.end("b", EndReason.APP)
    drive.end("a", EndReason.APP)
    assert drive.settled() == {"a": End.FAILED, "b": End.FAILED, "c": End.BLOCKED}


def test_after_a_required_failure_jobs_still_pending_are_cancelled() -> None:
    drive = Drive(task("a"), task("b"), task("c"))
    drive.start("b", running=False)
    drive.start("c", running=False)
    drive.tell(Running("c", drive.n["c"]))
    assert drive.end("a", EndReason.APP) == [Cancel(("job-b",), waiting=True)]
    drive.end("b", EndReason.CANCELLED, start=False)
    drive.end("c", start=False)
    assert drive.settled() == {"a": End.FAILED, "b": End.CANCELLED, "c": End.SUCCEEDED}


def test_keep_going_lets_other_branches_go_on() -> None:
    drive = Drive(task("a"), task("b"), task("c", "b"), keep_going=True, budget=Budget(threads=1))
    drive.end("b")
    drive.end("a", EndReason.APP)
    drive.end("c")
    assert drive.settled() == {"a": End.FAILED, "b": End.SUCCEEDED, "c": End.SUCCEEDED}
    assert drive.exit_code == 1


def test_fail_fast_cancels_what_runs() -> None:
    drive = Drive(task("a"), task("b"), task("c"), budget=Budget(threads=2), fail_fast=True)
    drive.start("b")
    assert drive.end("a", EndReason.APP) == [Cancel(("job-b",))]
    drive.end("b", EndReason.CANCELLED, start=False)
    assert drive.settled() == {"a": End.FAILED, "b": End.CANCELLED}
    assert drive.exit_code == 1


def test_max_failures_stops_after_so_many() -> None:
    tasks = [task(name) for name in "abcd"]
    drive = Drive(*tasks, budget=Budget(threads=1), max_failures=2, keep_going=True)
    drive.end("a", EndReason.APP)
    drive.end("b", EndReason.APP)
    assert drive.launched() == ["a", "b"]
    assert drive.exit_code == 1


def test_a_failure_that_is_not_required_blocks_but_does_not_decide() -> None:
    drive = Drive(task("a", policy=Policy(required=False)), task("b", "a"), task("c"))
    drive.end("a", EndReason.APP)
    drive.end("c")
    assert drive.settled() == {"a": End.FAILED, "b": End.BLOCKED, "c": End.SUCCEEDED}
    assert drive.exit_code == 0

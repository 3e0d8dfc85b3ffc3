"""The state machine: the way of a task, from its launch to how it ended, and when it is tried again."""

from __future__ import annotations

import pytest
from machine_drive import Drive, launches, task

from treadle.decide.reason import Answer, Verdict
from treadle.engine.budget import Budget
from treadle.engine.news import Elapsed, Ended, Finish, Launch, Refused, Started, Wait
from treadle.engine.node import State
from treadle.engine.story import MachineError
from treadle.plan.task import Growth, Policy, Resources
from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    End,
    EndReason,
    Evidence,
    Outcome,
    PlanEntered,
    RunEnded,
    TaskSettled,
)

UP_TO_DATE = Answer(Verdict.UP_TO_DATE)

SKIPPED = Answer(Verdict.SKIPPED)


# The way of a task


def test_a_task_goes_from_launch_to_success_with_its_evidence() -> None:
    drive = Drive(task("a", outputs=["a.txt"]))
    assert drive.commands == [Launch(drive.plan.tasks["a"], 1, 1, Resources())]
    assert drive.machine.state("a") is State.SUBMITTED
    drive.tell(Started("a", 1, "77", 5))
    assert drive.machine.state("a") is State.RUNNING
    evidence = Evidence(identity="x")
    assert drive.tell(Ended("a", 1, Outcome(), evidence)) == [Finish(0)]
    assert drive.events[1] == AttemptStarted(time=1000.0, task="a", n=1, job="77", started=5)
    assert drive.events[2] == TaskSettled(
        time=1000.0, task="a", key="a.txt", state=End.SUCCEEDED, attempt=1, n=1,
        outcome=Outcome(), evidence=evidence,
    )  # fmt: skip
    assert drive.events[3] == RunEnded(time=1000.0, exit_code=0, counts={"succeeded": 1})


def test_a_dependent_starts_when_all_its_needs_ended_well() -> None:
    drive = Drive(task("a"), task("b"), task("c", "a b"))
    assert drive.launched() == ["a", "b"]
    assert drive.end("a") == []
    assert launches(drive.end("b")) == ["c"]


def test_up_to_date_and_skipped_tasks_leave_no_event_of_their_own() -> None:
    answers = {"a": UP_TO_DATE, "b": SKIPPED}
    drive = Drive(task("a"), task("b", "a"), task("c", "a b"), answers=answers)
    assert drive.launched() == ["c"]
    assert [type(event) for event in drive.events] == [PlanEntered]
    entered = drive.events[0]
    assert isinstance(entered, PlanEntered)
    assert (entered.tasks, entered.will_run, entered.up_to_date, entered.skipped) == (3, 1, 1, 1)


def test_a_run_with_nothing_to_do_ends_at_once() -> None:
    drive = Drive(task("a"), answers={"a": UP_TO_DATE})
    assert drive.commands == [Finish(0)]
    assert drive.machine.counts[End.UP_TO_DATE] == 1


def test_attempts_are_numbered_over_the_whole_run() -> None:
    drive = Drive(task("a", policy=Policy(retries=1)), task("b"))
    drive.end("a", EndReason.APP)
    assert drive.n == {"a": 3, "b": 2}


def test_news_of_an_attempt_that_is_not_held_is_a_bug_told_with_its_story() -> None:
    drive = Drive(task("a"), task("b"))
    drive.end("a")
    with pytest.raises(MachineError, match=r"(?s)impossible news of a.*it is succeeded.*Started.*Ended"):
        drive.tell(Ended("a", 1, Outcome()))


def test_news_of_an_earlier_attempt_is_a_bug() -> None:
    drive = Drive(task("a", policy=Policy(retries=1)))
    drive.end("a", EndReason.APP)
    with pytest.raises(MachineError):
        drive.tell(Ended("a", 1, Outcome()))


# Retries


def test_a_failure_is_one_after_the_last_retry() -> None:
    drive = Drive(task("a", policy=Policy(retries=1)))
    assert launches(drive.end("a", EndReason.APP)) == ["a"]
    assert [type(event) for event in drive.events[-1:]] == [AttemptEnded]
    drive.end("a", EndReason.APP)
    assert drive.settled() == {"a": End.FAILED}
    assert drive.exit_code == 1


def test_the_pause_before_a_retry_doubles() -> None:
    drive = Drive(task("a", policy=Policy(retries=3, retry_delay=400.0)))
    waits = []
    for _ in range(3):
        waits += [one.seconds for one in drive.end("a", EndReason.APP) if isinstance(one, Wait)]
        assert drive.machine.state("a") is State.WAITING
        assert launches(drive.tell(Elapsed("a"))) == ["a"]
    assert waits == [400.0, 600.0, 600.0]


def test_memory_grows_after_oom_only_and_is_capped() -> None:
    policy = Policy(retries=4, retry_memory=Growth(2.0), retry_time=Growth(1.0, 60))
    asked = Resources(memory=10, time_limit=100)
    drive = Drive(task("a", resources=asked, policy=policy), budget=Budget(threads=1, memory=30))
    for reason in (EndReason.APP, EndReason.OOM, EndReason.TIME, EndReason.OOM):
        drive.end("a", reason)
    got = [one.resources for one in drive.commands if isinstance(one, Launch)]
    assert [one.memory for one in got] == [10, 10, 20, 20, 30]
    assert [one.time_limit for one in got] == [100, 100, 100, 160, 160]


def test_losses_are_paid_from_their_own_budget() -> None:
    drive = Drive(task("a"))
    for _ in range(5):
        assert launches(drive.end("a", EndReason.NODE)) == ["a"]
    drive.end("a", EndReason.LOST)
    assert drive.settled() == {"a": End.FAILED}


@pytest.mark.parametrize("reason", [EndReason.NEVER_STARTED, EndReason.CANCELLED])
def test_what_cannot_start_and_what_others_cancelled_is_not_tried_again(reason: EndReason) -> None:
    drive = Drive(task("a", policy=Policy(retries=3)))
    drive.end("a", reason)
    assert drive.settled() == {"a": End.FAILED}


def test_a_refused_attempt_fails_its_task_in_the_words_of_the_backend() -> None:
    drive = Drive(task("a", policy=Policy(retries=3)), task("b"), keep_going=True)
    drive.tell(Refused("a", 1, "no such partition"))
    event = next(event for event in drive.events if isinstance(event, TaskSettled))
    assert event.outcome == Outcome(reason=EndReason.NEVER_STARTED, message="no such partition")
    drive.end("b")
    assert drive.exit_code == 1

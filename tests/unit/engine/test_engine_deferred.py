"""The machine with steps: attempts that wait until somebody else's lease is free."""

from __future__ import annotations

import pytest
from step_machine_drive import BAD, Drive, cancelled, started, step

from treadle.engine.budget import Budget
from treadle.engine.news import Ended, Freed, Interrupt, Interrupted, Launch
from treadle.engine.node import State
from treadle.engine.story import MachineError
from treadle.plan.task import Policy
from treadle.records.event import AttemptStarted, End, Noticed


def test_a_deferred_attempt_gives_its_slot_back_and_goes_on_as_the_attempt_it_was() -> None:
    drive = Drive(step("@a"), step("@b"), budget=Budget(slots=1))
    drive.start("@a")
    assert started(drive.defer("@a")) == ["@b"]
    assert drive.machine.state("@a") is State.WAITING
    assert started(drive.free("@a")) == []
    assert started(drive.end("@b")) == ["@a"]
    again = drive.commands[-1]
    assert isinstance(again, Launch)
    assert (again.attempt, again.n, again.again) == (1, 1, True)
    drive.start("@a")
    drive.end("@a")
    assert drive.machine.counts[End.SUCCEEDED] == 2
    assert [event.n for event in drive.events if isinstance(event, AttemptStarted)] == [1, 1]


def test_a_run_waits_for_what_is_deferred() -> None:
    drive = Drive(step("@a"), step("@b", ["@a"]))
    drive.start("@a")
    drive.defer("@a")
    assert not drive.machine.finished
    assert started(drive.free("@a")) == ["@a"]


def test_who_holds_a_lease_is_told_once() -> None:
    drive = Drive(step("@a"), step("@b"), step("@c"))
    for name, holder in (("@a", "them"), ("@b", "them"), ("@c", "others")):
        drive.start(name)
        drive.defer(name, holder)
    drive.free("@a")
    drive.start("@a")
    drive.defer("@a")
    told = [event for event in drive.events if isinstance(event, Noticed)]
    assert [(one.code, one.task, one.values) for one in told] == [
        ("lease_held", "@a", {"holder": "them", "path": "made/a"}),
        ("lease_held", "@c", {"holder": "others", "path": "made/c"}),
    ]


def test_a_deferral_spends_no_attempt_and_a_failure_after_it_does() -> None:
    drive = Drive(step("@a", policy=Policy(retries=1)))
    drive.start("@a")
    drive.defer("@a")
    drive.free("@a")
    assert drive.machine.attempt("@a") == 1
    drive.start("@a")
    again = [one for one in drive.end("@a", BAD) if isinstance(one, Launch)]
    assert [(one.attempt, one.n, one.again) for one in again] == [(2, 2, False)]


def test_a_watch_may_fail() -> None:
    drive = Drive(step("@a"), step("@b", ["@a"]))
    drive.start("@a")
    drive.defer("@a")
    drive.end("@a", BAD)
    assert drive.ends() == {"@a": End.FAILED, "@b": End.BLOCKED}
    assert drive.machine.finished


@pytest.mark.parametrize("how", [Interrupt.CANCEL, Interrupt.WAIT, Interrupt.DETACH])
def test_what_is_deferred_ends_with_an_interruption(how: Interrupt) -> None:
    drive = Drive(step("@a"), step("@b"))
    drive.start("@a")
    drive.defer("@a")
    commands = drive.tell(Interrupted(how))
    assert cancelled(commands)[0] == "job 1"
    assert drive.ends()["@a"] is End.CANCELLED
    assert drive.tell(Freed("@a", 1)) == []
    assert drive.tell(Ended("@a", 1, BAD)) == []


def test_one_that_is_freed_and_not_started_ends_with_an_interruption_too() -> None:
    drive = Drive(step("@a"), step("@b"), budget=Budget(slots=1))
    drive.start("@a")
    drive.defer("@a")
    drive.free("@a")
    drive.tell(Interrupted(Interrupt.WAIT))
    assert drive.ends() == {"@a": End.CANCELLED}
    drive.end("@b")
    assert drive.machine.finished


def test_a_deferral_that_comes_after_the_interruption_ends_the_attempt() -> None:
    drive = Drive(step("@a"))
    drive.start("@a")
    drive.tell(Interrupted())
    commands = drive.defer("@a")
    assert drive.ends() == {"@a": End.CANCELLED}
    assert drive.machine.finished
    assert cancelled(commands) == ["job 1"]


def test_a_failure_elsewhere_ends_the_waiting_for_others() -> None:
    drive = Drive(step("@a"), step("@b"))
    drive.start("@a", "@b")
    drive.defer("@a")
    drive.end("@b", BAD)
    assert drive.machine.finished
    assert drive.ends() == {"@a": End.CANCELLED, "@b": End.FAILED}


def test_freedom_for_one_that_is_not_deferred_is_a_bug() -> None:
    drive = Drive(step("@a"))
    drive.start("@a")
    with pytest.raises(MachineError, match="impossible news of @a"):
        drive.free("@a")

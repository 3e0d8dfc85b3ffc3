"""The state machine: what an interrupt, a full disk and a failing backend do to a run."""

from __future__ import annotations

from machine_drive import Drive, launches, task

from treadle.engine.budget import Budget
from treadle.engine.news import (
    BackendFailed,
    Cancel,
    DiskFine,
    DiskFull,
    Finish,
    Interrupt,
    Interrupted,
    Leave,
    Started,
    WatchDisk,
)
from treadle.engine.node import State
from treadle.records.event import End, EndReason


def test_an_interrupt_cancels_what_runs_and_starts_nothing() -> None:
    drive = Drive(task("a"), task("b"), task("c"), task("d", "a"), budget=Budget(threads=2))
    drive.start("a")
    drive.start("b")
    assert drive.tell(Interrupted()) == [Cancel(("job-a", "job-b"))]
    assert drive.codes() == ["interrupted"]
    assert drive.end("a", EndReason.CANCELLED, start=False) == []
    assert drive.end("b", EndReason.OK, start=False) == [Finish(130)]
    assert drive.settled() == {"a": End.CANCELLED, "b": End.SUCCEEDED}
    assert drive.machine.counts[End.CANCELLED] == 3


def test_a_second_interrupt_is_at_once() -> None:
    drive = Drive(task("a"))
    drive.start("a")
    drive.tell(Interrupted())
    assert drive.tell(Interrupted(exit_code=143)) == [Cancel(("job-a",), force=True)]
    drive.end("a", EndReason.CANCELLED, start=False)
    assert drive.exit_code == 143


def test_an_attempt_that_was_on_its_way_at_the_interrupt_is_cancelled_once_it_is_held() -> None:
    drive = Drive(task("a"))
    assert drive.tell(Interrupted()) == []
    assert drive.start("a") == [Cancel(("job-a",))]


def test_detaching_leaves_the_jobs_where_they_are() -> None:
    drive = Drive(task("a"), task("b", "a"))
    drive.tell(Started("a", drive.n["a"], "job-a", stays=True))
    assert drive.tell(Interrupted(Interrupt.DETACH, 143)) == [Finish(143)]
    assert drive.settled() == {}
    assert drive.machine.state("a") is State.RUNNING


def test_an_interrupt_may_wait_for_what_runs() -> None:
    drive = Drive(task("a"), task("b", "a"))
    drive.start("a")
    assert drive.tell(Interrupted(Interrupt.WAIT)) == []
    assert drive.end("a", start=False) == [Finish(130)]


def test_a_full_disk_burns_no_retries_and_starts_nothing_until_there_is_space() -> None:
    drive = Drive(task("a"), task("b", "a"))
    assert drive.end("a", EndReason.DISK) == [WatchDisk()]
    assert drive.machine.state("a") is State.READY
    assert launches(drive.tell(DiskFine())) == ["a"]
    assert launches(drive.end("a")) == ["b"]
    assert [code for code in drive.codes() if code.startswith("disk")] == ["disk_waiting", "disk_fine"]


def test_a_disk_that_stays_full_ends_the_run_with_3() -> None:
    drive = Drive(task("a"), task("b"), task("c", "b"))
    drive.start("b")
    drive.end("a", EndReason.DISK)
    assert drive.tell(DiskFull(gave_up=True)) == [Cancel(("job-b",))]
    drive.end("b", EndReason.CANCELLED, start=False)
    assert drive.exit_code == 3
    assert drive.settled() == {"a": End.FAILED, "b": End.CANCELLED}


def test_a_backend_that_fails_cancels_all_and_ends_with_3() -> None:
    drive = Drive(task("a"), task("b", "a"))
    drive.start("a")
    assert drive.tell(BackendFailed("no controller")) == [Cancel(("job-a",))]
    drive.end("a", EndReason.CANCELLED, start=False)
    assert drive.exit_code == 3
    assert "backend_failed" in drive.codes()


def test_jobs_that_outlive_us_are_waited_for_after_one_interrupt_and_left_after_two() -> None:
    drive = Drive(task("a"))
    drive.start("a", stays=True)
    assert drive.tell(Interrupted(Interrupt.CANCEL)) == [Cancel(("job-a",))]
    assert drive.tell(Interrupted(Interrupt.CANCEL)) == [Cancel(("job-a",), force=True), Leave()]
    assert drive.tell(BackendFailed("not waited for")) == [Finish(130)]
    assert "backend_left" in drive.codes()
    assert drive.machine.left == 1


def test_a_backend_that_fails_while_an_interrupted_run_ends_does_not_change_how_it_ends() -> None:
    drive = Drive(task("a"))
    drive.start("a", stays=True)
    drive.tell(Interrupted(Interrupt.CANCEL))
    drive.tell(BackendFailed("no controller"))
    assert drive.tell(BackendFailed("no controller")) == [Finish(130)]


def test_a_backend_that_cannot_even_cancel_is_left() -> None:
    drive = Drive(task("a"))
    drive.start("a")
    drive.tell(BackendFailed("no controller"))
    assert drive.tell(BackendFailed("no controller")) == [Finish(3)]

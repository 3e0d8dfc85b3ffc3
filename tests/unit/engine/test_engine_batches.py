"""The machine with steps: batches that join while their source is open."""

from __future__ import annotations

import pytest
from step_machine_drive import BAD, Drive, cancelled, started, step, task

from treadle.decide.reason import Answer, Upstream, Verdict
from treadle.engine.budget import Budget
from treadle.engine.news import BackendFailed, Examine, Examined, Finish, Interrupted, RemoveTemporary, Sealed
from treadle.plan.task import Policy, Resources, Where
from treadle.records.event import End, EndReason, Outcome, PlanEntered

UP_TO_DATE = Answer(Verdict.UP_TO_DATE)


def test_a_run_with_an_open_source_is_not_over_before_it_is_sealed() -> None:
    drive = Drive(step("@a"), more=True)
    drive.end("@a")
    assert not drive.machine.finished
    assert started(drive.add(step("@b", ["@a"]))) == ["@b"]
    drive.end("@b")
    assert not drive.machine.finished
    drive.tell(Sealed())
    assert drive.machine.finished
    assert drive.machine.exit_code == 0


def test_an_empty_plan_may_be_the_beginning() -> None:
    drive = Drive(more=True)
    assert not drive.machine.finished
    drive.add(step("@a"))
    drive.tell(Sealed())
    drive.end("@a")
    assert drive.machine.counts[End.SUCCEEDED] == 1


def test_a_batch_waits_for_tasks_of_earlier_ones_that_run() -> None:
    drive = Drive(step("@a"), more=True)
    assert started(drive.add(step("@b", ["@a"]), step("@c"))) == ["@c"]
    assert started(drive.end("@a")) == ["@b"]


@pytest.mark.parametrize("forget", [False, True])
def test_what_needs_a_task_that_failed_is_blocked_when_it_arrives(forget: bool) -> None:
    drive = Drive(step("@a"), step("@b", ["@a"]), more=True, keep_going=True, forget=forget)
    drive.end("@a", BAD)
    drive.add(step("@c", ["@a"]), step("@d", ["@c"]), step("@e", ["@b"]), step("@f"))
    assert drive.ends() == {
        "@a": End.FAILED,
        **dict.fromkeys(("@b", "@c", "@d", "@e"), End.BLOCKED),
    }
    assert drive.machine.blocked == dict.fromkeys(("@b", "@c", "@d", "@e"), "@a")
    drive.end("@f")
    drive.tell(Sealed())
    assert drive.machine.finished
    assert drive.machine.exit_code == 1


def test_needs_that_are_up_to_date_or_unknown_are_met() -> None:
    drive = Drive(step("@a"), more=True, answers={"@a": UP_TO_DATE})
    drive.add(step("@b"), answers={"@b": UP_TO_DATE})
    assert started(drive.add(step("@c", ["@a", "@b", "@elsewhere"]))) == ["@c"]
    assert drive.machine.counts[End.UP_TO_DATE] == 2


def test_entries_of_batches_count_what_came_before() -> None:
    drive = Drive(step("@a"), more=True)
    drive.add(step("@b"), step("@c"), answers={"@c": UP_TO_DATE})
    found = [event for event in drive.events if isinstance(event, PlanEntered)]
    assert [(one.round, one.tasks, one.will_run, one.up_to_date) for one in found] == [
        (1, 1, 1, 0),
        (2, 3, 2, 1),
    ]


def test_earlier_batches_go_first_but_for_priority() -> None:
    drive = Drive(step("@z"), step("@y"), budget=Budget(slots=1), more=True)
    urgent = Policy(priority=1)
    drive.add(step("@a"), step("@b"), step("@c", ["@b"]), step("@u", policy=urgent))
    order = []
    while launched := started(drive.commands):
        order += launched
        drive.commands.clear()
        drive.end(launched[0])
    assert order == ["@y", "@u", "@z", "@b", "@a", "@c"]


def test_a_join_does_not_touch_what_was_asked_before() -> None:
    cut = Answer(Verdict.WILL_RUN, (Upstream("@a"),), may_cut_off=True)
    drive = Drive(step("@a"), step("@b", ["@a"], inputs=["x"]), more=True, answers={"@b": cut})
    asked = [one for one in drive.end("@a") if isinstance(one, Examine)]
    drive.add(step("@c", ["@b"]))
    assert started(drive.tell(Examined("@b", asked[0].round))) == ["@c"]
    assert drive.ends()["@b"] is End.UNCHANGED


def test_a_task_of_a_batch_that_cannot_run_here_fails_alone() -> None:
    gpus = step("@gpus", where=Where.PROCESS, resources=Resources(gpus=2))
    drive = Drive(more=True, budget=Budget(gpus=1, slots=2), keep_going=True)
    assert started(drive.add(gpus, step("@after", ["@gpus"]), step("@other"))) == ["@other"]
    assert drive.ends() == {"@gpus": End.FAILED, "@after": End.BLOCKED}
    outcome = drive.machine.failures["@gpus"].outcome
    assert outcome is not None
    assert outcome.reason is EndReason.NEVER_STARTED
    assert "asks for 2 GPU(s)" in outcome.message


@pytest.mark.parametrize("settings", [{}, {"fail_fast": True}, {"keep_going": True, "max_failures": 1}])
def test_a_failure_ends_a_run_whose_source_is_open(settings: dict[str, object]) -> None:
    drive = Drive(step("@a"), step("@b"), more=True, **settings)
    drive.start("@a", "@b")
    commands = drive.end("@a", BAD)
    assert drive.machine.stopping
    assert cancelled(commands) == (["job 2"] if settings.get("fail_fast") else [])
    assert started(drive.add(step("@c"))) == []
    drive.end("@b", Outcome(reason=EndReason.CANCELLED))
    assert drive.machine.finished
    assert drive.machine.exit_code == 1
    assert drive.machine.counts[End.CANCELLED] == (2 if settings.get("fail_fast") else 1)


def test_an_interruption_ends_a_run_whose_source_is_open() -> None:
    drive = Drive(more=True)
    commands = drive.tell(Interrupted())
    assert isinstance(commands[-1], Finish)
    assert drive.machine.exit_code == 130


def test_a_backend_that_fails_ends_a_run_whose_source_is_open() -> None:
    drive = Drive(step("@a"), more=True)
    drive.tell(BackendFailed("gone"))
    drive.tell(BackendFailed("gone"))
    assert drive.machine.finished
    assert drive.machine.exit_code == 3


def test_temporary_outputs_stay_while_batches_may_come() -> None:
    maker = task("make", outputs=["t"], temporary=["t"])
    drive = Drive(maker, task("use", ["make"]), more=True, budget=Budget(threads=4, slots=4))
    drive.end("make")
    drive.end("use")
    drive.add(step("@reads", ["make"]))
    assert not [one for one in drive.commands if isinstance(one, RemoveTemporary)]
    drive.tell(Sealed())
    assert not [one for one in drive.commands if isinstance(one, RemoveTemporary)]
    commands = drive.end("@reads")
    assert [one.path for one in commands if isinstance(one, RemoveTemporary)] == ["t"]

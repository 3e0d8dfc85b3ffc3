"""The state machine: tasks that turn out unchanged, and outputs that are removed and made again."""

from __future__ import annotations

from machine_drive import Drive, launches, task

from treadle.decide.reason import Answer, InputChanged, OutputNeeded, Upstream, Verdict
from treadle.engine.budget import Budget
from treadle.engine.news import Ended, Examine, Examined, Finish, Opened, RemoveTemporary, Started
from treadle.engine.state import Machine, Settings
from treadle.records.event import End, EndReason, Evidence, Outcome, TaskSettled
from treadle.testing import plans

CUT = Answer(Verdict.WILL_RUN, (Upstream("up"),), may_cut_off=True)

UP_TO_DATE = Answer(Verdict.UP_TO_DATE)


# Cut-off


def test_a_task_that_nothing_speaks_for_any_more_settles_as_unchanged() -> None:
    drive = Drive(task("up"), task("down", "up"), answers={"down": CUT})
    assert drive.end("up") == [Examine(drive.plan.tasks["down"], 1)]
    evidence = Evidence(identity="x")
    assert drive.tell(Examined("down", 1, (), evidence)) == [Finish(0)]
    settled = drive.events[-2]
    assert isinstance(settled, TaskSettled)
    assert (settled.state, settled.attempt, settled.evidence) == (End.UNCHANGED, 0, evidence)


def test_a_task_with_a_changed_input_runs_after_all() -> None:
    drive = Drive(task("up"), task("down", "up"), answers={"down": CUT})
    drive.end("up")
    assert launches(drive.tell(Examined("down", 1, (InputChanged(path="x"),)))) == ["down"]


def test_unchanged_tasks_settle_what_hangs_on_them() -> None:
    drive = Drive(task("up"), task("b", "up"), task("c", "b"), answers={"b": CUT, "c": CUT})
    drive.end("up")
    assert drive.tell(Examined("b", 1)) == [Examine(drive.plan.tasks["c"], 1)]
    drive.tell(Examined("c", 1))
    assert drive.settled() == {"up": End.SUCCEEDED, "b": End.UNCHANGED, "c": End.UNCHANGED}


def test_without_cutoff_nobody_is_asked() -> None:
    drive = Drive(task("up"), task("down", "up"), answers={"down": CUT}, cutoff=False)
    assert launches(drive.end("up")) == ["down"]


def test_depends_on_a_task_that_ran_counts_as_changed() -> None:
    drive = Drive(task("up"), task("down", "up", ordered=["up"]), answers={"down": CUT})
    assert launches(drive.end("up")) == ["down"]


def test_depends_on_a_task_that_was_cut_off_does_not() -> None:
    answers = {"mid": CUT, "down": CUT}
    drive = Drive(task("up"), task("mid", "up"), task("down", "mid", ordered=["mid"]), answers=answers)
    drive.end("up")
    assert drive.tell(Examined("mid", 1)) == [Examine(drive.plan.tasks["down"], 1)]


# Outputs that were removed on purpose


BURIED = Answer(Verdict.WILL_RUN, (OutputNeeded("t", "use"),), may_cut_off=True)


def test_a_removed_output_is_not_made_again_for_a_task_that_is_cut_off() -> None:
    drive = Drive(task("up"), task("make"), task("use", "up make"), answers={"make": BURIED, "use": CUT})
    assert drive.launched() == ["up"]
    drive.tell(Examined("make", 1))
    assert drive.end("up") == [Examine(drive.plan.tasks["use"], 1)]
    assert drive.tell(Examined("use", 1)) == [Finish(0)]
    assert drive.settled() == {"up": End.SUCCEEDED, "use": End.UNCHANGED, "make": End.UNCHANGED}


def test_a_removed_output_is_made_again_before_the_task_that_needs_it() -> None:
    drive = Drive(task("up"), task("make"), task("use", "up make"), answers={"make": BURIED, "use": CUT})
    drive.tell(Examined("make", 1))
    drive.end("up")
    assert launches(drive.tell(Examined("use", 1, (InputChanged(path="x"),)))) == ["make"]
    assert launches(drive.end("make")) == ["use"]
    drive.end("use")
    assert set(drive.settled().values()) == {End.SUCCEEDED}


def test_a_chain_of_removed_outputs_is_made_again_from_its_start() -> None:
    drive = Drive(
        task("up"), task("m1"), task("m2", "m1"), task("use", "up m2"), task("other", "up m1"),
        answers={"m1": BURIED, "m2": BURIED, "use": CUT, "other": CUT},
    )  # fmt: skip
    drive.tell(Examined("m1", 1))
    drive.tell(Examined("m2", 1))
    drive.end("up")
    changed = (InputChanged(path="x"),)
    assert launches(drive.tell(Examined("use", 1, changed))) == ["m1"]
    drive.tell(Examined("other", 1))
    assert launches(drive.end("m1")) == ["m2"]
    assert launches(drive.end("m2")) == ["use"]
    drive.end("use")
    assert drive.settled()["other"] is End.UNCHANGED
    assert drive.exit_code == 0


def test_a_task_that_waits_for_more_does_not_start_early_when_a_removed_output_returns() -> None:
    drive = Drive(
        task("up"), task("slow"), task("make"), task("use", "up make"), task("late", "make slow"),
        answers={"make": BURIED, "use": CUT, "late": CUT},
    )  # fmt: skip
    drive.tell(Examined("make", 1))
    drive.end("up")
    drive.tell(Examined("use", 1, (InputChanged(path="x"),)))
    assert launches(drive.end("make")) == ["use"]
    assert drive.end("slow") == [Examine(drive.plan.tasks["late"], 1)]


# Temporary outputs


def test_temporary_outputs_go_when_all_dependents_ended_well() -> None:
    drive = Drive(task("t", outputs=["t"], temporary=["t"]), task("a", "t"), task("b", "t"))
    drive.end("t")
    assert drive.end("a") == []
    assert drive.end("b") == [RemoveTemporary(drive.plan.tasks["t"], "t"), Finish(0)]


def test_temporary_outputs_stay_for_dependents_that_failed_or_are_not_selected() -> None:
    drive = Drive(task("t", outputs=["t"], temporary=["t"]), task("a", "t"))
    drive.end("t")
    drive.end("a", EndReason.APP)
    assert not any(isinstance(one, RemoveTemporary) for one in drive.commands)
    plan = plans.plan([task("t", temporary=["t"]), task("a", "t"), task("b", "t")])
    machine = Machine(Settings(), Budget())
    few = plans.decision(plan)
    del few.answers["b"]
    machine.handle([Opened(plan, few)], 0.0)
    for name in ("t", "a"):
        n = 1 + (name == "a")
        turn = machine.handle([Started(name, n, name), Ended(name, n, Outcome())], 0.0)
        assert not any(isinstance(one, RemoveTemporary) for one in turn.commands)
    assert machine.finished


def test_temporary_outputs_of_a_leaf_stay() -> None:
    drive = Drive(task("t", outputs=["t"], temporary=["t"]))
    assert drive.end("t") == [Finish(0)]


def test_temporary_outputs_that_a_killed_run_left_are_removed_by_the_next() -> None:
    answers = {"t": UP_TO_DATE, "a": UP_TO_DATE}
    drive = Drive(task("t", temporary=["t"]), task("a", "t"), answers=answers)
    assert drive.commands == [RemoveTemporary(drive.plan.tasks["t"], "t"), Finish(0)]


def test_keep_temporary_removes_nothing() -> None:
    drive = Drive(task("t", temporary=["t"]), task("a", "t"), keep_temporary=True)
    drive.end("t")
    assert drive.end("a") == [Finish(0)]

"""The state machine: every rule of a run, by news and commands alone."""

from __future__ import annotations

import pytest

from treadle.base.errors import PlanError
from treadle.decide.reason import Answer, InputChanged, OutputNeeded, Upstream, Verdict
from treadle.engine.budget import Budget
from treadle.engine.news import (
    BackendFailed,
    Cancel,
    DiskFine,
    DiskFull,
    Elapsed,
    Ended,
    Examine,
    Examined,
    Finish,
    Grew,
    InFlight,
    Interrupt,
    Interrupted,
    Launch,
    News,
    Opened,
    Order,
    Refused,
    RemoveTemporary,
    Running,
    Started,
    Vacated,
    Wait,
    WatchDisk,
)
from treadle.engine.node import State
from treadle.engine.state import Machine, Settings
from treadle.engine.story import MachineError
from treadle.plan.task import Growth, Policy, Resources, ScheduledPlan, ScheduledTask
from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    End,
    EndReason,
    Event,
    Evidence,
    Noticed,
    Outcome,
    PlanEntered,
    RunEnded,
    TaskSettled,
)
from treadle.testing import plans

CUT = Answer(Verdict.WILL_RUN, (Upstream("up"),), may_cut_off=True)
UP_TO_DATE = Answer(Verdict.UP_TO_DATE)
SKIPPED = Answer(Verdict.SKIPPED)
ROOM = Budget(threads=100)


class Drive:
    """A machine with everything that came out of it."""

    def __init__(
        self,
        *tasks: ScheduledTask,
        answers: dict[str, Answer] | None = None,
        budget: Budget = ROOM,
        adopted: dict[str, InFlight] | None = None,
        **settings: object,
    ) -> None:
        self.machine = Machine(Settings(**settings), budget)  # type: ignore[arg-type]
        self.events: list[Event] = []
        self.commands: list[Order] = []
        self.plan = plans.plan(tasks, budget.pools)
        self.n: dict[str, int] = {}
        self.tell(Opened(self.plan, plans.decision(self.plan, answers), adopted=adopted or {}))

    def tell(self, *news: News) -> list[Order]:
        """Hand over news; gives the commands of this turn."""
        turn = self.machine.handle(news, 1000.0)
        self.events += turn.events
        self.commands += turn.commands
        for command in turn.commands:
            if isinstance(command, Launch):
                self.n[command.task.id] = command.n
        return turn.commands

    def start(self, task: str, running: bool = True) -> list[Order]:
        return self.tell(Started(task, self.n[task], f"job-{task}", running=running))

    def end(self, task: str, reason: EndReason = EndReason.OK, start: bool = True) -> list[Order]:
        if start:
            self.start(task)
        return self.tell(Ended(task, self.n[task], Outcome(reason=reason, exit_code=reason != "ok")))

    def settled(self) -> dict[str, End]:
        return {event.task: event.state for event in self.events if isinstance(event, TaskSettled)}

    def launched(self) -> list[str]:
        return [command.task.id for command in self.commands if isinstance(command, Launch)]

    def codes(self) -> list[str]:
        return [event.code for event in self.events if isinstance(event, Noticed)]

    @property
    def exit_code(self) -> int | None:
        last = self.commands[-1] if self.commands else None
        return last.exit_code if isinstance(last, Finish) else None


def launches(commands: list[Order]) -> list[str]:
    return [command.task.id for command in commands if isinstance(command, Launch)]


def task(id: str, needs: str = "", **settings: object) -> ScheduledTask:
    return plans.task(id, needs.split(), **settings)  # type: ignore[arg-type]


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


# Order and resources


def test_ready_tasks_go_by_priority_then_critical_path_then_id() -> None:
    drive = Drive(
        task("c"),
        task("b"),
        task("long"),
        task("urgent", policy=Policy(priority=5)),
        task("end", "long"),
        budget=Budget(threads=1),
    )
    for name in ("urgent", "long", "b", "c", "end"):
        drive.end(name)
    assert drive.launched() == ["urgent", "long", "b", "c", "end"]


def test_threads_are_never_over_the_budget() -> None:
    drive = Drive(*(task(name, resources=Resources(threads=2)) for name in "abc"), budget=Budget(threads=4))
    assert drive.launched() == ["a", "b"]
    assert launches(drive.end("a")) == ["c"]


def test_a_large_task_is_not_starved_by_small_ones() -> None:
    small = [task(f"small{at}", policy=Policy(priority=1)) for at in range(2)]
    later = [task(f"z{at}") for at in range(4)]
    large = task("large", resources=Resources(threads=4), policy=Policy(priority=1))
    drive = Drive(*small, large, *later, budget=Budget(threads=4))
    assert drive.launched() == ["large"], "the first by rank fits"
    drive.end("large")
    drive = Drive(task("first", policy=Policy(priority=2)), large, *later, budget=Budget(threads=4))
    assert drive.launched() == ["first"], "what the large one lacks, nobody else may take"
    assert launches(drive.end("first")) == ["large"]
    assert launches(drive.end("large")) == ["z0", "z1", "z2", "z3"]


def test_a_task_that_lacks_only_a_pool_lets_others_pass() -> None:
    licence = Resources(groups=(("licence", 1),))
    drive = Drive(
        task("a", resources=licence),
        task("b", resources=licence),
        task("c"),
        budget=Budget(threads=3, pools=(("licence", 1),)),
    )
    assert drive.launched() == ["a", "c"]
    assert launches(drive.end("a")) == ["b"]


def test_what_the_first_in_line_needs_is_held_for_it() -> None:
    licence = Resources(groups=(("licence", 1),))
    drive = Drive(
        task("a", resources=licence),
        task("b", resources=Resources(threads=2, groups=(("licence", 1),))),
        task("c"),
        budget=Budget(threads=3, pools=(("licence", 1),)),
    )
    assert drive.launched() == ["a"], "b waits for the licence and holds two threads"


def test_memory_is_counted() -> None:
    big = Resources(memory=6)
    drive = Drive(task("a", resources=big), task("b", resources=big), budget=Budget(threads=9, memory=10))
    assert drive.launched() == ["a"]
    assert launches(drive.end("a")) == ["b"]


def test_requests_beyond_the_machine_are_capped_with_one_warning_each() -> None:
    greedy = Resources(threads=64, memory=1000)
    drive = Drive(
        task("a", resources=greedy), task("b", resources=greedy), budget=Budget(threads=4, memory=100)
    )
    first = drive.commands[0]
    assert isinstance(first, Launch)
    assert (first.resources.threads, first.resources.memory) == (4, 100)
    assert drive.codes() == ["capped", "capped"]
    drive.end("a")
    drive.end("b")
    assert drive.exit_code == 0


def test_a_pool_that_is_too_small_does_not_hang() -> None:
    want = Resources(groups=(("licence", 3),))
    drive = Drive(task("a", resources=want), budget=Budget(threads=1, pools=(("licence", 2),)))
    assert drive.launched() == ["a"]


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


# Failures and what hangs on them


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


# Signals, disk, backend


def test_an_interrupt_cancels_what_runs_and_starts_nothing() -> None:
    drive = Drive(task("a"), task("b"), task("c"), task("d", "a"), budget=Budget(threads=2))
    drive.start("a")
    drive.start("b")
    assert drive.tell(Interrupted()) == [Cancel(("job-a", "job-b"))]
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


def test_a_backend_that_cannot_even_cancel_is_left() -> None:
    drive = Drive(task("a"))
    drive.start("a")
    drive.tell(BackendFailed("no controller"))
    assert drive.tell(BackendFailed("no controller")) == [Finish(3)]


# Jobs of earlier runs, and a plan that grows


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

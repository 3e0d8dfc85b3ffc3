"""The machine with steps: slots, attempts that are deferred, batches that join, and what it forgets."""

from __future__ import annotations

import pytest

from treadle.decide.reason import Answer, Upstream, Verdict
from treadle.engine.budget import Budget, capped, impossible
from treadle.engine.news import (
    Added,
    BackendFailed,
    Cancel,
    Deferred,
    Ended,
    Examine,
    Examined,
    Finish,
    Freed,
    Interrupt,
    Interrupted,
    Launch,
    News,
    Opened,
    Order,
    RemoveTemporary,
    Running,
    Sealed,
    Started,
)
from treadle.engine.node import State
from treadle.engine.state import Machine, Settings
from treadle.engine.story import MachineError
from treadle.plan.task import Policy, Resources, ScheduledTask, Where
from treadle.records.event import (
    AttemptStarted,
    End,
    EndReason,
    Event,
    Noticed,
    Outcome,
    PlanEntered,
    RunEnded,
    TaskSettled,
)
from treadle.testing import plans

step, task = plans.step, plans.task
UP_TO_DATE = Answer(Verdict.UP_TO_DATE)
BAD = Outcome(reason=EndReason.APP)


class Drive:
    """A machine with everything that came out of it."""

    def __init__(
        self,
        *tasks: ScheduledTask,
        budget: Budget = Budget(slots=8, remote=8),  # noqa: B008 - a value
        more: bool = False,
        answers: dict[str, Answer] | None = None,
        **settings: object,
    ) -> None:
        self.machine = Machine(Settings(**settings), budget)  # type: ignore[arg-type]
        self.events: list[Event] = []
        self.commands: list[Order] = []
        self.n: dict[str, int] = {}
        plan = plans.plan(tasks, budget.pools)
        self.tell(Opened(plan, plans.decision(plan, answers), more=more))

    def tell(self, *news: News) -> list[Order]:
        turn = self.machine.handle(news, 1000.0)
        for command in turn.commands:
            if isinstance(command, Launch):
                self.n[command.task.id] = command.n
        self.events += turn.events
        self.commands += turn.commands
        return turn.commands

    def add(self, *tasks: ScheduledTask, answers: dict[str, Answer] | None = None) -> list[Order]:
        plan = plans.plan(tasks)
        return self.tell(Added(plan, plans.decision(plan, answers)))

    def start(self, *names: str, running: bool = True) -> list[Order]:
        return self.tell(*[Started(one, self.n[one], f"job {self.n[one]}", running=running) for one in names])

    def end(self, name: str, outcome: Outcome = Outcome()) -> list[Order]:  # noqa: B008 - a value
        return self.tell(Ended(name, self.n[name], outcome))

    def defer(self, name: str, holder: str = "them") -> list[Order]:
        return self.tell(Deferred(name, self.n[name], holder))

    def free(self, name: str) -> list[Order]:
        return self.tell(Freed(name, self.n[name]))

    def ends(self) -> dict[str, End]:
        return {event.task: event.state for event in self.events if isinstance(event, TaskSettled)}


def started(commands: list[Order]) -> list[str]:
    return [one.task.id for one in commands if isinstance(one, Launch)]


def cancelled(commands: list[Order]) -> list[str]:
    return [job for one in commands if isinstance(one, Cancel) for job in one.jobs]


# Launched ahead


def test_steps_in_threads_are_launched_ahead_and_wait_without_being_told_as_started() -> None:
    drive = Drive(*[step(f"@{at}") for at in range(6)], budget=Budget(slots=2, ahead=2))
    assert started(drive.commands) == ["@0", "@1", "@2", "@3"]
    drive.start("@0", "@1")
    drive.start("@2", "@3", running=False)
    assert _told(drive) == ["@0", "@1"]
    assert drive.machine.state("@2") is State.SUBMITTED
    assert started(drive.end("@0")) == ["@4"]
    drive.tell(Running("@2", drive.n["@2"]))
    assert _told(drive) == ["@0", "@1", "@2"]
    assert drive.machine.state("@2") is State.RUNNING
    drive.end("@3")  # it need not have been told as running
    assert drive.ends() == {"@0": End.SUCCEEDED, "@3": End.SUCCEEDED}


def _told(drive: Drive) -> list[str]:
    return [event.task for event in drive.events if isinstance(event, AttemptStarted)]


def test_a_deferred_step_gives_its_place_in_the_line_back() -> None:
    drive = Drive(*[step(f"@{at}") for at in range(4)], budget=Budget(slots=1, ahead=1))
    drive.start("@0")
    drive.start("@1", running=False)
    assert started(drive.defer("@1")) == ["@2"]


def test_after_a_failure_only_what_still_waits_is_withdrawn() -> None:
    drive = Drive(*[step(f"@{at}") for at in range(5)], budget=Budget(slots=2, ahead=2))
    drive.start("@0", "@1")
    drive.start("@2", "@3", running=False)
    drive.tell(Running("@2", drive.n["@2"]))
    (command,) = drive.end("@0", BAD)
    assert command == Cancel((f"job {drive.n['@3']}",), waiting=True)
    drive.end("@3", Outcome(reason=EndReason.CANCELLED))
    drive.end("@1")
    drive.end("@2")
    assert drive.ends()["@3"] is End.CANCELLED
    assert drive.machine.finished
    assert drive.machine.counts[End.CANCELLED] == 2


def test_an_interrupt_ends_what_waits_as_well_as_what_runs() -> None:
    drive = Drive(*[step(f"@{at}") for at in range(3)], budget=Budget(slots=1, ahead=1))
    drive.start("@0")
    drive.start("@1", running=False)
    (command,) = drive.tell(Interrupted())
    assert command == Cancel(("job 1", "job 2"))


def test_with_steps_in_processes_nothing_is_launched_ahead() -> None:
    made = [step(f"@{at}") for at in range(4)]
    drive = Drive(*made, step("@p", where=Where.PROCESS), budget=Budget(slots=2, ahead=10))
    assert len(started(drive.commands)) == 2


def test_from_when_a_step_in_a_process_joins_nothing_is_launched_ahead() -> None:
    drive = Drive(*[step(f"@{at}") for at in range(6)], budget=Budget(slots=1, ahead=1), more=True)
    assert started(drive.commands) == ["@0", "@1"]
    drive.start("@0")
    drive.start("@1", running=False)
    assert started(drive.add(step("@p", where=Where.PROCESS))) == []
    assert started(drive.end("@0")) == []
    assert len(started(drive.end("@1"))) == 1


# Slots


def test_steps_in_threads_take_a_slot_and_no_cpu() -> None:
    drive = Drive(*[step(f"@{at}") for at in range(5)], task("rule"), budget=Budget(threads=1, slots=3))
    assert started(drive.commands) == ["@0", "@1", "@2", "rule"]
    assert started(drive.end("@1")) == ["@3"]


def test_steps_in_processes_take_a_slot_and_what_they_ask_for() -> None:
    big = Resources(threads=3, memory=10)
    made = [step(f"@{at}", where=Where.PROCESS, resources=big) for at in range(3)]
    drive = Drive(*made, step("@thread"), budget=Budget(threads=4, memory=100, slots=3))
    assert started(drive.commands) == ["@0", "@thread"]
    assert started(drive.end("@0")) == ["@1"]


def test_jobs_of_the_client_take_a_remote_slot_and_nothing_of_this_machine() -> None:
    huge = Resources(threads=1000, memory=1 << 50, gpus=8, nodes=4)
    made = [step(f"@{at}", where=Where.CLIENT, resources=huge) for at in range(3)]
    drive = Drive(*made, step("@here"), budget=Budget(threads=1, memory=1, gpus=0, slots=1, remote=2))
    launched = [one for one in drive.commands if isinstance(one, Launch)]
    assert [one.task.id for one in launched] == ["@0", "@1", "@here"]
    assert launched[0].resources == huge
    assert not [event for event in drive.events if isinstance(event, Noticed)]
    assert not impossible(Budget(threads=1, gpus=0), made)
    assert not capped(Budget(threads=1, memory=1), [*made, step("@t", resources=huge)])


def test_requests_of_worker_processes_are_cut_and_refused_as_those_of_rules_are() -> None:
    wide = step("@wide", where=Where.PROCESS, resources=Resources(threads=64))
    drive = Drive(wide, budget=Budget(threads=2, slots=1))
    assert [one.resources.threads for one in drive.commands if isinstance(one, Launch)] == [2]
    assert [event.code for event in drive.events if isinstance(event, Noticed)] == ["capped"]
    gpus = step("@gpus", where=Where.PROCESS, resources=Resources(gpus=1))
    (refused,) = impossible(Budget(gpus=0), [gpus])
    assert refused.message.startswith("step 'gpus' asks for 1 GPU(s)")


@pytest.mark.parametrize("slots", [0, -3])
def test_a_budget_without_slots_has_one_and_never_hangs(slots: int) -> None:
    drive = Drive(step("@a"), step("@b", where=Where.CLIENT), budget=Budget(slots=slots, remote=slots))
    assert started(drive.commands) == ["@a", "@b"]


def test_amounts_of_pools_count_beside_slots() -> None:
    asking = Resources(groups=(("db", 5),))
    made = [step(f"@{at}", resources=asking, where=Where.CLIENT) for at in range(2)]
    drive = Drive(*made, task("rule"), budget=Budget(threads=4, pools=(("db", 1),), slots=4))
    assert started(drive.commands) == ["@0", "rule"]


# Deferred


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


# Batches


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


# Forgetting


def test_what_has_ended_is_forgotten_but_for_how() -> None:
    drive = Drive(*[step(f"@{at}") for at in range(5)], more=True, forget=True, keep_going=True)
    for at in range(5):
        drive.end(f"@{at}", BAD if at == 3 else Outcome())
    machine = drive.machine
    assert not machine._nodes
    assert not machine._ranked
    assert machine.state("@0") is End.SUCCEEDED
    assert machine.state("@3") is End.FAILED
    assert list(machine.failures) == ["@3"]
    assert started(drive.add(step("@x", ["@0"]), step("@y", ["@3"]))) == ["@x"]
    assert drive.ends()["@y"] is End.BLOCKED
    drive.end("@x")
    drive.tell(Sealed())
    last = drive.events[-1]
    assert isinstance(last, RunEnded)
    assert last.counts == {"succeeded": 5, "failed": 1, "blocked": 1}


def test_a_forgetful_run_retries_and_defers_as_any_other() -> None:
    drive = Drive(step("@a", policy=Policy(retries=1)), more=True, forget=True)
    drive.start("@a")
    drive.end("@a", BAD)
    drive.start("@a")
    drive.defer("@a")
    drive.free("@a")
    drive.end("@a")
    assert drive.machine.state("@a") is End.SUCCEEDED
    drive.tell(Interrupted())
    assert drive.machine.finished

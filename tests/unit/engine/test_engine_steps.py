"""The machine with steps: attempts that are launched ahead, slots, and what is forgotten."""

from __future__ import annotations

import pytest
from step_machine_drive import BAD, Drive, started, step, task

from treadle.engine.budget import Budget, capped, impossible
from treadle.engine.news import Cancel, Interrupted, Launch, Running, Sealed
from treadle.engine.node import State
from treadle.plan.task import Policy, Resources, Where
from treadle.records.event import AttemptStarted, End, EndReason, Noticed, Outcome, RunEnded

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

"""Verdicts: one case for each hazard of schedulers, and the tables of what counts as evidence."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from treadle.backends.cluster.dialect import Account, Phase, Row
from treadle.backends.cluster.exit_file import Damage, ExitFile, Witness, Written
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.verdict import Ended, Facts, InFlight, LookAgain, Where, verdict, withdraws
from treadle.engine.backend import JobStatus
from treadle.plan.task import Policy, ScheduledTask
from treadle.records.event import EndReason

SETTINGS = ClusterSettings(backend="slurm")
TASK = ScheduledTask(id="t", rule="t", outputs=("o", "p"))
OUTPUTS = (Written(0, "f", 1), Written(1, "f", 1))
GOOD = ExitFile(exit_code=0, done=True, start=10.0, end=20.0, outputs=OUTPUTS, oom_kills=0, host="n1")
BAD = replace(GOOD, exit_code=3, done=False)
T = 1000.0  # when the queue first said that it is over


def row(state: str = "RUNNING", phase: Phase = Phase.RUNNING, **more) -> Row:
    return Row("7", phase, state, **more)


def ended(state: str = "COMPLETED", why: EndReason | None = None, **more) -> Row:
    return row(state, Phase.ENDED, ended=why, **more)


def account(state: str, why: EndReason | None = None, **more) -> Account:
    fields = {"job": "7", "phase": Phase.ENDED, "state": state, "settled": True, "ended": why, "exit_code": 0}
    return Account(**{**fields, **more})


def after(seconds: float, exit: ExitFile | None = None, **more) -> Facts:
    """Facts `seconds` after the queue said that it is over; all was looked at just now."""
    now = T + seconds
    witness = more.pop("witness", Witness(exit, starts=1))
    fields = {"now": now, "known": T, "polled": now, "over": T, "looked": now, "witness": witness}
    return Facts(**{**fields, **more})


def judge(facts: Facts, policy: Policy | None = None, limit: int | None = None):
    return verdict(facts, replace(TASK, policy=policy) if policy else TASK, limit, SETTINGS)


def end(facts: Facts, **more) -> Ended:
    told = judge(facts, **more)
    assert isinstance(told, Ended), told
    return told


def reason(facts: Facts, **more) -> EndReason:
    return end(facts, **more).outcome.reason


def flight(row: Row | None, witness: Witness = Witness()):  # noqa: B008
    return judge(Facts(now=T, known=T, polled=T, row=row, witness=witness))


def test_a_queue_that_has_not_answered_yet_proves_nothing():
    told = judge(Facts(now=T + 9999, known=T))
    assert isinstance(told, InFlight)


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.RUNNING, Phase.UNKNOWN])
def test_what_the_queue_holds_is_in_flight_with_its_own_words(phase):
    assert flight(row("SPECIAL_EXIT", phase)) == InFlight(JobStatus(phase.value), "SPECIAL_EXIT")


def test_a_held_or_suspended_job_is_in_flight():
    assert isinstance(flight(row("PENDING", Phase.PENDING, reason="JobHeldUser")), InFlight)
    assert isinstance(flight(row("SUSPENDED")), InFlight)


def test_a_job_that_can_never_start_is_never_started_and_is_to_be_removed():
    told = flight(row("PENDING", Phase.PENDING, reason="DependencyNeverSatisfied", hopeless=True))
    assert isinstance(told, Ended)
    assert (told.outcome.reason, told.remove) == (EndReason.NEVER_STARTED, True)
    assert "DependencyNeverSatisfied" in told.outcome.message


def test_success_needs_no_more_than_the_exit_file_while_the_queue_lags():
    told = flight(row("COMPLETING"), Witness(GOOD, starts=1))
    assert isinstance(told, Ended)
    assert (told.outcome.reason, told.evidence, told.remove) == (EndReason.OK, "exit", False)


def test_a_failure_waits_for_the_final_state_of_the_queue():
    assert isinstance(flight(row("COMPLETING"), Witness(BAD, starts=1)), InFlight)


def test_a_requeued_job_is_not_failed():
    waits = row("PENDING", Phase.PENDING, reason="BeginTime", requeued=True)
    told = flight(waits, Witness(replace(BAD, exit_code=143, asked=15), starts=1))
    assert told == InFlight(JobStatus.PENDING, "requeued: BeginTime")


@pytest.mark.parametrize(
    ("state", "why"), [("PREEMPTED", EndReason.PREEMPTED), ("NODE_FAIL", EndReason.NODE)]
)
def test_preemption_and_node_failure_end_it_only_when_the_queue_has_forgotten_it(state, why):
    shown = ended(state, why, host="n7")
    assert isinstance(judge(after(60, row=shown)), InFlight)
    assert isinstance(judge(after(60, BAD, row=shown)), InFlight)
    assert reason(after(0, last=shown)) is why
    assert reason(after(0, replace(BAD, asked=15), last=shown)) is why
    assert reason(after(0, BAD, account=account(state, why), accounting=True)) is why


def test_after_a_node_failure_that_node_is_to_be_left_out():
    told = end(after(40, account=account("NODE_FAIL", EndReason.NODE, host="n7"), accounting=True))
    assert (told.exclude, told.outcome.reason) == ("n7", EndReason.NODE)
    assert end(after(0, BAD, row=ended("FAILED", EndReason.APP))).exclude == ""


def test_completed_with_its_exit_file_and_outputs_is_success():
    told = end(after(0, GOOD, row=ended()))
    assert (told.outcome.reason, told.outcome.exit_code, told.provisional) == (EndReason.OK, 0, False)
    assert told.outcome.usage.wall == 10.0


def test_completed_without_its_outputs_is_a_failure_that_names_them():
    made = replace(GOOD, done=False, outputs=(Written(0, "f", 1), Written(1, "-")))
    for shown in (ended(), ended("FAILED", EndReason.APP)):
        told = end(after(0, made, row=shown))
        assert told.outcome.reason is EndReason.APP
        assert told.outcome.message == "it ended with exit code 0 but did not make p"


@pytest.mark.parametrize("why", [EndReason.TIME, EndReason.CANCELLED, EndReason.OOM, EndReason.APP])
def test_a_contrary_final_state_outweighs_exit_0(why):
    assert reason(after(0, GOOD, row=ended("STATE", why))) is why
    assert reason(after(0, GOOD, account=account("STATE", why), accounting=True)) is why


def test_out_of_memory_with_exit_0_is_oom_unless_that_is_said_to_be_ok():
    shown = ended("OUT_OF_MEMORY", EndReason.OOM)
    assert reason(after(0, GOOD, row=shown)) is EndReason.OOM
    assert reason(after(0, GOOD, row=shown), policy=Policy(oom_ok=True)) is EndReason.OK
    assert reason(after(0, BAD, row=shown), policy=Policy(oom_ok=True)) is EndReason.OOM


def test_a_kill_that_the_cgroup_counts_is_oom():
    assert reason(after(0, replace(GOOD, oom_kills=1), row=ended())) is EndReason.OOM
    assert (
        reason(after(0, replace(GOOD, oom_kills=1), row=ended()), policy=Policy(oom_ok=True)) is EndReason.OK
    )
    assert reason(after(0, replace(BAD, oom_kills=1), row=ended("FAILED", EndReason.APP))) is EndReason.OOM


def test_the_exit_code_of_the_job_itself_counts():
    told = end(after(0, BAD, row=ended("FAILED", EndReason.APP)))
    assert (told.outcome.reason, told.outcome.exit_code, told.evidence) == (EndReason.APP, 3, "exit")


def test_the_last_look_is_after_the_job_has_left_the_queue():
    told = judge(after(5, looked=T - 1))
    assert told == LookAgain(Where.EXIT, 0.0)
    assert judge(after(5, looked=None, row=ended("TIMEOUT", EndReason.TIME))) == LookAgain(Where.EXIT, 0.0)


def test_a_missing_exit_file_is_looked_for_with_growing_waits_up_to_the_latency():
    at, waits = 0.0, []
    while isinstance(told := judge(after(at, row=ended(), accounting=True)), LookAgain):
        if told.where is Where.ACCOUNTING:
            break
        waits.append(told.seconds)
        at += told.seconds
    assert waits == [0.5, 0.5, 1.0, 2.0, 4.0, 8.0, 14.0]
    assert at == SETTINGS.latency_wait


@pytest.mark.parametrize("damage", [Damage.TORN, Damage.FOREIGN, Damage.UNREADABLE])
def test_a_damaged_exit_file_is_looked_at_again(damage):
    told = judge(after(1, witness=Witness(None, damage, 1), row=ended()))
    assert isinstance(told, LookAgain)


def test_accounting_alone_never_makes_a_success():
    told = end(after(40, account=account("COMPLETED"), accounting=True))
    assert (told.outcome.reason, told.evidence) == (EndReason.LOST, "accounting")
    assert "left no exit file" in told.outcome.message


def test_accounting_tells_why_a_job_without_exit_file_failed():
    failed = account("TIMEOUT", EndReason.TIME, exit_code=0, memory=77)
    told = end(after(40, account=failed, accounting=True))
    assert (told.outcome.reason, told.evidence, told.outcome.usage.memory) == (
        EndReason.TIME,
        "accounting",
        77,
    )


def test_a_final_state_that_is_not_settled_is_waited_for():
    early = account("FAILED", EndReason.APP, settled=False)
    told = judge(after(40, account=early, accounting=True))
    assert told == LookAgain(Where.ACCOUNTING, SETTINGS.poll_interval)


def test_a_job_that_no_source_knows_is_lost_with_the_list_of_what_was_asked():
    for accounting in (True, False):
        assert isinstance(judge(after(599, accounting=accounting, accounted=T)), LookAgain)
        told = end(after(600, accounting=accounting, accounted=T))
        assert (told.outcome.reason, told.evidence) == (EndReason.LOST, "silence")
        assert "the queue (0 s ago: not known)" in told.outcome.message
        assert "its exit file (0 s ago: not there)" in told.outcome.message
        assert ("accounting (600 s ago: not known)" in told.outcome.message) is accounting


def test_a_job_that_accounting_still_knows_is_not_lost():
    running = account("RUNNING", phase=Phase.RUNNING, settled=False)
    told = judge(after(700, known=T + 690, account=running, accounting=True))
    assert isinstance(told, LookAgain)


def test_without_oom_counts_and_final_state_success_waits_for_accounting():
    blind = replace(GOOD, oom_kills=None)
    assert judge(after(40, blind, accounting=True)) == LookAgain(Where.ACCOUNTING, SETTINGS.poll_interval)
    assert reason(after(40, blind, accounting=True, account=account("COMPLETED"))) is EndReason.OK
    oom = account("OUT_OF_MEMORY", EndReason.OOM)
    assert reason(after(40, blind, accounting=True, account=oom)) is EndReason.OOM
    assert end(after(600, blind, accounting=True)).provisional
    assert reason(after(0, blind)) is EndReason.OK
    assert reason(after(0, blind, row=ended(), accounting=True)) is EndReason.OK


def test_contrary_news_that_come_later_take_a_success_back():
    before = end(after(1, GOOD, accounting=True))
    assert before.provisional
    oom = account("OUT_OF_MEMORY", EndReason.OOM)
    assert withdraws(before, judge(after(30, GOOD, accounting=True, account=oom)))
    fine = judge(after(30, GOOD, accounting=True, account=account("COMPLETED")))
    assert not withdraws(before, fine)
    assert isinstance(fine, Ended)
    assert not fine.provisional


def test_a_cancelled_element_that_leaves_no_trace_is_cancelled():
    gone = after(0, witness=Witness(), cancelled=True, accounting=True)
    assert reason(gone) is EndReason.CANCELLED
    assert reason(after(0, BAD, cancelled=True)) is EndReason.CANCELLED


def test_a_job_that_was_asked_to_end_and_did_need_not_wait_for_the_queue():
    facts = Facts(now=T, known=T, polled=T, row=row(), witness=Witness(BAD, starts=1), looked=T)
    assert isinstance(judge(facts), InFlight)
    assert reason(replace(facts, cancelled=True)) is EndReason.CANCELLED


def test_cancelled_by_someone_else_is_cancelled():
    assert reason(after(0, row=ended("CANCELLED", EndReason.CANCELLED))) is EndReason.CANCELLED
    by = account("CANCELLED by 1000", EndReason.CANCELLED)
    assert reason(after(40, accounting=True, account=by)) is EndReason.CANCELLED


def test_a_killed_job_of_sge_that_we_deleted_is_cancelled():
    killed = account("failed 100", EndReason.APP, exit_code=137)
    assert reason(after(40, cancelled=True, accounting=True, account=killed)) is EndReason.CANCELLED


def test_a_job_that_we_cancelled_waits_for_accounting_and_not_for_files():
    gone = after(1, cancelled=True, accounting=True)
    assert judge(gone) == LookAgain(Where.ACCOUNTING, SETTINGS.poll_interval)
    killed = account("failed 100", EndReason.APP, exit_code=137)
    assert reason(replace(gone, account=killed)) is EndReason.CANCELLED
    assert reason(replace(gone, accounting=False)) is EndReason.CANCELLED
    done = account("done")  # it may have been done before: then its file is waited for
    assert judge(replace(gone, account=done)) == LookAgain(Where.EXIT, 1.0)


def test_a_job_that_we_cancelled_and_that_wrote_its_end_waits_for_nothing():
    asked = replace(BAD, exit_code=143, signal=15, asked=15)
    assert reason(after(1, asked, cancelled=True, accounting=True)) is EndReason.CANCELLED
    assert isinstance(judge(after(1, asked, accounting=True)), LookAgain)


def test_asked_to_end_near_the_time_limit_is_time():
    asked = replace(BAD, exit_code=143, signal=15, asked=15, start=0.0, end=60.0)
    early = Policy(signal_before_end=40)
    assert reason(after(0, asked), policy=early, limit=100) is EndReason.TIME
    assert reason(after(0, replace(asked, end=5.0)), policy=early, limit=100) is EndReason.APP


def test_clock_skew_of_a_node_changes_nothing():
    future = replace(GOOD, start=9e9, end=9e9 + 5)
    assert end(after(0, future, row=ended())).outcome.usage.wall == 5.0
    back = replace(GOOD, start=100.0, end=50.0)
    assert end(after(0, back, row=ended())).outcome.usage.wall == 0.0


@pytest.mark.parametrize(("code", "why"), [(73, EndReason.DISK), (74, EndReason.NODE), (1, EndReason.APP)])
def test_what_the_wrapper_could_not_write_down_its_exit_code_tells(code, why):
    failed = account("FAILED", EndReason.APP, exit_code=code)
    assert reason(after(40, row=ended("FAILED", EndReason.APP), accounting=True, account=failed)) is why


def test_a_job_that_failed_before_its_script_began_blames_the_node():
    told = end(after(100, witness=Witness(), row=ended("FAILED", EndReason.APP, host="n3")))
    assert (told.outcome.reason, told.exclude) == (EndReason.NODE, "n3")
    assert "before its script began" in told.outcome.message


def test_a_second_start_that_was_refused_blames_the_node():
    refused = Witness(starts=1, refused=True)
    assert reason(after(100, witness=refused, row=ended("FAILED", EndReason.APP))) is EndReason.NODE


@pytest.mark.parametrize("problem", ["workdir", "log", "secrets"])
def test_what_a_node_could_not_reach_is_its_problem(problem):
    told = end(after(0, replace(BAD, exit_code=74, problem=problem), row=ended("FAILED", EndReason.APP)))
    assert (told.outcome.reason, told.exclude) == (EndReason.NODE, "n1")


def test_of_several_tasks_in_a_job_each_has_its_own_end():
    failed = ended("FAILED", EndReason.APP)
    assert reason(after(0, GOOD, row=failed, several=True)) is EndReason.OK
    assert reason(after(0, BAD, row=failed, several=True)) is EndReason.APP
    skipped = replace(BAD, skipped=True)
    assert reason(after(0, skipped, row=failed, several=True)) is EndReason.INTERRUPTED


def test_a_success_that_was_requeued_is_to_be_removed_from_the_queue():
    told = flight(row("PENDING", Phase.PENDING, requeued=True), Witness(GOOD, starts=1))
    assert isinstance(told, Ended)
    assert told.remove

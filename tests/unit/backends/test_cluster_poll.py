"""Polling: one question for all, evidence that is believed, and evidence that is none."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from treadle.backends.cluster.dialect import Phase, Row
from treadle.backends.cluster.poll import DoneInQueue, Heard
from treadle.backends.cluster.status import Status
from treadle.base.errors import SchedulerError
from treadle.engine.backend import JobStatus
from treadle.plan.task import Policy, Resources
from treadle.records.event import EndReason

SIMULATED = {"simulator": "cluster_simulated:ended", "path": (str(Path(__file__).parent),)}
WAITS = "until test -e go; do sleep 0.02; done"


def test_one_question_is_for_all_jobs(world_with):
    world = world_with(slots=8, max_array_size=6)
    world.submit(*world.tasks(20, WAITS))
    world.until(lambda: len(world.fake.jobs()) == 20, "all")
    before = world.fake.calls().get("squeue", 0)
    polls = world.backend.counts()["poll"]
    world.for_seconds(1.0)
    assert world.fake.calls()["squeue"] - before <= world.backend.counts()["poll"] - polls + 1
    (world.folder / "go").touch()
    world.finish()


def test_the_interval_grows_while_nothing_changes(world):
    world.begin(poll_interval=0.1)
    world.submit(world.task(WAITS))
    world.until(lambda: world.backend.counts()["poll"] >= 1, "a poll")
    world.for_seconds(3.0)
    assert world.backend.counts()["poll"] < 12  # thirty, if it did not
    (world.folder / "go").touch()
    world.finish()


def test_a_done_job_is_noticed_without_any_poll(world_with):
    world = world_with(**SIMULATED)
    world.begin(poll_interval=600.0)
    world.fake.script("simulate", seconds=1.5)
    one = world.task()
    world.submit(one)
    world.until(lambda: any(report.outcome for report in world.reports.get(one.name, ())), "its end")
    assert world.outcome(one.name).reason is EndReason.OK
    assert world.backend.counts()["poll"] <= 1


@pytest.mark.parametrize(
    ("asked", "phase", "told"),
    [
        (99.0, Phase.PENDING, False),  # asked before its end was seen
        (101.0, Phase.PENDING, False),  # the queue is slow to show that it began
        (101.0, Phase.RUNNING, False),
        (120.0, Phase.PENDING, True),
        (120.0, Phase.RUNNING, False),  # it was started again, and sees for itself that it is done
        (120.0, Phase.ENDED, False),
    ],
)
def test_a_job_that_is_done_is_taken_out_of_the_queue_only_if_it_waits_long_after_that(asked, phase, told):
    done, held = DoneInQueue(), SimpleNamespace(id="7")
    done.add(held, 100.0)
    heard = Heard(asked, {"7": Row("7", phase, phase.value)}, True)
    assert done.still_waiting(heard) == ([held] if told else [])


def test_a_job_that_is_done_and_was_forgotten_is_no_longer_looked_for():
    done = DoneInQueue()
    done.add(SimpleNamespace(id="7"), 100.0)
    assert done.still_waiting(Heard(101.0, {}, True)) == []
    assert done.still_waiting(Heard(200.0, {"7": Row("7", Phase.PENDING, "PENDING")}, True)) == []


@pytest.mark.parametrize("count", [3000, pytest.param(10_000, marks=pytest.mark.big)])
def test_thousands_of_jobs_cost_little(world_with, count):
    """At most 3 submissions, one command a poll, 1 ms of CPU for a thousand tasks."""
    world = world_with(**SIMULATED, slots=6400, speed=50.0)
    world.begin(max_submitted=count, poll_interval=2.0)
    world.fake.script("simulate", seconds=100.0)
    batch = world.tasks(count, time_limit=6000)
    before = time.process_time()
    world.submit(*batch)
    world.until(lambda: not world.live, "the end")
    spent = time.process_time() - before
    calls, counts = world.fake.calls(), world.backend.counts()
    assert calls["sbatch"] == -(-count // 1000)
    assert calls["squeue"] == counts["poll"]
    assert calls.get("sacct", 0) == counts["accounting"]
    assert all(world.outcome(one.name).reason is EndReason.OK for one in batch)
    assert spent < 0.001 * count, f"{1000 * spent / count:.2f} ms a task"


def test_running_is_told_once(world):
    world.submit(world.task(WAITS))
    world.until(lambda: any(_statuses(world)), "it runs")
    world.for_seconds(0.6)
    (world.folder / "go").touch()
    world.finish()
    assert _statuses(world).count(True) == 1


def _statuses(world) -> list[bool]:
    return [report.status is JobStatus.RUNNING for reports in world.reports.values() for report in reports]


def test_a_queue_reason_is_told_and_kept_for_who_looks(world):
    world.fake.script("pend", words="Resources")
    one = world.task()
    world.submit(one)
    world.until(lambda: any(r.reason for rs in world.reports.values() for r in rs), "a reason")
    (folder,) = world.sent()
    status = msgspec.json.decode(Path(folder.status).read_bytes(), type=Status)
    assert [(job.n, job.job, job.reason) for job in status.jobs] == [(one.n, "1", "Resources")]
    world.backend.cancel([one.name])
    world.finish()


@pytest.mark.parametrize("reason", ["PartitionTimeLimit", "BadConstraints", "DependencyNeverSatisfied"])
def test_a_reason_that_cannot_heal_is_said_at_the_first_poll(world, reason):
    world.fake.script("pend", words=reason)
    (outcome,) = world.do(world.task())
    assert outcome.reason is EndReason.NEVER_STARTED
    assert reason in outcome.message
    world.until(lambda: all(job.state == "cancelled" for job in world.fake.jobs()), "it leaves the queue")


def test_a_failing_poll_is_repeated_and_loses_nothing(world):
    goes_on = "until [ -e later ]; do sleep 0.01; done"
    world.submit(world.task(WAITS), world.task(goes_on))
    world.until(lambda: _statuses(world).count(True) == 2, "they run")
    world.fake.down()
    world.until_said("backend_down")
    (world.folder / "go").touch()
    world.fake.up()
    world.until_said("backend_up")
    (world.folder / "later").touch()
    assert [outcome.reason for outcome in world.finish()] == [EndReason.OK, EndReason.OK]


def test_an_outage_ends_the_run_only_after_its_limit(world):
    world.begin(outage_limit=1.5)
    world.submit(world.task(WAITS))
    world.until(lambda: any(_statuses(world)), "it runs")
    world.fake.down()
    with pytest.raises(SchedulerError, match="slurm has not answered"):
        world.for_seconds(20)
    (world.folder / "go").touch()


def test_a_scheduler_that_is_given_up_is_told_once_more_and_each_job_has_word_of_that(world_with):
    world = world_with(kill_wait=60.0)
    world.begin(outage_limit=4, command_timeout=4)  # a busy machine may take a second to answer
    jobs = world.tasks(2, f"trap '' TERM; {WAITS}")
    world.submit(*jobs)
    world.until(lambda: _statuses(world).count(True) == 2, "they run")
    world.fake.script("down", command="squeue")
    world.fake.script("hang", command="scancel", seconds=30)
    with pytest.raises(SchedulerError, match="slurm has not answered"):
        world.for_seconds(20)
    world.backend.cancel([one.name for one in jobs])
    with pytest.raises(SchedulerError, match="2 of its jobs could not be told to end"):
        world.for_seconds(20)
    assert world.fake.calls()["scancel"] == 1
    for one in jobs:
        last = world.reports[one.name][-1]
        assert (last.status, last.reason) == (JobStatus.ENDING, "not heard: no answer in time")
    (world.folder / "go").touch()


def test_a_queue_that_cannot_be_read_for_poll_timeout_ends_the_run_and_again_after_as_long(world):
    world.begin(poll_timeout=0.6)
    world.submit(world.task(WAITS))
    world.until(lambda: any(_statuses(world)), "it runs")
    world.fake.script("down", command="squeue")
    for _ in range(2):
        with pytest.raises(SchedulerError, match=r"could not be read for .* poll_timeout"):
            world.for_seconds(20)
    (world.folder / "go").touch()


def test_a_queue_that_can_be_read_in_between_ends_nothing(world):
    world.begin(poll_timeout=3600)
    world.submit(world.task(WAITS))
    world.until(lambda: any(_statuses(world)), "it runs")
    world.fake.script("down", command="squeue", times=2)
    world.for_seconds(0.8)
    (world.folder / "go").touch()
    assert world.finish()[0].reason is EndReason.OK


def test_a_controller_that_hangs_in_mid_run_is_waited_for(world):
    world.begin(command_timeout=0.5)
    world.submit(world.task(WAITS))
    world.until(lambda: any(_statuses(world)), "it runs")
    world.fake.script("hang", command="squeue", seconds=3.0, times=2)
    world.for_seconds(1.0)
    (world.folder / "go").touch()
    assert world.finish()[0].reason is EndReason.OK


def test_a_command_that_is_not_there_ends_the_run_and_names_it(world, monkeypatch):
    monkeypatch.setenv("PATH", str(world.folder))
    world.begin(bin_dir="")
    world.submit(world.task())
    with pytest.raises(SchedulerError, match=r"s(batch|control)"):
        world.for_seconds(20)


def test_an_unknown_state_stays_in_flight_and_is_shown(world):
    world.fake.script("show", words="SPECIAL_EXIT_7", seconds=1.5)
    world.submit(world.task("sleep 2"))
    (outcome,) = world.finish()
    assert outcome.reason is EndReason.OK


def test_a_requeued_job_is_pending_and_not_failed(world):
    world.fake.script("requeue", after=0.2)
    (outcome,) = world.do(world.task("sleep 1", policy=Policy(restartable=True)))
    assert outcome.reason is EndReason.OK
    assert world.fake.jobs()[0].starts == 2


def test_a_preempted_job_ended_by_that_once_the_queue_has_forgotten_it(world_with):
    world = world_with(keep=1.0)
    world.fake.script("preempt", after=0.2)
    (outcome,) = world.do(world.task("sleep 30"))
    assert outcome.reason is EndReason.PREEMPTED


def test_a_suspended_job_is_no_end(world):
    world.fake.script("suspend", after=0.2, seconds=0.8)
    assert world.do(world.task("sleep 0.5"))[0].reason is EndReason.OK


def test_a_held_job_waits_for_its_release(world):
    world.fake.script("hold")
    world.submit(world.task())
    world.for_seconds(0.8)
    assert world.live
    world.fake.each("release")
    assert world.finish()[0].reason is EndReason.OK


def test_eqw_of_grid_engine_is_said_and_fails_the_task(world_with):
    world = world_with("sge")
    world.fake.script("error")
    (outcome,) = world.do(world.task())
    assert outcome.reason is EndReason.NEVER_STARTED


def test_a_failed_node_is_an_end_once_the_queue_has_forgotten_the_job(world_with):
    world = world_with(keep=1.0)
    world.fake.script("node_fail", after=0.2)
    (outcome,) = world.do(world.task("sleep 30"))
    assert outcome.reason is EndReason.NODE
    assert outcome.host == "node1"


def test_a_node_that_fails_many_tasks_is_named(world_with):
    world = world_with(keep=1.0)
    world.fake.script("node_fail", after=0.2)
    world.do(*(world.task("sleep 30", rule=f"r{n}") for n in range(3)))
    assert world.until_said("node_suspect").values["node"] == "node1"


def test_a_killed_job_failed_and_says_by_what(world):
    world.fake.script("kill", after=0.2)
    (outcome,) = world.do(world.task("sleep 30"))
    assert outcome.reason is not EndReason.OK


def test_out_of_memory_is_told_as_such(world):
    world.fake.script("oom", after=0.2)
    assert world.do(world.task("sleep 30"))[0].reason is EndReason.OOM


def test_out_of_memory_with_exit_0_takes_the_success_back(world):
    world.fake.script("oom_unseen")
    assert world.do(world.task())[0].reason is EndReason.OOM


def test_out_of_memory_with_exit_0_can_be_allowed(world):
    world.fake.script("oom_unseen")
    assert world.do(world.task(policy=Policy(oom_ok=True)))[0].reason is EndReason.OK


def test_a_job_over_its_time_is_told_as_such(world):
    world.fake.script("timeout", after=0.3)
    (outcome,) = world.do(world.task("sleep 300", time_limit=60))
    assert outcome.reason is EndReason.TIME


def test_completed_without_its_outputs_is_a_failure(world):
    (outcome,) = world.do(world.task("true", outputs=("never", "made")))
    assert outcome.reason is EndReason.APP
    assert "never" in outcome.message


def test_a_job_that_the_queue_forgets_at_once_is_judged_by_its_own_word(world):
    world.fake.script("forget")
    good, bad = world.do(world.task("true"), world.task("exit 5"))
    assert good.reason is EndReason.OK
    assert (bad.reason, bad.exit_code) == (EndReason.APP, 5)


def test_an_id_that_was_purged_makes_no_error_of_the_single_one(world_with):
    world = world_with(keep=0.0)
    assert world.do(world.task("exit 2"))[0].exit_code == 2


def test_accounting_that_lags_is_waited_for(world_with):
    world = world_with(lag=1.0, keep=0.0)
    world.fake.script("kill", after=0.2)
    (outcome,) = world.do(world.task("sleep 30"))
    assert outcome.reason is not EndReason.OK
    assert outcome.reason is not EndReason.LOST


def test_accounting_that_lies_for_a_moment_is_not_believed(world):
    world.fake.script("lie", words="CANCELLED by 1000", seconds=0.8)
    assert world.do(world.task())[0].reason is EndReason.OK


def test_a_site_without_accounting_says_so_once_and_goes_on(world_with):
    world = world_with(accounting=False)
    good, bad = world.do(world.task(), world.task("exit 3"))
    assert (good.reason, bad.exit_code) == (EndReason.OK, 3)
    world.until_said("no_accounting")
    world.do(world.task())
    assert world.codes().count("no_accounting") == 1


def test_accounting_that_does_not_answer_is_told_once_where_ends_hang_on_it(world):
    world.do(world.task())
    world.until(lambda: world.backend._follower.accountant._ever, "a first answer")
    world.fake.script("say", command="sacct", words="sacct: error: Access/permission denied", code=1)
    for _ in range(2):
        world.fake.script("vanish", after=0.2, times=1)
        (outcome,) = world.do(world.task("sleep 30"))
        assert outcome.reason is EndReason.LOST
    assert world.codes().count("accounting_silent") == 1


def test_a_job_that_nobody_knows_is_lost_with_the_list_of_what_was_asked(world):
    world.begin(lost_after=1.5)
    world.fake.script("vanish", after=0.2)
    (outcome,) = world.do(world.task("sleep 30"))
    assert outcome.reason is EndReason.LOST
    for asked in ("queue", "exit file", "accounting"):
        assert asked in outcome.message


def test_a_job_that_was_taken_and_never_known_is_lost_too(world):
    world.begin(lost_after=1.5)
    world.fake.script("lose")
    assert world.do(world.task())[0].reason is EndReason.LOST


def test_other_peoples_jobs_are_passed_over(world_with):
    world = world_with("sge", others=40)
    assert world.do(world.task())[0].reason is EndReason.OK


def test_broken_json_of_pbs_is_no_evidence_of_loss(world_with):
    world = world_with("pbs", broken_json=True)
    assert world.do(world.task())[0].reason is EndReason.OK


def test_a_cancelled_pending_element_that_leaves_no_trace_is_cancelled(world):
    world.fake.script("pend", index=2, words="Resources")
    first, second = world.tasks(2)
    world.submit(first, second)
    world.until(lambda: first.name not in world.live, "the first")
    world.backend.cancel([second.name])
    world.until(lambda: not world.live, "the second")
    assert world.outcome(second.name).reason is EndReason.CANCELLED


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_clocks_that_differ_change_no_verdict(world_with, skew):
    world = world_with(skew=skew)
    good, bad = world.do(world.task(), world.task("exit 3"))
    assert (good.reason, bad.exit_code) == (EndReason.OK, 3)


def test_a_missing_log_folder_is_told_as_the_nodes_fault(world):
    (outcome,) = world.do(world.task(log=str(world.folder / "nowhere" / "log")))
    assert outcome.reason is EndReason.NODE
    assert "log" in outcome.message


@pytest.mark.parametrize("accounting", [True, False])
def test_a_node_that_does_not_see_the_folder_of_a_job_is_to_blame(world_with, accounting):
    world = world_with(accounting=accounting)
    world.fake.script("hold")
    one = world.task()
    world.submit(one)
    world.until(lambda: world.sent() and os.path.exists(world.sent()[0].id), "its id")
    os.rename(world.run.jobs, f"{world.run.jobs}.away")
    world.fake.each("release")
    (outcome,) = world.finish()
    assert (outcome.reason, outcome.host) == (EndReason.NODE, "node1")
    assert "look whether the node can reach the work folder" in outcome.message


@pytest.mark.parametrize("text", ["a 'b' \"c\"", "$HOME `id` \\", "two\nlines", "#SBATCH --time=1"])
def test_whatever_a_task_is_called_it_runs(world, text):
    path = f"made {text}"
    one = world.task('echo "$WORD" > "$OUT"', rule="t", outputs=(path,), env={"WORD": text, "OUT": path})
    (outcome,) = world.do(one)
    assert outcome.reason is EndReason.OK, outcome
    assert Path(world.folder / path).read_text() == f"{text}\n"


def test_a_request_that_is_too_large_is_said(world_with):
    world = world_with(max_time=60.0)
    (outcome,) = world.do(world.task(resources=Resources(time_limit=3600)))
    assert outcome.reason is EndReason.NEVER_STARTED

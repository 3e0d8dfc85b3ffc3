"""Submission: one script for many, answers sorted, nothing submitted twice."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from cluster_world import World

from treadle.backends.cluster.submit import name_of
from treadle.base.errors import OptionError
from treadle.engine.backend import Accepted, Refused
from treadle.plan.task import Resources
from treadle.records.event import EndReason


def test_a_single_job_has_its_folder_its_script_and_its_id(world):
    (outcome,) = world.do(world.task("echo hello > made", outputs=("made",)))
    assert outcome.reason is EndReason.OK
    (folder,) = world.sent()
    assert Path(folder.id).read_text() == "1\n"
    assert "#SBATCH --job-name=" in Path(folder.script).read_text()
    assert world.text("made") == "hello\n"


def test_the_schedulers_own_id_is_told_once(world):
    world.do(world.task())
    (reports,) = world.reports.values()
    assert [report.job_id for report in reports if report.job_id] == ["1"]


def test_ready_siblings_go_as_one_array(world):
    batch = world.tasks(20, 'echo "$TREADLE_ATTEMPT" > $TREADLE_ATTEMPT.out')
    assert {outcome.reason for outcome in world.do(*batch)} == {EndReason.OK}
    assert world.fake.calls()["sbatch"] == 1
    for one in batch:
        name = one.env["TREADLE_ATTEMPT"]
        assert world.text(f"{name}.out") == f"{name}\n"


def test_elements_of_an_array_end_each_in_its_own_way(world):
    good, bad, worse = (world.task(text) for text in ("true", "exit 3", "echo half; exit 4"))
    outcomes = world.do(good, bad, worse)
    assert [outcome.exit_code for outcome in outcomes] == [0, 3, 4]
    assert Path(worse.log).read_text() == "half\n"


def test_arrays_are_cut_at_the_sites_bound(world_with):
    world = world_with(max_array_size=11)  # indices to 10
    world.do(*world.tasks(25))
    sizes = [len(list(job)) for job in _by_job(world)]
    assert sorted(sizes) == [5, 10, 10]


def test_arrays_are_cut_at_the_settings_bound(world):
    world.begin(max_array_size=4)
    world.do(*world.tasks(10))
    assert sorted(len(job) for job in _by_job(world)) == [2, 4, 4]


def _by_job(world) -> list[list[object]]:
    jobs: dict[int, list[object]] = {}
    for job in world.fake.jobs():
        jobs.setdefault(job.job, []).append(job)
    return list(jobs.values())


def test_max_running_throttles_an_array(world_with):
    world = world_with(slots=8)
    world.begin(max_running=2)
    world.submit(*world.tasks(6, "until test -e go; do sleep 0.02; done"))
    world.until(lambda: sum(job.state == "running" for job in world.fake.jobs()) == 2, "two")
    world.for_seconds(0.3)
    assert sum(job.state == "running" for job in world.fake.jobs()) == 2
    (world.folder / "go").touch()
    assert {outcome.reason for outcome in world.finish()} == {EndReason.OK}


@pytest.mark.parametrize("kind", ["slurm", "pbs", "torque", "sge", "lsf"])
def test_max_running_bounds_all_jobs_of_the_run(tmp_path, kind):
    world = World(tmp_path, kind, {"slots": 9})
    try:
        world.begin(max_running=3)
        wait = "until test -e go; do sleep 0.02; done"
        world.submit(*world.tasks(2, wait, rule="one"), *world.tasks(7, wait, rule="two"))
        world.submit(*(world.task(wait, rule=f"single{n}") for n in range(3)))
        world.until(lambda: running(world) == 3, "three")
        world.for_seconds(0.8)
        assert running(world) == 3
        (world.folder / "go").touch()
        most = 0
        while world.live:
            world.turn()
            most = max(most, running(world))
        assert most <= 3
        assert {outcome.reason for outcome in world.finish()} == {EndReason.OK}
    finally:
        world.close()


def running(world) -> int:
    return sum(job.state == "running" for job in world.fake.jobs())


def test_an_array_longer_than_max_running_is_one_submission_where_the_scheduler_throttles(world_with):
    world = world_with(slots=8)
    world.begin(max_running=2)
    world.do(*world.tasks(9, "true"))
    assert world.fake.calls()["sbatch"] == 1


def test_max_submitted_counts_elements_and_is_refilled(world_with):
    world = world_with(slots=2)
    world.begin(max_submitted=4)
    world.submit(*world.tasks(12))
    most = 0
    while world.live:
        world.turn()
        alive = sum(job.state in ("pending", "running") for job in world.fake.jobs())
        most = max(most, alive)
    assert most <= 4
    assert {outcome.reason for outcome in world.finish()} == {EndReason.OK}
    assert world.fake.calls()["sbatch"] <= 9


def test_a_refusal_fails_that_task_in_the_schedulers_words(world_with):
    world = world_with(partitions=("main",))
    bad = world.task(resources=Resources(partition="nowhere"), rule="bad")
    good = world.task(rule="good")
    refused, accepted = world.do(bad, good)
    assert refused.reason is EndReason.NEVER_STARTED
    assert "invalid partition" in refused.message.lower()
    assert accepted.reason is EndReason.OK


def test_a_limit_waits_and_fails_nothing(world_with):
    world = world_with(max_submitted=3, slots=4)
    outcomes = world.do(*world.tasks(10, "sleep 0.05"))
    assert {outcome.reason for outcome in outcomes} == {EndReason.OK}
    assert len({(job.job, job.index) for job in world.fake.jobs()}) == 10
    assert "submission_limited" in world.codes()


def test_a_transient_answer_is_tried_again(world):
    world.fake.down()
    world.submit(world.task())
    world.for_seconds(0.5)
    assert world.live
    world.fake.up()
    assert world.finish()[0].reason is EndReason.OK
    assert len(world.fake.jobs()) == 1


def test_an_answer_that_is_lost_after_acceptance_is_looked_for_by_name(world):
    world.fake.script("lose_answer", times=1)
    (outcome,) = world.do(world.task("echo x >> log"))
    assert outcome.reason is EndReason.OK
    assert len(world.fake.jobs()) == 1
    assert world.text("log") == "x\n"
    assert "submission_unclear" in world.codes()


def test_an_array_whose_answer_was_lost_is_found_whole(world):
    world.fake.script("lose_answer", times=1)
    outcomes = world.do(*world.tasks(5))
    assert {outcome.reason for outcome in outcomes} == {EndReason.OK}
    assert len(world.fake.jobs()) == 5


def test_an_unclear_answer_without_a_job_leads_to_another_try(world):
    world.fake.script("say", command="sbatch", times=1, code=0, words="welcome to the cluster")
    (outcome,) = world.do(world.task())
    assert outcome.reason is EndReason.OK
    assert len(world.fake.jobs()) == 1
    assert "submitted_again" in world.codes()


def test_a_banner_before_the_answer_is_no_trouble(world):
    world.fake.script("banner", words="*** maintenance on 2026-12-24, job 99 ***\n")
    (outcome,) = world.do(world.task())
    assert outcome.reason is EndReason.OK


def test_a_submission_that_hangs_is_ended_and_looked_for(world):
    world.begin(command_timeout=1.0)
    world.fake.script("hang", command="sbatch", seconds=6.0, times=1)
    (outcome,) = world.do(world.task("echo x >> log"))
    assert outcome.reason is EndReason.OK
    assert world.text("log") == "x\n"


def test_options_that_the_engine_owns_are_refused_by_name(world):
    with pytest.raises(OptionError, match="--job-name"):
        world.begin(extra_args=("--job-name=mine",))
    (answer,) = world.submit(world.task(resources=Resources(extra_args=("--array=1-9",))))
    assert isinstance(answer, Refused)
    assert "--array" in answer.message


def test_the_users_other_options_are_passed_on(world):
    world.begin(extra_args=("--nice=5",))
    world.do(world.task())
    (call,) = [args for _, name, args in world.fake.log() if name == "sbatch"]
    assert "--nice=5" in call


def test_names_carry_prefix_and_rule_as_far_as_they_fit(world):
    one = world.task(rule="align")
    assert name_of(one, "lab_", 120) == f"lab_{one.name}.align"
    assert name_of(one, "", 15).startswith(one.name)
    assert len(name_of(one, "a_very_long_prefix", 15)) == 15
    assert name_of(one, "a_very_long_prefix", 15).endswith(one.name)
    assert name_of(one, "9lives", 120) == f"t9lives{one.name}.align"


def test_no_secret_stands_in_the_script_and_its_file_goes_at_the_end(world):
    one = world.task(
        'echo "$TOKEN" | tr a-z A-Z > made', secrets=("TOKEN",), env={"TOKEN": "hunter2"}, private_log=True
    )
    world.submit(one)
    world.until(lambda: world.sent() and os.path.exists(world.sent()[0].script), "the script")
    (folder,) = world.sent()
    assert os.stat(folder.secrets(one.n)).st_mode & 0o777 == 0o600
    (outcome,) = world.finish()
    assert outcome.reason is EndReason.OK
    assert world.text("made") == "HUNTER2\n"
    assert not os.path.exists(folder.secrets(one.n))
    assert "hunter2" not in "".join(
        path.read_text() for path in Path(folder.root).iterdir() if path.is_file()
    )


def test_the_preview_is_what_is_sent(world):
    batch = world.tasks(3, "true")
    ((script, argv),) = world.backend.preview(batch)
    assert not world.sent()
    world.do(*batch)
    (folder,) = world.sent()
    assert Path(folder.script).read_text() == script
    (call,) = [args for _, name, args in world.fake.log() if name == "sbatch"]
    assert call == argv[1:]


def test_a_script_to_run_by_hand_needs_no_scheduler(world):
    script = world.folder / "again.sh"
    script.write_text(world.backend.render_script(world.task("exit 7")))
    assert subprocess.run(["sh", script], check=False).returncode == 7


def test_closing_waits_for_the_answer_that_is_on_its_way(world):
    world.fake.script("hang", command="sbatch", seconds=0.5, times=1)
    backend = world.begin()
    world.submit(world.task())
    world.until(lambda: world.sent() and os.path.exists(world.sent()[0].script), "the script")
    backend.close()
    assert Path(world.sent()[0].id).read_text() == "1\n"


def test_a_folder_that_cannot_be_made_fails_the_task_and_says_so(world):
    Path(world.run.jobs).write_text("in the way")
    (outcome,) = world.do(world.task())
    assert outcome.reason is EndReason.NEVER_STARTED
    assert "jobs" in outcome.message


def test_cancelled_before_it_was_submitted_it_never_is(world):
    world.begin(max_submitted=1)
    first, second = world.task("until test -e go; do sleep 0.02; done"), world.task()
    world.submit(first, second)
    world.until(lambda: world.fake.jobs(), "the first")
    world.backend.cancel([second.name])
    world.until(lambda: second.name not in world.live, "its end")
    assert world.outcome(second.name).reason is EndReason.CANCELLED
    (world.folder / "go").touch()
    world.finish()
    assert len(world.fake.jobs()) == 1


def test_answers_are_in_order_and_under_their_names(world):
    batch = world.tasks(3)
    assert world.submit(*batch) == [Accepted(one.name) for one in batch]
    world.finish()

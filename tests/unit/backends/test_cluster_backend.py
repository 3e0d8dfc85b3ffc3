"""The backend over fake schedulers: cancelling, figures, adoption after a crash, what it leaves behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from treadle.backends.cluster.cancel_run import Cancelled, cancel_jobs
from treadle.engine.backend import Accepted, JobStatus, Refused
from treadle.plan.task import Policy
from treadle.records.event import EndReason

WAITS = "touch up$TREADLE_ATTEMPT; until test -e go; do sleep 0.02; done"
KINDS = ["slurm", "pbs", "torque", "sge", "lsf"]


def alive(world) -> list[object]:
    return [job for job in world.fake.jobs() if job.state in ("pending", "running", "suspended", "ending")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_on_every_scheduler(world_with, kind):
    world = world_with(kind)
    batch = [world.task(f"echo {n} > out{n}; exit {n % 3}", outputs=(f"out{n}",)) for n in range(6)]
    outcomes = world.do(*batch)
    assert [outcome.exit_code for outcome in outcomes] == [0, 1, 2, 0, 1, 2]
    assert [world.text(f"out{n}") for n in range(6)] == [f"{n}\n" for n in range(6)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_of_one_rule_can_be_cancelled_whole(world_with, kind):
    world = world_with(kind, slots=2)
    batch = world.tasks(5, "sleep 300")
    world.submit(*batch)
    world.until(lambda: len(world.fake.jobs()) == 5, "all of it")
    world.backend.cancel([one.name for one in batch])
    assert {outcome.reason for outcome in world.finish()} == {EndReason.CANCELLED}
    assert alive(world) == []


def test_cancelling_goes_in_one_call_and_is_verified(world):
    batch = world.tasks(30, "sleep 300")
    world.submit(*batch)
    world.until(lambda: len(world.fake.jobs()) == 30, "all of it")
    world.backend.cancel([one.name for one in batch])
    world.finish()
    (call,) = [args for _, name, args in world.fake.log() if name == "scancel"]
    assert call == ["1"]  # the array as a whole


def test_single_elements_are_cancelled_by_their_own_ids(world):
    first, second, third = world.tasks(3, WAITS)
    world.submit(first, second, third)
    world.until(lambda: len(world.fake.jobs()) == 3, "all of it")
    world.backend.cancel([second.name])
    world.until(lambda: second.name not in world.live, "its end")
    (world.folder / "go").touch()
    world.finish()
    assert [world.outcome(one.name).reason.value for one in (first, second, third)] == [
        "ok", "cancelled", "ok",
    ]  # fmt: skip


def test_what_is_cancelled_on_its_way_is_cancelled_when_it_is_there(world):
    world.fake.script("hang", command="sbatch", seconds=0.6, times=1)
    one = world.task("sleep 300")
    world.submit(one)
    world.until(lambda: world.sent() and os.path.exists(world.sent()[0].script), "the script")
    world.backend.cancel([one.name])
    assert world.finish()[0].reason is EndReason.CANCELLED
    assert alive(world) == []


def test_cancelling_a_stranger_is_nothing(world):
    world.backend.cancel(["no-such-job"])
    world.for_seconds(0.1)
    assert "scancel" not in world.fake.calls()


def test_accounting_is_asked_once_for_all_that_settled(world):
    world.do(*world.tasks(20))
    world.for_seconds(1.0)
    assert world.backend.counts()["accounting"] <= 6


def test_a_provisional_success_is_confirmed_by_accounting(world):
    one = world.task()
    world.do(one)
    ends = [report for report in world.reports[one.name] if report.outcome is not None]
    assert [report.provisional for report in ends] in ([True, False], [False])
    assert ends[-1].outcome.reason is EndReason.OK


def test_contrary_news_that_come_late_take_a_success_back(world_with):
    world = world_with(lag=1.0)
    world.fake.script("oom_unseen")
    one = world.task()
    world.do(one)
    assert world.outcome(one.name).reason is EndReason.OOM


def test_an_end_brings_what_the_job_noted_of_its_files(world):
    (world.folder / "in").write_text("x")
    one = world.task("cat in > made", outputs=("made",))
    world.do(one)
    (written,) = [report.written for report in world.reports[one.name] if report.provisional is False
                  and report.outcome is not None]  # fmt: skip
    assert [(each.index, each.kind, each.size) for each in written.outputs] == [(0, "f", 1)]
    assert len(written.outputs[0].digest) == 64


def test_the_log_is_named_and_what_the_scheduler_said_beside_it(world):
    one = world.task("echo hello")
    world.do(one)
    assert world.backend.logs(one.name) == [one.log]
    (folder,) = world.sent()
    Path(folder.log).write_text("slurmstepd: something\n")
    assert world.backend.logs(one.name) == [one.log, folder.log]
    assert world.backend.logs("stranger") == []


# The next driver


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_of_a_killed_driver_are_adopted(world_with, kind):
    world = world_with(kind)
    batch = world.tasks(3, WAITS)
    world.submit(*batch)
    world.until(lambda: all((world.folder / f"up{one.env['TREADLE_ATTEMPT']}").exists() for one in batch))
    world.begin()  # the other one is never asked again
    assert world.adopt(*batch) == [Accepted(one.name) for one in batch]
    world.until(lambda: len(world.reports) == 3 and all(world.reports.values()), "news of them")
    (world.folder / "go").touch()
    assert {outcome.reason for outcome in world.finish()} == {EndReason.OK}
    assert len(world.fake.jobs()) == 3


def test_a_job_that_ended_while_nobody_looked_is_taken_by_its_exit_file(world):
    good, bad = world.task("true"), world.task("exit 4")
    world.submit(good, bad)
    world.until(lambda: len(world.fake.jobs()) == 2, "both")
    world.fake.wait()
    world.fake.each("forget")
    world.begin()
    world.adopt(good, bad)
    world.finish()
    assert world.outcome(good.name).reason is EndReason.OK
    assert world.outcome(bad.name).exit_code == 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_whose_id_was_never_written_down_is_found_by_its_name(world_with, kind):
    world = world_with(kind)
    batch = world.tasks(3, WAITS)
    world.submit(*batch)
    world.until(lambda: len(world.fake.jobs()) == 3 and os.path.exists(world.sent()[0].id), "all")
    (folder,) = world.sent()
    before = Path(folder.id).read_text()
    os.unlink(folder.id)
    world.begin()
    world.adopt(*batch)
    world.until(lambda: os.path.exists(folder.id), "its id")
    assert Path(folder.id).read_text() == before
    (world.folder / "go").touch()
    assert {outcome.reason for outcome in world.finish()} == {EndReason.OK}
    assert len(world.fake.jobs()) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_was_lost_runs_nothing_twice(world_with, kind):
    world = world_with(kind)
    world.fake.script("lose_answer", times=1)
    outcomes = world.do(*world.tasks(3, "echo $TREADLE_ATTEMPT >> log"))
    assert {outcome.reason for outcome in outcomes} == {EndReason.OK}
    assert len(world.text("log").splitlines()) == 3
    assert len(world.fake.jobs()) == 3


def test_an_id_that_the_journal_has_is_enough(world):
    one = world.task(WAITS)
    world.submit(one)
    world.until(lambda: world.sent() and os.path.exists(world.sent()[0].id), "its id")
    os.unlink(world.sent()[0].id)
    world.begin()
    world.adopt(one, job="1")
    (world.folder / "go").touch()
    assert world.finish()[0].reason is EndReason.OK
    by_name = [args for _, name, args in world.fake.log() if name == "squeue" and "-n" in args]
    assert by_name == []


def test_one_that_was_never_submitted_is_refused(world):
    (answer,) = world.adopt(world.task())
    assert isinstance(answer, Refused)


def test_one_whose_submission_never_arrived_is_interrupted(world):
    one = world.task()
    world.submit(one)
    world.finish()
    (folder,) = world.sent()
    os.unlink(folder.id)
    for start in Path(folder.root).glob("1.*"):
        os.rename(start, world.folder / "elsewhere")
    text = Path(folder.elements).read_text()
    Path(folder.elements).write_text(text.replace(f'"name":"{one.name}', '"name":"tnobody-1'))
    world.begin()
    assert isinstance(world.adopt(one)[0], Accepted)
    world.until(lambda: not world.live, "its end")
    assert world.outcome(one.name).reason is EndReason.INTERRUPTED


def test_a_job_that_arrives_when_its_attempt_was_given_up_does_not_begin_it(world):
    """The command of a killed driver goes on without it, and may be late."""
    one = world.task("echo begun >> log", policy=Policy(restartable=True))
    folder = on_its_way(world, one)
    world.begin()
    world.adopt(one)
    world.until(lambda: not world.live, "its end")
    assert world.outcome(one.name).reason is EndReason.INTERRUPTED
    assert subprocess.run(["sh", folder.script]).returncode != 0
    assert not (world.folder / "log").exists()


def test_a_job_that_arrives_when_its_run_was_cancelled_does_not_begin(world):
    one = world.task("echo begun >> log")
    folder = on_its_way(world, one)
    done = cancel_jobs(
        world.settings(), {world.run: None}, workdir=str(world.folder), user=world.fake.site.user
    )
    assert done == Cancelled()
    assert subprocess.run(["sh", folder.script]).returncode != 0
    assert not (world.folder / "log").exists()


def on_its_way(world, one):
    """The folder of a submission that the scheduler has not heard of yet."""
    world.fake.script("say", command="sbatch", words="try again", code=1)
    world.submit(one)
    world.until(lambda: world.fake.calls().get("sbatch"), "a try")
    (folder,) = world.sent()
    return folder


def test_one_that_began_and_left_its_end_needs_no_scheduler_to_know_it(world):
    one = world.task("echo x > made", outputs=("made",))
    world.submit(one)
    world.finish()
    (folder,) = world.sent()
    os.unlink(folder.id)
    text = Path(folder.elements).read_text()
    Path(folder.elements).write_text(text.replace(f'"name":"{one.name}', '"name":"tnobody-1'))
    world.reports.clear()
    world.begin()
    world.adopt(one)
    world.until(lambda: not world.live, "its end")
    assert world.outcome(one.name).reason is EndReason.OK


def test_an_answer_that_fails_is_no_reason_to_give_an_attempt_up(world):
    one = world.task(WAITS)
    world.submit(one)
    world.until(lambda: world.fake.jobs() and world.sent() and os.path.exists(world.sent()[0].id), "its id")
    os.unlink(world.sent()[0].id)
    world.fake.down()
    world.begin()
    world.adopt(one)
    world.for_seconds(1.5)
    assert one.name in world.live
    world.fake.up()
    (world.folder / "go").touch()
    assert world.finish()[0].reason is EndReason.OK
    assert len(world.fake.jobs()) == 1


def test_an_adopted_job_can_be_cancelled(world):
    one = world.task("sleep 300")
    world.submit(one)
    world.until(lambda: world.fake.jobs() and world.sent() and os.path.exists(world.sent()[0].id), "its id")
    world.begin()
    world.adopt(one)
    world.backend.cancel([one.name])
    assert world.finish()[0].reason is EndReason.CANCELLED
    assert alive(world) == []


def test_a_start_that_the_wrapper_saw_before_the_queue_is_told(world):
    one = world.task(WAITS)
    world.begin(poll_interval=30.0)
    world.submit(one)
    world.until(lambda: any(r.status is JobStatus.RUNNING for r in world.reports.get(one.name, ())), "start")
    (world.folder / "go").touch()
    world.fake.wait()


def test_two_drivers_in_two_folders_do_not_meet(world_with, tmp_path):
    world = world_with()
    other = tmp_path / "other"
    other.mkdir()
    first, second = world.task("echo a > a"), world.task("echo b > b", cwd=str(other))
    assert {outcome.reason for outcome in world.do(first, second)} == {EndReason.OK}
    assert (other / "b").read_text() == "b\n"

"""Packs: many attempts in one job, each with an end, a log and a time limit of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_jobs import Job
from msgspec.structs import replace

from treadle.backends.cluster.dialect import Phase, Row
from treadle.backends.cluster.exit_file import ExitFile, Witness
from treadle.backends.cluster.held import read_elements
from treadle.backends.cluster.packs import fits, in_a_row, pack_size, together
from treadle.backends.cluster.script import JobElement
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.verdict import Ended, Facts, InFlight, LookAgain, verdict
from treadle.engine.backend import JobStatus, Refused, Submission
from treadle.plan.task import Policy, Resources, ScheduledTask
from treadle.records.event import EndReason
from treadle.rules.schema import Partition

KINDS = ("slurm", "pbs", "torque", "sge", "lsf")
SETTINGS = ClusterSettings(backend="slurm")
TEN = Policy(pack=10)
WAITS = "until test -e go; do sleep 0.02; done"


def submission(policy: Policy, limit: int | None = None, **wanted) -> Submission:
    task = ScheduledTask(id="t/n=1", rule="t", policy=policy)
    resources = Resources(time_limit=limit, **wanted)
    return Submission(
        task=task, attempt=1, n=1, name="t-1", argv=("true",), env={}, cwd="/w", log="l", resources=resources
    )


# How many, and what they need


def test_a_pack_is_so_many_tasks_as_its_rule_says():
    assert pack_size(submission(Policy()), SETTINGS) == 1
    assert pack_size(submission(TEN), SETTINGS) == 10


def test_a_pack_by_time_is_what_fits_in_it_and_at_least_one_task():
    half_an_hour = Policy(pack_time=1800)
    assert pack_size(submission(half_an_hour, 300), SETTINGS) == 6
    assert pack_size(submission(half_an_hour, 4000), SETTINGS) == 1
    assert pack_size(submission(half_an_hour), replace(SETTINGS, walltime=600)) == 3
    assert pack_size(submission(half_an_hour), SETTINGS) == 1


def test_a_pack_is_no_longer_than_the_site_allows_a_job_to_be():
    short, long = Partition(name="short", time_limit=1500), Partition(name="long", time_limit=2500, threads=2)
    here = replace(SETTINGS, partitions=(short, long))
    assert pack_size(submission(TEN, 300), here) == 8
    assert pack_size(submission(TEN, 300, threads=4), here) == 5
    assert pack_size(submission(TEN, 300, partition="short"), here) == 5
    bounded = replace(here, ceilings=Partition(name="", time_limit=900, gpu=-1))
    assert pack_size(submission(TEN, 300), bounded) == 3


def test_a_job_asks_for_the_time_of_all_and_for_the_rest_of_each():
    one = submission(TEN, 300, threads=4, memory=1 << 30)
    wanted = together([[one] * 3, [one] * 2], SETTINGS)
    assert wanted == Resources(time_limit=900, threads=4, memory=1 << 30)
    assert together([[one]], SETTINGS).time_limit == 300
    assert together([[submission(TEN)] * 3], SETTINGS).time_limit is None


# The wrapper


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_one_of_a_pack_that_goes_over_its_own_time_ends_and_the_next_begins(tmp_path, shell):
    job = Job(tmp_path / "w", shell)
    slow = job.submission(1, "sh", "-c", "trap '' TERM; sleep 300 & wait; sleep 300", grace=0.2)
    quick = job.submission(2, "sh", "-c", "echo >made", outputs=["made"])
    job.write(JobElement(submissions=(slow, quick), limits=(1, 1), independent=True))
    assert job.run() != 0
    assert (job.end(1).asked, job.end(1).done) == (15, False)
    assert (job.end(2).asked, job.end(2).done) == (0, True)


def test_one_of_a_pack_that_nobody_wants_ends_and_the_next_begins(tmp_path):
    job = Job(tmp_path / "w")
    slow = job.submission(1, "sh", "-c", "touch ready; exec sleep 300", grace=0.2)
    other = job.submission(2, "sh", "-c", "echo >never")
    last = job.submission(3, "sh", "-c", "echo >made", outputs=["made"])
    job.write(JobElement(submissions=(slow, other, last), limits=(50, 50, 50), independent=True))
    running = job.start()
    job.until("ready")
    for n in (1, 2):
        Path(job.folder.unwanted(n)).touch()
    running.wait(60)
    assert job.end(1).asked == 15
    assert job.end(2).skipped
    assert not (job.work / "never").exists()
    assert job.end(3).done


def test_what_needs_one_that_did_not_end_well_or_is_not_there_does_not_begin(tmp_path):
    job = Job(tmp_path / "w")
    bad = job.submission(1, "sh", "-c", "exit 3")
    good = job.submission(2, "true")
    texts = {3: (1,), 4: (2,), 5: (3,), 6: (9,), 7: (2, 4)}
    others = [job.submission(n, "sh", "-c", f"echo >made{n}", after=after) for n, after in texts.items()]
    job.write(JobElement(submissions=(bad, good, *others), independent=True))
    assert job.run() == 3
    assert [n for n in texts if (job.work / f"made{n}").exists()] == [4, 7]
    assert [n for n in texts if job.end(n).skipped] == [3, 5, 6]


def test_a_unit_needs_one_place_that_has_enough_for_long_enough():
    one, two = Resources(threads=4, time_limit=600), Resources(threads=1, memory=1 << 30, time_limit=1200)
    assert in_a_row([one, two], None) == Resources(threads=4, memory=1 << 30, time_limit=1800)
    assert in_a_row([one, Resources()], None).time_limit is None
    assert in_a_row([one, Resources()], 60).time_limit == 660
    assert fits([one, two], SETTINGS)
    assert not fits([one, replace(two, partition="other")], SETTINGS)
    short = replace(SETTINGS, partitions=(Partition(name="q", time_limit=1799),))
    assert not fits([one, two], short)
    assert fits([one, one], short)
    assert not fits([one, two], replace(SETTINGS, ceilings=Partition(name="", time_limit=1500, gpu=-1)))


# The verdict

TASK = ScheduledTask(id="t", rule="t", policy=TEN)
GOOD = ExitFile(exit_code=0, done=True, start=10.0, end=20.0, oom_kills=None)
RUNNING = Row("7", Phase.RUNNING, "RUNNING")


def judged(
    exit: ExitFile | None, row: Row | None = RUNNING, *, starts: int = 1, limit: int | None = None, **more
):
    over = {} if row is not None and row.phase is not Phase.ENDED else {"over": 900.0}
    fields = {
        "now": 1000.0,
        "known": 900.0,
        "row": row,
        "last": row,
        "polled": 1000.0,
        "looked": 1000.0,
        **over,
    }
    facts = Facts(**{**fields, "witness": Witness(exit, starts=starts), "several": True, **more})
    return verdict(facts, TASK, limit, SETTINGS)


def reason(exit: ExitFile | None, row: Row | None = RUNNING, **more) -> EndReason:
    found = judged(exit, row, **more)
    assert isinstance(found, Ended), found
    assert (found.provisional, found.remove) == (False, False)
    return found.outcome.reason


def test_each_of_a_pack_settles_while_its_job_goes_on():
    assert reason(GOOD) is EndReason.OK
    assert reason(replace(GOOD, exit_code=3, done=False)) is EndReason.APP
    assert reason(replace(GOOD, exit_code=137, signal=9, done=False, oom_kills=1)) is EndReason.OOM
    assert reason(replace(GOOD, exit_code=143, asked=15, done=False, end=60.0), limit=50) is EndReason.TIME
    assert reason(replace(GOOD, exit_code=1, skipped=True, done=False), cancelled=True) is EndReason.CANCELLED
    assert reason(replace(GOOD, exit_code=1, skipped=True, done=False)) is EndReason.INTERRUPTED


def test_what_only_the_job_can_tell_waits_for_its_end():
    killed = replace(GOOD, exit_code=137, signal=9, done=False)
    assert isinstance(judged(killed), InFlight)
    out = Row("7", Phase.ENDED, "OUT_OF_MEMORY", ended=EndReason.OOM)
    assert reason(killed, out) is EndReason.OOM
    asked = replace(GOOD, exit_code=143, asked=15, done=False)
    assert isinstance(judged(asked, limit=500), InFlight)
    assert reason(asked, Row("7", Phase.ENDED, "PREEMPTED", ended=EndReason.APP), limit=500) is EndReason.APP


def test_the_state_of_the_job_says_nothing_of_one_that_wrote_its_end():
    late = Row("7", Phase.ENDED, "TIMEOUT", ended=EndReason.TIME)
    assert reason(GOOD, late) is EndReason.OK
    assert reason(replace(GOOD, exit_code=3, done=False), late) is EndReason.APP


def test_one_that_never_had_its_turn_is_interrupted_and_one_that_had_is_not():
    late = Row("7", Phase.ENDED, "TIMEOUT", ended=EndReason.TIME)
    assert reason(None, late, starts=0) is EndReason.INTERRUPTED
    assert reason(None, late) is EndReason.TIME
    assert isinstance(judged(None, late, starts=0, now=905.0, looked=905.0), LookAgain)
    assert reason(None, late, starts=0, cancelled=True) is EndReason.CANCELLED


# A scheduler


@pytest.mark.parametrize("kind", KINDS)
def test_a_pack_is_one_job_whose_attempts_end_each_in_its_own_way(world_with, kind):
    world = world_with(kind)
    texts = ["echo good", "echo bad; exit 3", "true", "kill -9 $$"]
    batch = [world.task(text, policy=TEN, time_limit=60) for text in texts]
    outcomes = world.do(*batch)
    assert [outcome.exit_code for outcome in outcomes] == [0, 3, 0, 137]
    assert len(world.fake.jobs()) == 1
    assert Path(batch[1].log).read_text() == "bad\n"
    (folder,) = world.sent()
    elements = read_elements(folder)
    assert elements is not None
    assert not elements.array
    assert [(one.n, one.index) for one in elements.elements] == [(1, 0), (2, 0), (3, 0), (4, 0)]


@pytest.mark.parametrize("kind", KINDS)
def test_packs_are_elements_of_one_array(world_with, kind):
    world = world_with(kind)
    batch = world.tasks(5, 'echo "$TREADLE_ATTEMPT" >> all', policy=Policy(pack=2))
    assert {one.reason for one in world.do(*batch)} == {EndReason.OK}
    assert len(world.fake.jobs()) == 3
    assert sorted(world.text("all").split()) == sorted(one.env["TREADLE_ATTEMPT"] for one in batch)


def test_packs_count_as_jobs_in_the_window(world):
    world.begin(max_submitted=2)
    batch = world.tasks(6, WAITS, policy=Policy(pack=3))
    world.submit(*batch)
    world.until(lambda: len(world.fake.jobs()) == 2, "both")
    (world.folder / "go").touch()
    assert {one.reason for one in world.finish()} == {EndReason.OK}
    assert world.backend._submitter.window.in_flight == 0


def test_the_time_of_a_pack_is_asked_for_as_a_sum(world):
    world.do(*world.tasks(3, policy=TEN, time_limit=120))
    (folder,) = world.sent()
    assert "--time=0-00:06:00" in Path(folder.script).read_text()


def test_one_of_a_pack_settles_before_the_others_have_begun(world):
    first, second, third = (world.task(text, policy=TEN) for text in ("exit 5", WAITS, "true"))
    world.submit(first, second, third)
    world.until(lambda: first.name not in world.live, "its end")
    running = [report.status for report in world.reports.get(third.name, [])]
    assert JobStatus.RUNNING not in running
    (world.folder / "go").touch()
    world.finish()
    assert [world.outcome(one.name).exit_code for one in (first, second, third)] == [5, 0, 0]


def test_one_of_a_pack_is_cancelled_and_the_others_go_on(world):
    first, second, third = (
        world.task(text, policy=TEN, time_limit=50) for text in ("touch at; sleep 300", "true", "true")
    )
    world.submit(first, second, third)
    world.until_there("at")
    world.backend.cancel([first.name, second.name])
    world.finish()
    reasons = [world.outcome(one.name).reason for one in (first, second, third)]
    assert reasons == [EndReason.CANCELLED, EndReason.CANCELLED, EndReason.OK]
    assert "scancel" not in world.fake.calls()


def test_a_pack_of_which_nothing_is_wanted_is_cancelled_as_a_job(world):
    batch = world.tasks(3, "sleep 300", policy=TEN)
    world.submit(*batch)
    world.until(lambda: any(held.begun for held in world.backend._by_name.values()), "its begin")
    world.backend.cancel([one.name for one in batch])
    assert {one.reason for one in world.finish()} == {EndReason.CANCELLED}
    assert [args for _, name, args in world.fake.log() if name == "scancel"] == [["1"]]


def test_a_pack_outlives_its_driver_and_all_of_it_is_adopted(world):
    batch = [world.task(text, policy=TEN) for text in (f"{WAITS}; echo >> first", "exit 4", "echo >> third")]
    world.submit(*batch)
    world.until(lambda: len(world.fake.jobs()) == 1, "it")
    world.backend.close()
    world.begin()
    assert not any(isinstance(one, Refused) for one in world.adopt(*batch))
    (world.folder / "go").touch()
    world.finish()
    assert [world.outcome(one.name).exit_code for one in batch] == [0, 4, 0]
    assert (world.text("first"), world.text("third")) == ("\n", "\n")
    assert len(world.fake.jobs()) == 1


def test_one_of_a_pack_has_no_more_time_than_it_asked_for(world):
    batch = [
        world.task(text, policy=TEN, time_limit=2)
        for text in ("true", "trap '' TERM; touch at; sleep 300", "true")
    ]
    world.submit(*batch)
    world.until_there("at")
    world.finish()
    reasons = [world.outcome(one.name).reason for one in batch]
    assert reasons == [EndReason.OK, EndReason.TIME, EndReason.OK]


def test_a_pack_by_time_without_a_time_limit_says_that_nothing_is_packed(world):
    world.do(*world.tasks(2, policy=Policy(pack_time=600)))
    assert world.codes().count("not_packed") == 1
    assert len(world.fake.jobs()) == 2

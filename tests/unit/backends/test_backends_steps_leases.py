"""Steps through the local backend that somebody else makes, too: deferred, freed, taken."""

from __future__ import annotations

import time

from step_driver import BOTH, begun, writes

from treadle.engine.backend import JobStatus
from treadle.plan.task import Where
from treadle.records.event import EndReason
from treadle.steps.owner import this_owner
from treadle.steps.spec import StepSpec
from treadle.steps.stores import store_for


@BOTH
def test_a_step_that_someone_else_makes_is_deferred_and_then_freed(steps, where):
    spec = StepSpec("tok", fn=writes("ours"))
    store = store_for(steps.path(spec))
    lease = store.claim(steps.path(spec), this_owner("other.7"))
    steps.submit(spec, where)
    steps.until(lambda: steps.reports)
    assert steps.told() == [JobStatus.DEFERRED]
    assert "other.7" in steps.reports[0].reason
    steps.turn(0.3)
    assert steps.told() == [JobStatus.DEFERRED]
    lease.release()
    steps.until(lambda: not steps.live)
    assert steps.told() == [JobStatus.DEFERRED, JobStatus.FREED]
    assert steps.perform(spec, where).reason is EndReason.OK


@BOTH
def test_of_two_runs_one_makes_it_and_the_other_takes_it(steps, other, where, tmp_path):
    def fn(out):
        with open(tmp_path / "calls", "a") as file:
            file.write("x")
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        writes("once")(out)

    spec = StepSpec("tok", fn=fn)
    steps.submit(spec, where)
    begun(steps, tmp_path / "calls")
    other.submit(spec, where)
    other.until(lambda: other.told() == [JobStatus.DEFERRED])
    (tmp_path / "go").touch()
    steps.until(lambda: not steps.live)
    other.until(lambda: not other.live)
    assert other.told() == [JobStatus.DEFERRED, JobStatus.FREED]
    assert other.perform(spec, where).reason is EndReason.OK
    assert (tmp_path / "calls").read_text() == "x"
    assert other.book.records[spec.task_id] == steps.book.records[spec.task_id]


def test_waiting_for_someone_else_can_be_cancelled(steps):
    spec = StepSpec("tok", fn=writes("ours"))
    lease = store_for(steps.path(spec)).claim(steps.path(spec), this_owner("other.7"))
    job = steps.submit(spec, Where.THREAD)
    steps.until(lambda: steps.reports)
    steps.backend.cancel([job])
    steps.until(lambda: not steps.live)
    lease.release()
    assert steps.ended[spec.task_id].reason is EndReason.CANCELLED


def test_a_worker_whose_lease_was_taken_ends_and_waits_for_the_other(steps, tmp_path):
    """The lease is lost as its next beat finds out; that is in 30 s, so the function makes it come sooner."""

    def fn(out):
        from treadle.steps import heartbeats, lease
        from treadle.steps.local_store import LocalStore

        lease.BEAT = 0.0
        now = [0.0]
        elsewhere = LocalStore(monotonic=lambda: now[0])
        for now[0] in (0.0, 100.0):  # 90 s of silence, by its own clock
            elsewhere.claim(path, this_owner("usurper.1"))
        heartbeats.of_this_process.beat()
        time.sleep(300)

    spec = StepSpec("train", fn=fn)
    path = steps.path(spec)
    steps.submit(spec)
    steps.until(lambda: steps.reports)
    assert steps.told() == [JobStatus.DEFERRED]
    assert "usurper.1" in steps.reports[0].reason

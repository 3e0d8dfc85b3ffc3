"""What a tally makes of jobs in a scheduler's queue, taken over, taken back, left alone."""

from __future__ import annotations

from treadle.records.event import (
    AttemptStarted,
    AttemptSubmitted,
    End,
    EndReason,
    Event,
    EvidenceWithdrawn,
    JobSeen,
    Outcome,
    RunDetached,
    TaskSettled,
)
from treadle.report.tally import Tally


def intent(task: str, n: int, run: str = "") -> Event:
    return AttemptSubmitted(time=1.0, task=task, attempt=1, n=n, name=f"t-{n}", backend="slurm", run=run)


def waits(task: str, n: int) -> Event:
    return AttemptStarted(time=2.0, task=task, n=n, job=f"t-{n}", waiting=True)


def seen(task: str, n: int, state: str, reason: str = "", time: float = 3.0) -> Event:
    return JobSeen(time=time, task=task, n=n, state=state, job=str(100 + n), reason=reason)


def tally(*events: Event) -> Tally:
    found = Tally()
    found.feed(events)
    return found


def test_a_job_in_the_queue_waits_and_does_not_run() -> None:
    found = tally(intent("a", 1), waits("a", 1), seen("a", 1, "pending", "Priority"))
    assert found.running == []
    (one,) = found.waiting
    assert (one.task, one.job, one.reason) == ("a", "101", "Priority")


def test_it_runs_from_when_it_was_seen_to() -> None:
    found = tally(
        intent("a", 1), waits("a", 1), seen("a", 1, "running", time=5.0), seen("a", 1, "running", time=9.0)
    )
    assert found.waiting == []
    assert [one.since for one in found.running] == [5.0]


def test_one_that_was_requeued_waits_again() -> None:
    found = tally(intent("a", 1), waits("a", 1), seen("a", 1, "running"), seen("a", 1, "pending"))
    assert [one.task for one in found.waiting] == ["a"]


def test_an_attempt_that_was_taken_over_belongs_to_the_run_that_submitted_it() -> None:
    found = tally(intent("a", 7, run="20261129T000000Z-abcd"))
    assert found.origins == {7: "20261129T000000Z-abcd"}


def settled(state: End) -> Event:
    return TaskSettled(time=4.0, task="a", key="a", state=state, attempt=1, n=1)


def back(*, again: bool) -> Event:
    lost = Outcome(reason=EndReason.OOM)
    return EvidenceWithdrawn(time=5.0, task="a", key="a", attempt=1, n=1, outcome=lost, again=again)


def test_a_success_that_is_taken_back_counts_no_longer() -> None:
    again = tally(intent("a", 1), waits("a", 1), settled(End.SUCCEEDED), back(again=True))
    assert (again.ends[End.SUCCEEDED], again.settled, again.failures) == (0, 0, [])
    told = settled(End.SUCCEEDED), back(again=False), settled(End.FAILED)
    for_good = tally(intent("a", 1), waits("a", 1), *told)
    assert (for_good.ends[End.SUCCEEDED], for_good.ends[End.FAILED], for_good.settled) == (0, 1, 1)
    assert [one.task for one in for_good.failures] == ["a"]


def test_jobs_that_were_left_are_counted() -> None:
    assert tally(RunDetached(time=9.0, exit_code=129, jobs=3)).left == 3

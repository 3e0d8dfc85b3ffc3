"""The fold of a run's events: what is on, and what only waits."""

from __future__ import annotations

from treadle.records.event import AttemptStarted, AttemptSubmitted, Noticed
from treadle.report.tally import Tally


def test_an_attempt_that_waits_for_someone_else_does_not_run() -> None:
    tally = Tally()
    tally.feed(
        [
            AttemptSubmitted(time=1.0, task="@a", attempt=1, n=1, name="t-1", backend="local"),
            AttemptStarted(time=2.0, task="@a", n=1, job="1"),
        ]
    )
    assert [one.task for one in tally.running] == ["@a"]
    tally.feed([Noticed(time=3.0, code="lease_held", task="@a", values={"holder": "them"})])
    assert tally.running == []
    tally.feed([AttemptStarted(time=4.0, task="@a", n=1, job="2")])
    assert [(one.since, one.job) for one in tally.running] == [(4.0, "2")]

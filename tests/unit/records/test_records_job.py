"""`JobRecord`: attempts as the journal tells them, equal when the same came of the same work."""

from __future__ import annotations

from msgspec.structs import replace

from treadle.base.layout import RunFolder
from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    AttemptSubmitted,
    End,
    EndReason,
    Evidence,
    FileRecord,
    Noticed,
    Outcome,
    TaskSettled,
    Usage,
)
from treadle.records.job import JobRecord, jobs_of

MADE = FileRecord("out", 3, 7, 9, "d1")
EVENTS = [
    AttemptSubmitted(time=1.0, task="a", attempt=1, n=1, name="r.1", backend="local"),
    AttemptStarted(time=2.0, task="a", n=1, job="77"),
    AttemptEnded(
        time=3.0, task="a", attempt=1, n=1, outcome=Outcome(reason=EndReason.APP, exit_code=2, host="h")
    ),
    AttemptSubmitted(time=4.0, task="a", attempt=2, n=2, name="r.2", backend="local"),
    AttemptStarted(time=5.0, task="a", n=2, job="78"),
    TaskSettled(
        time=9.0,
        task="a",
        key="out",
        state=End.SUCCEEDED,
        attempt=2,
        n=2,
        outcome=Outcome(exit_code=0, start=5.5, end=8.5, usage=Usage(cpu=1.5, memory=4096)),
        evidence=Evidence(identity="i", outputs=(MADE,)),
    ),
    AttemptSubmitted(time=10.0, task="b", attempt=1, n=3, name="r.3", backend="local"),
    AttemptSubmitted(time=11.0, task="c", attempt=1, n=4, name="r.4", backend="local"),
    AttemptStarted(time=12.0, task="c", n=4, job="79"),
]


def test_each_attempt_of_a_journal_is_one_record() -> None:
    first, second, third, fourth = jobs_of(EVENTS, RunFolder("/w/.treadle/runs/r"))
    assert (first.state, first.reason, first.exit_code, first.host) == ("failed", EndReason.APP, 2, "h")
    assert (second.state, second.started, second.ended) == ("succeeded", 5.5, 8.5)
    assert (second.cpu, second.memory, second.outputs) == (1.5, 4096, (MADE,))
    assert second.log == "/w/.treadle/runs/r/logs/2"
    assert (third.state, third.reason, third.job) == ("submitted", None, "")
    assert (fourth.state, fourth.started, fourth.job) == ("running", 12.0, "79")


def test_an_attempt_that_waits_for_who_is_at_it_has_not_begun() -> None:
    held = Noticed(time=13.0, code="lease_held", task="c", values={"holder": "somebody"})
    fourth = jobs_of([*EVENTS, held])[3]
    assert (fourth.state, fourth.started) == ("submitted", None)
    freed = AttemptStarted(time=14.0, task="c", n=4, job="80")
    fourth = jobs_of([*EVENTS, held, freed])[3]
    assert (fourth.state, fourth.started, fourth.job) == ("running", 14.0, "80")


def test_ids_times_host_and_usage_do_not_count_when_records_are_compared() -> None:
    one = jobs_of(EVENTS)[1]
    elsewhere = replace(
        one, backend="slurm", job="9", started=99.0, ended=100.0, host="n1", memory=None, log="x"
    )
    assert elsewhere == one
    assert hash(elsewhere) == hash(one)
    assert not (elsewhere != one)  # noqa: SIM202
    for other in (
        replace(one, exit_code=1),
        replace(one, reason=EndReason.OOM),
        replace(one, outputs=(FileRecord("out", 3, 7, 9, "d2"),)),
    ):
        assert other != one
    assert one != JobRecord(task="a", attempt=1)
    assert one != "a"

"""Jobs that outlive their driver, in the records: in flight, handed over, taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from records_story import DEAD, evidence, fresh, settled, started, submitted, write_journal

from treadle.base.layout import RunFolder, StateFolder
from treadle.plan.task import Resources
from treadle.records.event import (
    ENDING,
    AttemptEnded,
    AttemptHandedOver,
    AttemptStarted,
    AttemptSubmitted,
    EndReason,
    Event,
    EvidenceWithdrawn,
    JobSeen,
    Outcome,
    RunDetached,
    RunEnded,
)
from treadle.records.flight import Flights
from treadle.records.journal import is_ended, read_journal
from treadle.records.past import Last, load_past
from treadle.records.recover import hand_over, recover
from treadle.records.runs import new_run, prune

LATER = "20991129T110501Z-ab12"


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return fresh(tmp_path)


def sent(n: int, path: str, **fields: object) -> AttemptSubmitted:
    return submitted(n, path, backend="slurm", identity="i", **fields)


def run_of(state: StateFolder, *events: Event, now: float = 1_800_000_000.0) -> RunFolder:
    """A run that is gone, with these events behind its first."""
    folder = new_run(state, DEAD, now=now)
    write_journal(folder, [started(folder.run), *events])
    return folder


def keys(state: StateFolder) -> list[str]:
    return list(load_past(state).flights)


def test_that_a_driver_asked_for_the_end_of_a_job_is_known_to_all_that_take_it_over(
    state: StateFolder,
) -> None:
    asked = JobSeen(time=3.0, task="a", n=1, state=ENDING, reason="not heard: no answer in time")
    first = run_of(state, sent(1, "a"), asked, JobSeen(time=4.0, task="a", n=1, state="pending", job="501"))
    (flight,) = load_past(state).flights.values()
    assert (flight.doomed, flight.job) == (True, "501")
    run_of(state, sent(1, "a", run=first.run), now=1_800_000_100.0)
    (flight,) = load_past(state).flights.values()
    assert flight.doomed
    run_of(state, sent(2, "a"), now=1_800_000_200.0)
    (flight,) = load_past(state).flights.values()
    assert not flight.doomed


def test_a_job_is_in_flight_until_its_end_is_told(state: StateFolder) -> None:
    grown = Resources(memory=7)
    seen = JobSeen(time=3.0, task="a", n=1, state="pending", job="501")
    folder = run_of(
        state, sent(1, "a", grown=grown), AttemptStarted(time=3.0, task="a", n=1, job="t-1"), seen
    )
    (flight,) = load_past(state).flights.values()
    assert (flight.run, flight.n, flight.job, flight.grown) == (folder.run, 1, "501", grown)
    assert (flight.holder, flight.workflow, flight.since) == (folder.run, "flow", 2.0)


@pytest.mark.parametrize(
    "end",
    [
        settled(1, "a"),
        AttemptEnded(time=3.0, task="a", attempt=1, n=1, outcome=Outcome(reason=EndReason.APP)),
        AttemptHandedOver(time=3.0, task="a", n=1, by=LATER),
    ],
)
def test_an_end_of_any_kind_ends_that(state: StateFolder, end: Event) -> None:
    run_of(state, sent(1, "a"), end)
    assert keys(state) == []


def test_the_end_of_another_attempt_does_not(state: StateFolder) -> None:
    other = AttemptEnded(time=3.0, task="a", attempt=1, n=1, outcome=Outcome(reason=EndReason.APP))
    run_of(state, sent(1, "a"), other, sent(2, "a", attempt=2))
    assert [one.n for one in load_past(state).flights.values()] == [2]


def test_a_run_with_jobs_in_flight_stays_open_for_them_alone(state: StateFolder) -> None:
    folder = run_of(state, settled(3, "done"), sent(1, "a"), submitted(2, "here"))
    first = recover(state)
    assert first.runs == (folder.run,)
    assert [one.task for one in first.interrupted] == ["here"]
    assert list(first.past.flights) == ["a"]
    assert first.past.last("a") is None  # nobody interrupted it
    assert not is_ended(folder.events)
    last = read_journal(folder.events).events[-1]
    assert isinstance(last, RunDetached)
    assert (last.jobs, last.copied, last.mended) == (1, True, True)
    again = recover(state)
    assert (again.runs, again.interrupted) == ((), ())
    assert list(again.past.flights) == ["a"]
    assert read_journal(folder.events).events[-1] == last


def test_what_it_did_itself_is_older_than_what_later_runs_did(state: StateFolder) -> None:
    run_of(state, settled(3, "done"), sent(1, "a"))
    recover(state)
    new = settled(1, "done", evidence=evidence("done", text="new"))
    run_of(state, new, now=1_800_000_100.0)
    for past in (recover(state).past, load_past(state)):
        found = past.evidence("done")
        assert found is not None
        assert found.text == "new"


def test_a_run_that_detached_is_gone_on_with_as_one_that_was_killed(state: StateFolder) -> None:
    folder = run_of(state, settled(2, "done"), sent(1, "a"), RunDetached(time=4.0, exit_code=143, jobs=1))
    past = recover(state).past
    assert list(past.flights) == ["a"]
    assert past.evidence("done") is not None
    assert not is_ended(folder.events)


def test_who_takes_a_job_over_tells_the_run_that_submitted_it(state: StateFolder) -> None:
    folder = run_of(state, sent(1, "a"), sent(2, "b"))
    flights = recover(state).past.flights
    hand_over(state, [flights["a"]], LATER)
    assert keys(state) == ["b"]
    assert not is_ended(folder.events)
    hand_over(state, [flights["b"]], LATER)
    assert keys(state) == []
    assert is_ended(folder.events)
    hand_over(state, [flights["b"]], LATER)  # once more does no harm
    assert sum(isinstance(one, RunEnded) for one in read_journal(folder.events).events) == 1
    assert recover(state).past.last("a") is None


def test_a_job_that_is_given_up_was_interrupted(state: StateFolder) -> None:
    run_of(state, sent(1, "a"))
    hand_over(state, list(recover(state).past.flights.values()), "")
    assert keys(state) == []


def test_of_two_runs_that_claim_a_job_the_later_has_it(state: StateFolder) -> None:
    first = run_of(state, sent(1, "a"), sent(2, "b"))
    recover(state)
    second = run_of(
        state, sent(1, "a", run=first.run), now=1_800_000_100.0
    )  # killed before it told the first
    flights = recover(state).past.flights
    assert {key: (one.run, one.holder) for key, one in flights.items()} == {
        "a": (first.run, second.run),
        "b": (first.run, first.run),
    }
    hand_over(state, [flights["a"]], LATER)
    assert keys(state) == ["b"]


def test_a_job_whose_end_the_later_run_saw_is_no_longer_claimed_by_the_first(state: StateFolder) -> None:
    first = run_of(state, sent(1, "a"))
    recover(state)
    run_of(state, sent(1, "a", run=first.run), settled(1, "a", run=first.run), now=1_800_000_100.0)
    past = recover(state).past
    assert past.flights == {}
    assert is_ended(first.events)
    attempt = past.attempt("a")
    assert attempt is not None
    assert (attempt.run, attempt.n) == (first.run, 1)  # where its log is


def test_runs_whose_jobs_are_in_flight_under_another_are_kept(state: StateFolder) -> None:
    first = run_of(state, sent(1, "a"))
    hand_over(state, list(recover(state).past.flights.values()), LATER)
    run_of(state, sent(1, "a", run=first.run), now=1_800_000_100.0)
    for number in range(3):
        run_of(state, submitted(1, "x"), settled(1, "x"), now=1_800_000_200.0 + number)
    recover(state)
    assert is_ended(first.events)
    assert first.run not in prune(state, keep=1)


def test_a_success_that_is_taken_back_reads_as_a_failure(state: StateFolder) -> None:
    outcome = Outcome(reason=EndReason.OOM, exit_code=0)
    back = EvidenceWithdrawn(time=4.0, task="a", key="a", attempt=1, n=1, outcome=outcome)
    run_of(state, sent(1, "a"), settled(1, "a"), back, RunEnded(time=5.0, exit_code=1))
    for past in (load_past(state), recover(state).past):
        last = past.last("a")
        assert isinstance(last, Last)
        assert last.reason is EndReason.OOM


def test_a_success_that_is_taken_back_for_no_reason_still_reads_as_none(state: StateFolder) -> None:
    back = EvidenceWithdrawn(time=4.0, task="a", key="a", attempt=1, n=1, outcome=Outcome())
    run_of(state, sent(1, "a"), settled(1, "a"), back)
    last = load_past(state).last("a")
    assert last is not None
    assert last.reason is EndReason.LOST


def test_an_attempt_of_this_machine_takes_the_place_of_a_job() -> None:
    flights = Flights()
    flights.add([started(), sent(1, "a"), submitted(2, "a", attempt=2)])
    assert flights.by_key == {}

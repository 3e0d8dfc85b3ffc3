"""Two backends in one run: who gets what, and that their news and ids stay apart."""

from __future__ import annotations

import select
import time

import pytest

from treadle.backends.local import LocalBackend
from treadle.backends.pair import PairBackend
from treadle.base.errors import SchedulerError
from treadle.engine.backend import Abilities, Accepted, JobStatus, Refused, Submission
from treadle.engine.besides import parts_of
from treadle.plan.task import Call, Command, Resources, ScheduledTask, Where
from treadle.records.event import EndReason
from treadle.testing.backend import OK, FakeBackend, succeed


def submission(task: str, where: Where | None = None, n: int = 1) -> Submission:
    call = Call(step=task, identity="0" * 32, path=task, where=where) if where else None
    return Submission(
        task=ScheduledTask(id=task, rule=task, command=Command(text="true"), call=call),
        attempt=1,
        n=n,
        name=f"tx-{n}",
        argv=("true",),
        env={},
        cwd="/",
        log="/dev/null",
        resources=Resources(),
    )


class Asked(FakeBackend):
    """Counts how often it is polled, as a scheduler's administrator does."""

    name = "elsewhere"

    def __init__(self, *args, **named) -> None:
        super().__init__(*args, **named)
        self.polls = 0

    def poll(self, jobs):
        self.polls += 1
        return super().poll(jobs)


def hang(submission):
    return None


@pytest.fixture
def parts():
    return FakeBackend(succeed), Asked(succeed, Abilities(batch=True, adoption=True))


@pytest.fixture
def pair(parts):
    return PairBackend(*parts)


def test_jobs_of_the_client_go_there_and_all_else_stays_here(pair, parts):
    here, there = parts
    batch = [submission("c", Where.CLIENT), submission("p", Where.PROCESS), submission("t", Where.THREAD)]
    pair.submit([*batch, submission("rule")])
    assert [one.task.id for one in here.submissions] == ["p", "t", "rule"]
    assert [one.task.id for one in there.submissions] == ["c"]


def test_rules_go_there_where_they_are_to_but_for_those_that_stay(parts):
    here, there = parts
    PairBackend(here, there, local_rules=["small"]).submit([submission("small"), submission("large")])
    assert [one.task.id for one in here.submissions] == ["small"]
    assert [one.task.id for one in there.submissions] == ["large"]


def test_answers_come_in_the_order_of_the_batch(parts):
    _, there = parts
    refuse = PairBackend(FakeBackend(lambda one: f"no {one.task.id}"), there)
    answers = refuse.submit([submission("a"), submission("b", Where.CLIENT), submission("c")])
    assert [type(answer) for answer in answers] == [Refused, Accepted, Refused]
    assert [answer.message for answer in answers if isinstance(answer, Refused)] == ["no a", "no c"]


def test_equal_ids_of_both_are_told_apart(pair):
    first, second = pair.submit([submission("a"), submission("b", Where.CLIENT)])
    assert first.job == "1"
    assert second.job == "1@elsewhere"
    reports = pair.poll([first.job, second.job])
    assert [(report.job, report.outcome) for report in reports] == [("1", OK), ("1@elsewhere", OK)]


def test_an_id_is_free_again_once_its_end_was_told(parts):
    pair = PairBackend(*parts)
    for _ in range(2):
        (answer,) = pair.submit([submission("a")])
        assert [report.job for report in pair.poll([answer.job])] == [answer.job]


def test_cancelling_reaches_the_part_that_has_the_job(parts):
    here, there = FakeBackend(hang), Asked(hang)
    pair = PairBackend(here, there)
    jobs = [answer.job for answer in pair.submit([submission("a"), submission("b", Where.CLIENT)])]
    pair.cancel(jobs[1:], force=True)
    assert here.cancelled == []
    assert there.cancelled == [("1", True)]


def test_news_of_this_machine_do_not_make_the_other_one_ask_its_scheduler(parts):
    here, there = FakeBackend(succeed), Asked(hang)
    pair = PairBackend(here, there)
    (far,) = pair.submit([submission("far", Where.CLIENT)])
    for _ in range(20):
        (near,) = pair.submit([submission("near")])
        assert [report.status for report in pair.poll([near.job, far.job])] == [JobStatus.ENDED]
    assert there.polls == 0


def test_an_adopted_job_is_the_other_ones(parts):
    here, there = FakeBackend(succeed), Asked(hang)
    pair = PairBackend(here, there)
    assert pair.poll(["4711"]) == []
    assert there.polls == 1
    pair.cancel(["4711"])
    assert there.cancelled == [("4711", False)]


def test_an_end_is_told_before_the_failure_of_the_other_part(parts):
    here, there = FakeBackend(succeed), FakeBackend(hang)
    pair = PairBackend(here, there)
    jobs = [one.job for one in pair.submit([submission("a"), submission("b", Where.CLIENT)])]
    there.outage = "no controller"
    assert [report.job for report in pair.poll(jobs)] == jobs[:1]
    assert pair.next_timeout() == 0.0
    with pytest.raises(SchedulerError, match="no controller"):
        pair.poll(jobs)


def test_each_attempt_is_recorded_under_its_own_backend(pair):
    assert parts_of(pair)(submission("a", Where.CLIENT).task).name == "elsewhere"
    assert parts_of(pair)(submission("a").task).name == "fake"
    assert parts_of(FakeBackend())(submission("a").task).name == "fake"


def test_it_can_what_its_parts_can(pair):
    assert pair.abilities == Abilities(batch=True, adoption=True)


def test_one_descriptor_is_readable_for_either(tmp_path):
    pair = PairBackend(LocalBackend(), LocalBackend())
    assert pair.abilities.notifies
    for where in (Where.CLIENT, None):  # without a book a call is a command as any other
        (answer,) = pair.submit([submission("a", where)])
        told = []
        deadline = time.monotonic() + 30
        while not told:
            assert time.monotonic() < deadline
            wish = pair.next_timeout()
            ready = select.select([pair.fileno()], [], [], 30 if wish is None else wish)[0]
            assert ready or wish is not None
            told = pair.poll([answer.job])
        assert told[0].outcome.reason is EndReason.OK
    pair.close()


def test_with_a_part_that_has_no_descriptor_the_other_one_is_heard_still():
    pair = PairBackend(LocalBackend(), FakeBackend(succeed))
    assert pair.fileno() is not None
    assert not pair.abilities.notifies
    pair.submit([submission("a", Where.CLIENT)])
    assert pair.next_timeout() == 0.0
    pair.close()

"""What rules took against what they asked for, and when that is worth a word."""

from __future__ import annotations

import pathlib
from typing import Any

import msgspec
import pytest

from treadle.base.layout import RunFolder
from treadle.cli.printer import Printer
from treadle.cli.usage_lines import usage_lines
from treadle.plan.show import plan_object
from treadle.plan.task import Resources
from treadle.records.event import End
from treadle.records.job import JobRecord
from treadle.report.usage import Hint, requests_of, usage_of
from treadle.testing.plans import plan, task

G = 1024**3


def job(task: str = "align/s=1", *, wait: float = 1.0, run: float = 100.0, **more: Any) -> JobRecord:
    given = {"state": End.SUCCEEDED.value, "cpu": run, "memory": G, **more}
    return JobRecord(
        task=task, attempt=1, submitted=50.0, started=50.0 + wait, ended=50.0 + wait + run, **given
    )


def hints(asked: Resources, *jobs: JobRecord) -> list[Hint]:
    (found,) = usage_of(jobs, {one.task: ("align", asked) for one in jobs})
    return list(found.hints)


def test_figures_of_a_rule_are_taken_together() -> None:
    asked = Resources(threads=4, memory=8 * G)
    jobs = [
        job("align/s=1", wait=10, run=100, cpu=350.0, memory=3 * G),
        job("align/s=2", wait=30, run=200, cpu=600.0, memory=2 * G),
        job("align/s=3", wait=20, run=300, cpu=1200.0, memory=None),
        job("sort"),
    ]
    requests = {one.task: ("align", asked) for one in jobs[:3]}
    align, sort = usage_of(jobs, requests)
    assert (align.rule, align.attempts, align.threads, align.memory) == ("align", 3, 4, 3 * G)
    assert align.waited is not None
    assert align.ran is not None
    assert align.cpu is not None
    assert (align.waited.median, align.waited.most) == (20, 30)
    assert (align.ran.median, align.ran.most) == (200, 300)
    assert (align.cpu.median, align.cpu.most) == (3.5, 4.0)
    assert (sort.rule, sort.threads) == ("sort", 1)  # a run whose plan is gone


def test_attempts_that_were_cancelled_or_still_run_say_nothing() -> None:
    running = JobRecord(task="a", attempt=1, state="running", started=1.0)
    assert usage_of([job(state=End.CANCELLED.value), running], {}) == []


@pytest.mark.parametrize(
    ("asked", "used", "value"),
    [
        (64 * G, 3 * G, 4 * G),
        (8 * G, G, 1280 * 1024**2),
        (8 * G, 5 * G, None),  # fine
        (G, G // 4, 384 * 1024**2),
        (600 * 1024**2, 100 * 1024**2, None),  # too little to be worth a word
    ],
)
def test_memory_that_was_asked_for_in_vain(asked: int, used: int, value: int | None) -> None:
    found = hints(Resources(memory=asked), job(memory=used))
    assert [one.value for one in found] == ([] if value is None else [value])


def test_memory_without_room_is_told() -> None:
    (hint,) = hints(Resources(memory=4 * G), job(memory=4 * G - 1))
    assert (hint.field, hint.tight) == ("memory", True)


def test_threads_that_were_idle_are_told_once_a_run_was_long_enough() -> None:
    (hint,) = hints(Resources(threads=8), job(run=100, cpu=130.0))
    assert (hint.field, hint.value) == ("threads", 2)
    assert hints(Resources(threads=8), job(run=5, cpu=5.0)) == []
    assert hints(Resources(threads=8), job(run=100, cpu=700.0)) == []


def test_a_time_limit_that_is_far_off_is_told() -> None:
    (hint,) = hints(Resources(time_limit=86_400), job(run=100))
    assert (hint.field, hint.value, hint.tight) == ("time_limit", 300, False)
    (hint,) = hints(Resources(time_limit=3600), job(run=3500))
    assert hint.tight


def test_requests_come_from_the_plan_of_the_run(tmp_path: pathlib.Path) -> None:
    asked = Resources(threads=3, memory=G, groups=(("db", 1),))
    made = plan([task("align", resources=asked)])
    folder = RunFolder(str(tmp_path))
    pathlib.Path(folder.plan).write_bytes(msgspec.json.encode(plan_object(made)))
    assert requests_of(folder) == {"align": ("align", Resources(threads=3, memory=G))}
    pathlib.Path(folder.plan).write_text("{")
    assert requests_of(folder) == {}


def test_the_lines_say_it_in_words() -> None:
    asked = Resources(threads=8, memory=64 * G, time_limit=86_400)
    found = usage_of(
        [job(wait=5, run=3700, cpu=3700.0, memory=int(3.1 * G))], {"align/s=1": ("align", asked)}
    )
    assert list(usage_lines(found, Printer())) == [
        "rule   attempts  peak memory  CPUs      waited  ran",
        "align  1         3.1G of 64G  1.0 of 8  5s      1h2m",
        'align: at most 3.1G of 64G was used: memory = "4G" would do',
        "align: at most 1.0 of 8 was used: threads = 1 would do",
        'align: at most 1h2m of 1d was used: time_limit = "1h35m" would do',
    ]

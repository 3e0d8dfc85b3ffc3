"""What a killed attempt died of, told from counts that the kernel keeps."""

from __future__ import annotations

import os
import signal

import pytest

from treadle.backends.local_attempt import Act, Attempt, Timers
from treadle.backends.local_usage import OomWatch
from treadle.backends.local_verdict import outcome_of
from treadle.base.proc import Child
from treadle.engine.backend import Submission
from treadle.plan.task import Command, Resources, ScheduledTask
from treadle.records.event import EndReason

KILLED = int(signal.SIGKILL)
EXIT_137 = 137 << 8


class Kernel:
    """The files in which a kernel counts what it killed for lack of memory."""

    def __init__(self, folder) -> None:
        self.root = f"{folder}/"
        for name in ("proc/self", "sys/fs/cgroup/job"):
            os.makedirs(self.root + name)
        self.tell("proc/self/cgroup", "0::/job\n")
        self.count(cgroup=0, machine=5)

    def tell(self, name: str, text: str) -> None:
        with open(self.root + name, "w") as file:
            file.write(text)

    def count(self, *, cgroup: int, machine: int) -> None:
        self.tell("sys/fs/cgroup/job/memory.events", f"oom {cgroup}\noom_kill {cgroup}\n")
        self.tell("proc/vmstat", f"pgfault 1\noom_kill {machine}\n")


@pytest.fixture
def kernel(tmp_path):
    return Kernel(tmp_path)


def attempt(status: int | None) -> Attempt:
    submission = Submission(
        task=ScheduledTask(id="t", rule="t", command=Command()),
        attempt=1,
        n=1,
        name="t",
        argv=("true",),
        env={},
        cwd="/",
        log="log",
        resources=Resources(),
    )
    made = Attempt(submission, Child(1, -1, 0), (), now=10.0, wall=1000.0)
    made.status = status
    return made


def ended(made: Attempt, oom: OomWatch):
    return outcome_of(made, 12.5, oom)


@pytest.mark.parametrize("status", [KILLED, EXIT_137])
def test_a_kill_that_the_cgroup_counts_is_for_memory(kernel, status):
    oom = OomWatch(kernel.root)
    made = attempt(status)
    made.oom_seen = oom.seen(0.0)
    kernel.count(cgroup=1, machine=6)
    outcome = ended(made, oom)
    assert outcome.reason is EndReason.OOM
    assert "cgroup" in outcome.message
    assert (outcome.usage.wall, outcome.end) == (2.5, 1002.5)


def test_a_kill_that_only_the_machine_counts_is_most_likely_for_memory(kernel):
    oom = OomWatch(kernel.root)
    made = attempt(KILLED)
    made.oom_seen = oom.seen(0.0)
    kernel.count(cgroup=0, machine=6)
    outcome = ended(made, oom)
    assert outcome.reason is EndReason.OOM
    assert "most likely" in outcome.message


def test_a_kill_that_nobody_counts_is_the_task_s_own(kernel):
    oom = OomWatch(kernel.root)
    made = attempt(KILLED)
    made.oom_seen = oom.seen(0.0)
    assert ended(made, oom).reason is EndReason.APP


def test_two_attempts_killed_together_both_died_for_memory_and_a_later_one_did_not(kernel):
    oom = OomWatch(kernel.root)
    pair = [attempt(KILLED), attempt(KILLED)]
    for made in pair:
        made.oom_seen = oom.seen(0.0)
    kernel.count(cgroup=1, machine=6)
    assert [ended(made, oom).reason for made in pair] == [EndReason.OOM, EndReason.OOM]
    later = attempt(KILLED)
    later.oom_seen = oom.seen(0.0)
    assert ended(later, oom).reason is EndReason.APP


def test_counts_that_cannot_be_read_accuse_nobody(tmp_path):
    oom = OomWatch(f"{tmp_path}/")
    made = attempt(KILLED)
    made.oom_seen = oom.seen(0.0)
    assert ended(made, oom).reason is EndReason.APP


def test_other_failures_do_not_ask_the_counts(kernel):
    oom = OomWatch(kernel.root)
    made = attempt(3 << 8)
    made.oom_seen = oom.seen(0.0)
    kernel.count(cgroup=1, machine=6)
    assert ended(made, oom).reason is EndReason.APP


def test_timers_come_in_order_and_those_of_the_done_are_dropped():
    timers = Timers()
    one, two = attempt(0), attempt(0)
    timers.add(3.0, one, Act.LIMIT)
    timers.add(1.0, two, Act.KILL)
    timers.add(2.0, one, Act.CHECK)
    two.done = True
    assert timers.next() == 2.0
    assert timers.due(1.9) is None
    assert timers.due(5.0) == (one, Act.CHECK)
    one.done = True
    assert timers.due(5.0) is None
    assert timers.next() is None


def test_the_limits_of_attempts_that_are_over_do_not_pile_up():
    timers = Timers()
    for _ in range(10_000):
        made = attempt(0)
        timers.add(86_400.0, made, Act.LIMIT)
        made.done = True
    assert len(timers._heap) < 500

"""What a step asks of its machine: checked, and as tasks of a plan have it."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta

import pytest

from treadle.base.errors import StepError
from treadle.plan.task import Resources
from treadle.steps.resources import ResourceConfig


def test_sizes_and_times_are_rounded_up_to_what_a_plan_knows():
    config = ResourceConfig(
        cpu=1.5,
        memory_gb=0.5,
        disk_gb=2,
        gpu=1,
        gpu_type="a100",
        time_limit="90m",
        partition="long",
        nodes=2,
        groups={"b": 2, "a": 1},
        extra_args=["--x"],
    )
    assert config.to_resources() == Resources(
        threads=2,
        memory=512 * 1024**2,
        disk=2 * 1024**3,
        gpus=1,
        gpu_model="a100",
        time_limit=5400,
        partition="long",
        nodes=2,
        groups=(("a", 1), ("b", 2)),
        extra_args=("--x",),
    )


def test_what_was_not_said_is_not_asked_for():
    assert ResourceConfig().to_resources() == Resources()
    assert ResourceConfig(cpu=None, gpu=None, gpu_type=None, memory_gb=None) == ResourceConfig()


def test_a_time_limit_may_be_seconds_a_text_or_a_timedelta():
    limits = [ResourceConfig(time_limit=one).time_limit for one in (90, 1.5, "1m30s", timedelta(minutes=1))]
    assert limits == [90, 1.5, 90, 60]


def test_it_is_a_value():
    assert ResourceConfig(cpu=2) == ResourceConfig(cpu=2) != ResourceConfig(cpu=3)
    assert hash(ResourceConfig(groups={"a": 1})) == hash(ResourceConfig(groups={"a": 1}))
    with pytest.raises(AttributeError):
        ResourceConfig().cpu = 2


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(StepError) as caught:
        ResourceConfig(
            cpu=0,
            memory_gb="8",
            disk_gb=float("inf"),
            gpu=-1,
            gpu_type=3,
            nodes=0,
            time_limit="10",
            groups={"a": 0},
            extra_args="--x",
        )
    told = [one.message.split(": ")[1] for one in caught.value.diagnostics]
    assert sorted(told) == [
        "cpu", "disk_gb", "extra_args", "gpu", "gpu_type", "groups.a", "memory_gb", "nodes", "time_limit",
    ]  # fmt: skip
    assert caught.value.diagnostics[0].place.file == __file__


@pytest.mark.parametrize(
    ("wrong", "near"), [("cpus", "cpu"), ("memory", "memory_gb"), ("timelimit", "time_limit")]
)
def test_a_field_that_there_is_not_is_told_with_the_nearest_that_there_is(wrong, near):
    with pytest.raises(StepError) as caught:
        ResourceConfig(**{wrong: 3})
    (one,) = caught.value.diagnostics
    assert (one.code, one.hint) == ("unknown-option", f"did you mean '{near}'?")
    assert one.place.file == __file__


def test_a_field_that_is_like_none_is_told_with_all_that_there_are():
    with pytest.raises(StepError, match="colour: there is no such argument") as caught:
        ResourceConfig(colour="red", cpu=0)
    assert [one.code for one in caught.value.diagnostics] == ["unknown-option", "not-an-amount"]
    assert caught.value.diagnostics[0].hint.startswith("there are: cpu, memory_gb, disk_gb, gpu")


def test_copies_and_pickles_are_the_same_value():
    config = ResourceConfig(cpu=2.5, groups={"db": 1}, time_limit="2h", extra_args=["-x"], preemptible=True)
    assert pickle.loads(pickle.dumps(config)) == copy.deepcopy(config) == copy.copy(config) == config
    shown = (
        "ResourceConfig(cpu=2.5, preemptible=True, time_limit=7200.0, groups={'db': 1}, extra_args=('-x',))"
    )
    assert repr(config) == shown
    assert config != ResourceConfig(cpu=2.5)

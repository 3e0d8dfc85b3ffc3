"""The partition is chosen by the request."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.plan.task import Resources
from treadle.rules.profile.partitions import beyond_site, choose
from treadle.rules.schema import Cluster, Partition, Rule

G = 1024**3
SHORT = Partition(name="short", threads=16, memory=64 * G, time_limit=3600)
LONG = Partition(name="long", threads=16, memory=64 * G)
BIG = Partition(name="big", threads=64, memory=1024 * G)
GPU = Partition(name="gpu", threads=32, memory=256 * G, gpu=4)


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ({}, "short"),
        ({"time_limit": 3600}, "short"),
        ({"time_limit": 3601}, "long"),
        ({"memory": 65 * G}, "big"),  # not the one with GPUs, which fits as well
        ({"threads": 40}, "big"),
        ({"gpus": 1}, "gpu"),
        ({"gpus": 5}, None),
        ({"gpus": 1, "threads": 64}, None),
        ({"memory": 2048 * G}, None),
    ],
)
def test_the_first_partition_that_can_take_it(wanted: dict[str, Any], chosen: str | None) -> None:
    assert choose([SHORT, GPU, LONG, BIG], Resources(**wanted), None) == chosen


def test_the_walltime_counts_where_the_request_has_no_time_limit() -> None:
    assert choose([SHORT, LONG], Resources(), 7200) == "long"
    assert choose([SHORT, LONG], Resources(time_limit=60), 7200) == "short"


def test_one_with_gpus_takes_what_no_other_can() -> None:
    assert choose([GPU, SHORT], Resources(memory=200 * G), None) == "gpu"


def found(wanted: Resources, **cluster: Any) -> list[str]:
    rule = Rule(name="align", resources=wanted)
    return [one.code for one in beyond_site(rule, Cluster(backend="slurm", **cluster))]


def test_what_no_partition_can_take_is_found_before_anything_is_sent() -> None:
    assert found(Resources(threads=99), partitions=(SHORT, BIG)) == ["no-partition"]
    assert found(Resources(threads=99, partition="special"), partitions=(SHORT,)) == []
    assert found(Resources(threads=9), partitions=(SHORT,)) == []


def test_ceilings_of_the_site_bound_each_request() -> None:
    ceiling = Partition(name="", threads=8, gpu=-1)
    assert found(Resources(threads=9), ceilings=ceiling) == ["beyond-site"]
    assert found(Resources(threads=8, gpus=2), ceilings=ceiling) == []
    most = Partition(name="", time_limit=60, gpu=-1)
    assert found(Resources(), ceilings=most, values={"walltime": 90}) == ["beyond-site"]

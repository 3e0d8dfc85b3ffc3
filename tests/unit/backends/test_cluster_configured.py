"""The settings of a scheduler, from what the tables say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from treadle.backends.cluster.configured import idle, placed, settings_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import WorkflowError
from treadle.base.place import Place
from treadle.plan.task import Policy, Resources
from treadle.rules.schema import Cluster, Partition, Rule
from treadle.rules.toml.fields import CLUSTER, State


def cluster(backend: str = "slurm", **values: Any) -> Cluster:
    places = {key: Place("p.toml", at, "cluster", key) for at, key in enumerate(values, 2)}
    return Cluster(backend=backend, values=values, places=places)


def wrong(one: Cluster, *rules: Rule) -> list[str]:
    with pytest.raises(WorkflowError) as caught:
        settings_of(one, rules)
    return [f"{found.code} {found.place.key}" for found in caught.value.diagnostics]


def test_every_field_reaches_the_settings() -> None:
    elsewhere = {"backend", "env_setup", "scratch_dir"}
    working = {name for name, field in CLUSTER.items() if field.state is State.WORKS} - elsewhere
    renamed = {"parallel_env": "parallel_environment"}
    assert {renamed.get(name, name) for name in working} <= set(ClusterSettings.__struct_fields__)


def test_what_is_not_said_is_as_the_settings_have_it() -> None:
    assert settings_of(cluster()) == ClusterSettings(backend="slurm")


def test_values_are_taken_as_they_are() -> None:
    found = settings_of(cluster("sge", parallel_env="threads", walltime=60, extra_args=("-V",)))
    assert found == ClusterSettings(
        backend="sge", parallel_environment="threads", walltime=60, extra_args=("-V",)
    )


def test_settings_come_back_from_json() -> None:
    one = settings_of(Cluster(backend="pbs", partitions=(Partition(name="q", threads=4),)))
    assert msgspec.json.decode(msgspec.json.encode(one), type=ClusterSettings) == one


def test_all_that_is_wrong_is_told_at_once() -> None:
    one = cluster(
        "pbs",
        dialect="pbs11",
        memory_unit="parsec",
        job_prefix="1st",
        bin_dir="/nowhere/at/all",
        partition="a b",
        extra_args=("-N", "-V", "-o"),
    )
    assert wrong(one) == [
        "bad-value dialect",
        "bad-value memory_unit",
        "bad-value job_prefix",
        "bad-value bin_dir",
        "bad-value partition",
        "owned-option extra_args",
        "owned-option extra_args",
    ]


@pytest.mark.parametrize("backend", ["sge", "lsf"])
def test_several_nodes_are_refused_where_they_cannot_be_had(backend: str) -> None:
    rule = Rule(name="mpi", shell="x", resources=Resources(nodes=2, tasks_per_node=8))
    assert wrong(cluster(backend), rule) == ["backend-cannot ", "backend-cannot "]
    settings_of(cluster("slurm"), [rule])
    settings_of(cluster(backend), [Rule(name="mpi", shell="x", resources=Resources(nodes=1))])
    at_home = Rule(name="mpi", shell="x", resources=Resources(nodes=2), policy=Policy(localrule=True))
    settings_of(cluster(backend), [at_home])


def test_options_of_the_engine_are_refused_in_rules_too() -> None:
    rule = Rule(name="r", shell="x", resources=Resources(extra_args=("--array=1-3", "--nice=5")))
    assert wrong(cluster(), rule) == ["owned-option "]


def test_what_the_scheduler_does_not_know_is_said() -> None:
    one = cluster("sge", qos="high", memory_unit="GB", account="lab")
    assert [found.place.key for found in idle(one, [])] == ["qos", "memory_unit"]
    rule = Rule(name="r", places={"resources.disk": Place("main.oxoflow", 9)})
    assert [found.place.line for found in idle(cluster("lsf"), [rule, rule])] == [9]
    assert not list(idle(cluster("slurm", qos="high"), [rule]))


def test_a_request_is_placed_by_what_it_asks_for() -> None:
    settings = ClusterSettings(
        backend="slurm",
        partition="usual",
        partitions=(Partition(name="short", time_limit=60), Partition(name="long")),
    )
    assert placed(settings, Resources(time_limit=50)).partition == "short"
    assert placed(settings, Resources(time_limit=70)).partition == "long"
    assert placed(settings, Resources(partition="mine")).partition == "mine"
    assert placed(ClusterSettings(backend="slurm", partition="usual"), Resources()).partition == ""

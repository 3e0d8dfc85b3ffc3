"""One workflow, taken through its life on this machine and on every fake scheduler: the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from cluster_runs import Place, Told, fake_site, live, same
from treadle.testing.schedulers import FakeCluster

KINDS = ("slurm", "pbs", "torque", "sge", "lsf")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], list[Told]]:
    """The life of the workflow on this machine, lived when it is first asked for."""
    return cache(lambda: live(Place(tmp_path_factory.mktemp("here"))))


@pytest.mark.parametrize("kind", KINDS)
def test_a_workflow_lives_on_a_scheduler_as_on_this_machine(
    kind: str,
    here: Callable[[], list[Told]],
    fake_cluster: Callable[..., FakeCluster],
    tmp_path: Path,
) -> None:
    cluster = fake_cluster(kind, slots=8)
    same(live(Place(tmp_path, fake_site(cluster))), here())


def test_without_accounting_it_is_the_same(
    here: Callable[[], list[Told]], fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    cluster = fake_cluster("slurm", slots=8, accounting=False, keep=0.0)
    steps = ("fresh", "changed input", "changed command", "deleted output", "failed", "then fixed")
    found = live(Place(tmp_path, fake_site(cluster)), steps)
    assert [one.jobs for one in found] == [one.jobs for one in here() if one.step in steps]

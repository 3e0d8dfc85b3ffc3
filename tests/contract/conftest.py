"""The backends that are held to their contract with the bench that holds them, and the storages to theirs.

A backend joins by one more `Kind` here. One that needs a world of its own (a Ray, a scheduler) is there only
where a variable says where that world is: the test that starts it sets it, and runs this suite within.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from artifact_stores import STORAGES, Clock, Storage
from contract_bench import LOCAL, PAIR, Bench, Kind

from treadle.engine.backend import ExecutorBackend
from treadle.plan.task import Resources, Where
from treadle.steps.book import StepBook

RAY = os.environ.get("TREADLE_CONTRACT_RAY", "")


@contextmanager
def ray(folder: Path, book: StepBook) -> Iterator[ExecutorBackend]:
    from treadle.backends.ray_backend import RayBackend
    from treadle.backends.ray_cluster import RayCluster

    backend = RayBackend(RayCluster(RAY), book=book, workdir=str(folder))
    yield backend
    backend.close()


def cluster(kind: str) -> Kind:
    """A scheduler's backend over a fake one that runs its jobs for real."""

    @contextmanager
    def make(folder: Path, book: StepBook) -> Iterator[ExecutorBackend]:
        from treadle.backends.cluster.backend import ClusterBackend
        from treadle.backends.cluster.settings import ClusterSettings
        from treadle.backends.cluster.steps import SteppedCluster
        from treadle.testing.schedulers import FakeCluster

        with FakeCluster(kind, folder / "cluster", kill_wait=1.0, speed=30.0) as fake:
            settings = ClusterSettings(
                backend="pbs" if kind == "torque" else kind,
                dialect="torque" if kind == "torque" else "",
                bin_dir=fake.bin,
                poll_interval=0.3,
                latency_wait=2.0,
                lost_after=10.0,
            )
            inner = ClusterBackend(settings, workdir=str(folder), user=fake.site.user)
            backend = SteppedCluster(inner, book)
            yield backend
            backend.close()

    owned = {"slurm": "--job-name=x", "sge": "-N x", "lsf": "-J x"}.get(kind, "-N x")
    return Kind(kind, make, Where.CLIENT, Resources(extra_args=(owned,)), asks=kind != "sge")


KINDS = [LOCAL, PAIR, *map(cluster, ("slurm", "pbs", "torque", "sge", "lsf"))]
if RAY:
    KINDS = [Kind("ray", ray, Where.CLIENT, Resources(partition="long", nodes=2))]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def bench(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.chdir(tmp_path)
    book = StepBook()
    with kind.make(tmp_path, book) as backend:
        made = Bench(kind, tmp_path, backend, book)
        yield made
        made.close()


@pytest.fixture(params=sorted(STORAGES))
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return STORAGES[request.param](tmp_path, request)


@pytest.fixture
def clock() -> Clock:
    return Clock()

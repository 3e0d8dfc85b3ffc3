"""Real batch systems, each started once in a session by the first test that asks for it, and artifacts in S3.

Tests that use one belong together (xdist: `--dist loadgroup`), so that one worker starts it and no test stops
a controller under another's feet. A worker that starts a second one does no harm: they share nothing.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from dialect_world import Asked
from s3_artifacts import NAMES

from s3_world import BUCKET, Line, settings
from schedulers.start import Scheduler, missing
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.sge import Sge
from treadle.steps import staging

_STARTED = ("slurm", "slurm_without_accounting", "sge")
FORGETS_AFTER = 5
"""Seconds after which SLURM without accounting begins to forget what has ended."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        used = [name for name in getattr(item, "fixturenames", ()) if name in _STARTED]
        if used and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(used[0]))


@pytest.fixture(scope="session")
def slurm() -> Iterator[Scheduler]:
    """SLURM with slurmdbd and MariaDB, two nodes."""
    yield from _started("slurm")


@pytest.fixture(scope="session")
def slurm_without_accounting() -> Iterator[Scheduler]:
    """SLURM that keeps no accounts, and whose queue soon forgets."""
    yield from _started("slurm", accounting=False, remembered=FORGETS_AFTER)


@pytest.fixture(scope="session")
def sge() -> Iterator[Scheduler]:
    """Grid Engine with one host."""
    yield from _started("sge")


@pytest.fixture
def grid(sge: Scheduler, tmp_path: pathlib.Path) -> Asked:
    """The Grid Engine, asked by its dialect."""
    return Asked(sge, Sge(ClusterSettings(backend="sge"), "root"), tmp_path)


@pytest.fixture
def staged(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is staged on its way to S3 is the test's own."""
    staging.STAGING.clear()
    monkeypatch.setenv("TREADLE_STAGING", str(tmp_path / "staging"))
    yield
    staging.STAGING.clear()


@pytest.fixture
def line(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    """A way of this test's own to the server of S3, for what it opens."""
    line = Line(s3_port)
    for name, value in settings(line.port).items():
        monkeypatch.setenv(name, value)
    yield line
    line.cut()


@pytest.fixture
def path() -> str:
    """The output path of an artifact in S3 that nobody else has."""
    return f"s3://{BUCKET}/runs of {os.getpid()}/t{next(NAMES)}/modèl%-0123456789ab"


def _started(kind: str, **options: Any) -> Iterator[Scheduler]:
    if why := missing(kind, accounting=options.get("accounting", True)):
        pytest.skip(why)
    scheduler = Scheduler(kind, **options)
    yield scheduler
    scheduler.close()

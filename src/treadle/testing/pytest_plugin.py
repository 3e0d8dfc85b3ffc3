"""Fixtures for users' tests: `pytest_plugins = ["treadle.testing.pytest_plugin"]` in a conftest.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from treadle.testing.schedulers import FakeCluster


@pytest.fixture
def fake_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., FakeCluster]]:
    """Start a fake cluster: `fake_cluster("slurm", slots=8)`. It ends with the test, and its jobs with it."""
    with ExitStack() as ends:

        def start(kind: str = "slurm", **settings: object) -> FakeCluster:
            folder = tmp_path_factory.mktemp(f"fake-{kind}")
            return ends.enter_context(FakeCluster(kind, folder, **settings))

        yield start

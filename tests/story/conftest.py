"""Fixtures of the stories."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator

import pytest
from story_folder import Folder
from story_trouble import Host, host, processes

from treadle import StepRunner
from treadle.testing.pytest_plugin import fake_cluster as fake_cluster


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Iterator[Folder]:
    """A folder of one test. What a test that failed left running there ends with it."""
    yield Folder(tmp_path)
    for pid in processes(tmp_path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def runner(tmp_path: pathlib.Path) -> StepRunner:
    """Runs steps in the folder of one test."""
    return StepRunner(workdir=tmp_path)


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The command in forks, which can be killed at any of their steps."""
    with host(tmp_path_factory.mktemp("host")) as it:
        yield it

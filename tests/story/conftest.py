"""Fixtures of the stories."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator

import pytest
from story_folder import Folder
from story_trouble import processes

from treadle.testing.pytest_plugin import fake_cluster as fake_cluster


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Iterator[Folder]:
    """A folder of one test. What a test that failed left running there ends with it."""
    yield Folder(tmp_path)
    for pid in processes(tmp_path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

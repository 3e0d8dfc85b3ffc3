"""What tests of several folders share: how examples are drawn, an S3-speaking server, small file systems."""

from __future__ import annotations

import importlib.util
import os
import pathlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import hypothesis
import pytest

from mounts import Mount, mounts, small_disk
from s3_world import BUCKET, settings, start_server

# A busy machine is no failure. CI draws the same examples each time: what it says is about the change;
# everybody else draws new ones.
hypothesis.settings.register_profile(
    "house",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("house")


@pytest.fixture(scope="session")
def start_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., int]]:
    """Start a server, with arguments for it: its port. It ends with the session."""
    for package in ("moto", "flask", "obstore"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install 'treadle[test]'")
    with ExitStack() as ends:

        def start(*arguments: str) -> int:
            server, port = start_server(tmp_path_factory.mktemp("s3") / "log", *arguments)
            ends.callback(server.wait)
            ends.callback(server.terminate)
            return port

        yield start


@pytest.fixture(scope="session")
def s3_port(start_s3: Callable[..., int]) -> int:
    """The port of the one server of this session."""
    return start_s3()


@pytest.fixture
def s3(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket's URL, for this test in its environment."""
    for name, value in settings(s3_port).items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}"


@pytest.fixture
def mount(tmp_path: pathlib.Path) -> Iterator[Mount]:
    """Mounts a file system below the test's folder, and takes it away in the end."""
    with mounts(tmp_path) as act:
        yield act


@pytest.fixture
def tiny(mount: Mount) -> pathlib.Path:
    """A file system of 64 KiB."""
    return small_disk(mount, "tiny", "64k")

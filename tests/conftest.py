"""What tests of several folders share: an S3-speaking server, started once where a test asks for it."""

from __future__ import annotations

import importlib.util
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest

SERVER = pathlib.Path(__file__).with_name("s3_server.py")
BUCKET = "treadle"


def s3_settings(port: int) -> dict[str, str]:
    """The environment with which `s3://` leads to the server at that port."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }


@pytest.fixture(scope="session")
def start_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., int]]:
    """Start a server, with arguments for it: its port, with the bucket `treadle` made."""
    for package in ("moto", "flask", "obstore"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install 'treadle[test]'")
    running: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> int:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        log = tmp_path_factory.mktemp("s3") / "log"
        with log.open("wb") as out:
            command = [sys.executable, str(SERVER), str(port), *arguments]
            running.append(subprocess.Popen(command, stdout=out, stderr=out))
        _make_bucket(port, running[-1], log)
        return port

    yield start
    for server in running:
        server.terminate()
        server.wait()


def _make_bucket(port: int, server: subprocess.Popen[bytes], log: pathlib.Path) -> None:
    wanted = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
    until = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(wanted):
                return
        except (urllib.error.URLError, ConnectionError):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < until, f"the server does not come up: {log.read_text()}"
            time.sleep(0.05)


@pytest.fixture(scope="session")
def s3_port(start_s3: Callable[..., int]) -> int:
    """The port of the one server of this session."""
    return start_s3()


@pytest.fixture
def s3(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket's URL, for this test in its environment."""
    for name, value in s3_settings(s3_port).items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}"

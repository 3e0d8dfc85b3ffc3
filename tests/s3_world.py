"""An S3-speaking server on loopback for tests, and a way to it that can be cut."""

from __future__ import annotations

import pathlib
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress

SERVER = pathlib.Path(__file__).with_name("s3_server.py")
BUCKET = "treadle"


def settings(port: int) -> dict[str, str]:
    """The environment with which `s3://` leads to the server at that port."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }


def start_server(log: pathlib.Path, *arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server, with arguments for it, and make its bucket: the process and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, str(SERVER), str(port), *arguments], stdout=out, stderr=out
        )
    wanted = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
    until = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(wanted):
                return server, port
        except (urllib.error.URLError, ConnectionError):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < until, f"the server does not come up: {log.read_text()}"
            time.sleep(0.05)


class Line:
    """The way to the server, which can be cut and mended: the same port, nothing behind it meanwhile.

    `passes` is asked whether a request, or a piece of one, may go on to the server.
    """

    def __init__(self, server: int) -> None:
        self.passes: Callable[[bytes], bool] = lambda request: True
        self._server = server
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._serve()

    def cut(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()

    def mend(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", self.port))
        self._serve()

    def _serve(self) -> None:
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listening.accept()
                far = socket.create_connection(("127.0.0.1", self._server))
                self._open += [near, far]
                for ends in ((near, far, self._asked), (far, near, lambda answer: True)):
                    threading.Thread(target=_pump, args=ends, daemon=True).start()

    def _asked(self, request: bytes) -> bool:
        return self.passes(request)


def _pump(source: socket.socket, target: socket.socket, passes: Callable[[bytes], bool]) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            if not passes(data):
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

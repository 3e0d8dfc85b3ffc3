"""A real Ray of its own, out of reach: in a network and a process namespace, since Ray listens everywhere.

Outside, `RayWorld` starts this very file in new namespaces and hands it commands; inside, it starts one Ray
node and runs them. Whatever was started in there ends with its first process, by the kernel's own hand.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

PORT = 6399
ADDRESS = f"127.0.0.1:{PORT}"
CPUS = 3  # as Ray counts them: the machine may have fewer
_NAMESPACES = ("--net", "--pid", "--fork", "--mount-proc", "--kill-child")
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1


def namespaces() -> list[str]:
    """The command that makes the namespaces here, or nothing where none does."""
    for user in ([], ["--user", "--map-root-user"]):
        argv = ["unshare", *user, *_NAMESPACES]
        if shutil.which("unshare") and subprocess.run([*argv, "true"], capture_output=True).returncode == 0:
            return argv
    return []


def missing() -> str:
    """Why there can be no such world here (empty: there can)."""
    if find_spec("ray") is None:
        return "Ray is not installed"
    if not namespaces():
        return "no network namespace can be made here (unshare --net)"
    return ""


class RayWorld:
    """The world from outside."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tray-", dir="/tmp"))  # short: for names of sockets
        self._log = (self.folder / "world.log").open("w")
        argv = [*namespaces(), sys.executable, __file__, str(self.folder)]
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=_env(self.folder),
        )
        self._answer()

    def run(self, *argv: str, timeout: float = 100.0, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command in there; its stdout and stderr come together."""
        assert self._process.stdin is not None
        print(
            json.dumps({"argv": argv, "env": env, "timeout": timeout}), file=self._process.stdin, flush=True
        )
        code, out = self._answer()
        return subprocess.CompletedProcess(argv, code, out)

    def _answer(self) -> tuple[int, str]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Ray did not start: {(self.folder / 'world.log').read_text()[-3000:]}")
        code, out = json.loads(line)
        return code, out

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _env(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "TREADLE_"))}
    # Nobody but us can reach it: without tokens.
    return {**kept, "HOME": str(folder), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


def inside(folder: Path) -> None:
    """Start Ray, say that it is there, then run what comes until nothing more does."""
    _raise_loopback()
    ray = str(Path(sys.executable).with_name("ray"))
    options = {
        "port": PORT,
        "num-cpus": CPUS,
        "memory": 2 << 30,
        "object-store-memory": 80 << 20,
        "include-dashboard": "false",
        "include-log-monitor": "false",
        "temp-dir": folder / "ray",
        "resources": json.dumps({"licence": 1}),
    }
    argv = [ray, "start", "--head", *(f"--{name}={value}" for name, value in options.items())]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    print(json.dumps([0, ""]), flush=True)
    for line in sys.stdin:
        print(json.dumps(_run(**json.loads(line))), flush=True)


def _run(argv: list[str], env: dict[str, str], timeout: float) -> tuple[int, str]:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **env},
            timeout=timeout,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        return -1, f"not done after {timeout} s\n{(error.output or b'')[-5000:]!r}"
    return done.returncode, done.stdout


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


if __name__ == "__main__":
    inside(Path(sys.argv[1]))

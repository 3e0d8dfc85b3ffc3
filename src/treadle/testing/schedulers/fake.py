"""`FakeCluster`: a scheduler in a folder, for tests."""

from __future__ import annotations

import _socket
import getpass
import os
import shlex
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from treadle.base import proc
from treadle.base.errors import SchedulerError
from treadle.testing.schedulers import client
from treadle.testing.schedulers.mischief import Do, Rule
from treadle.testing.schedulers.orders import FakeJob
from treadle.testing.schedulers.site import Kind, Site

_START = 30.0  # seconds that its process gets to be there
_ADDRESS = 100  # bytes that fit into an address on every system
_FRONT = """#!/bin/sh
exec {python} -I -S {client} {folder} {name} "$@"
"""

COMMANDS = {
    Kind.SLURM: ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo"),
    Kind.PBS: (
        *("qsub", "qstat", "qdel", "qselect", "qhold", "qrls", "qrerun", "qsig"),
        *("tracejob", "pbsnodes"),
    ),
    Kind.TORQUE: (
        *("qsub", "qstat", "qdel", "qselect", "qhold", "qrls", "qrerun", "qsig"),
        *("tracejob", "pbsnodes"),
    ),
    Kind.SGE: ("qsub", "qstat", "qdel", "qacct", "qhold", "qrls", "qmod", "qconf"),
    Kind.LSF: (
        *("bsub", "bjobs", "bkill", "bacct", "bhist", "bstop", "bresume", "brequeue"),
        *("bparams", "lsid"),
    ),
}

T = TypeVar("T")


class FakeCluster:
    """A scheduler of `kind` (`slurm`, `pbs`, `torque`, `sge`, `lsf`), whose commands stand in `bin`.

    Jobs run for real, as processes of this machine. `folder` must not be there yet, or be empty; it belongs
    to the cluster. Other settings are those of `Site`. The cluster ends with the `with` block, or when this
    process ends or the folder is removed, and with it all of its jobs.

    Raises `SchedulerError` when it cannot be started, or has ended meanwhile.
    """

    def __init__(self, kind: str | Kind, folder: str | os.PathLike[str], **settings: Any) -> None:
        self.folder = os.path.abspath(folder)
        self.site = Site(
            kind=Kind(kind),
            folder=self.folder,
            **{"user": getpass.getuser(), "uid": os.getuid(), "owner": os.getpid(), **settings},
        )
        self._lock = threading.Lock()
        self._connection: _socket.socket | None = None
        self._child: proc.Child | None = None

    @property
    def bin(self) -> str:
        """The folder of its commands: for PATH, or the setting `bin_dir`."""
        return os.path.join(self.folder, "bin")

    @property
    def env(self) -> dict[str, str]:
        """This process's environment with the commands first on PATH."""
        return {**os.environ, "PATH": f"{self.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start its process, and wait until it answers."""
        if os.path.exists(os.path.join(self.folder, client.SOCKET)):
            raise SchedulerError(f"there is, or was, a fake cluster in {self.folder}: take another folder")
        os.makedirs(self.bin, exist_ok=True)
        with open(os.path.join(self.folder, "site.json"), "wb") as file:
            file.write(msgspec.json.encode(self.site))
        for name in COMMANDS[self.site.kind]:
            self._write_command(name)
        log = os.open(os.path.join(self.folder, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        try:
            argv = [sys.executable, "-m", "treadle.testing.schedulers.server", self.folder]
            self._child = proc.spawn(argv, env=_own_environment(), cwd=os.getcwd(), stdout_fd=log)
        finally:
            os.close(log)
        self._connect()

    def _write_command(self, name: str) -> None:
        path = os.path.join(self.bin, name)
        words = {"python": sys.executable, "client": client.__file__, "folder": self.folder, "name": name}
        with open(path, "w") as file:
            file.write(_FRONT.format(**{key: shlex.quote(word) for key, word in words.items()}))
        os.chmod(path, 0o755)

    def _connect(self) -> None:
        deadline = time.monotonic() + _START
        while True:
            try:
                self._connection = _connected(self.folder)
                return
            except OSError as error:
                if self._gone() or time.monotonic() > deadline:
                    raise SchedulerError(f"the fake cluster did not start\n{self._said()}") from error
                time.sleep(0.005)

    def _gone(self) -> bool:
        assert self._child is not None
        try:
            return os.waitpid(self._child.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True

    def _said(self) -> str:
        try:
            with open(os.path.join(self.folder, "log"), errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def close(self) -> None:
        """End the cluster and all its jobs. The folder stays, without the cluster's own process."""
        if self._child is None:
            return
        try:
            self._order("end")
        except SchedulerError:
            pass
        if self._connection is not None:
            self._connection.close()
        try:
            os.waitpid(self._child.pid, 0)
        except ChildProcessError:
            pass
        if self._child.pidfd >= 0:
            os.close(self._child.pidfd)
        self._child = self._connection = None

    def _order(self, order: str, value: object = None, kind: type[T] | None = None) -> T:
        with self._lock:
            if self._connection is None:
                raise SchedulerError(f"the fake cluster in {self.folder} is not running")
            try:
                answer = client.ask(self._connection, (order, msgspec.json.encode(value)))
            except OSError as error:
                raise SchedulerError(f"the fake cluster has ended\n{self._said()}") from error
        assert isinstance(answer, bytes)
        return msgspec.json.decode(answer, type=kind or Any)

    def script(self, do: str | Do, **what: Any) -> None:
        """Add a rule of misbehaviour, in the words of `Rule`: `script("kill", name="align*", nth=2)`."""
        self._order("rule", Rule(do=Do(do), **what))

    def behave(self) -> None:
        """Drop all rules."""
        self._order("clear")

    def jobs(self) -> list[FakeJob]:
        """All jobs and elements that were taken, in the order of submission."""
        return self._order("jobs", kind=list[FakeJob])

    def calls(self) -> dict[str, int]:
        """How often each command was called."""
        return self._order("calls", kind=dict[str, int])

    def log(self) -> list[tuple[float, str, list[str]]]:
        """Every call: its time by the cluster's clock, the command, its arguments."""
        return self._order("log", kind=list[tuple[float, str, list[str]]])

    def down(self) -> None:
        """The controller cannot be reached. Jobs go on."""
        self._order("down", True)

    def up(self) -> None:
        self._order("down", False)

    def node_down(self, node: str = "node1") -> None:
        """A node fails, with all that runs on it."""
        self._order("node", {"node": node, "state": "down"})

    def node_up(self, node: str = "node1") -> None:
        self._order("node", {"node": node, "state": "up"})

    def now(self) -> float:
        """The cluster's time, in seconds since the epoch."""
        return self._order("now", kind=float)

    def advance(self, seconds: float) -> None:
        """Move the cluster's clock on: time limits, delays, what is kept for a while."""
        self._order("advance", float(seconds))

    def each(self, verb: str, name: str = "*") -> int:
        """Do something to all jobs of these names: `hold`, `release`, `suspend`, `resume`, `cancel`, `kill`,
        `timeout`, `oom`, `requeue`, `preempt`, `node_fail`; `forget` is for those that have ended. How many.
        """
        return self._order("each", {"name": name, "verb": verb}, int)

    def wait_for(self, ready: Callable[[list[FakeJob]], bool], timeout: float = 30.0) -> list[FakeJob]:
        """Wait until the jobs are as they should be. Raises `TimeoutError`, which shows how they are."""
        deadline = time.monotonic() + timeout
        asked = time.monotonic()
        while not ready(jobs := self.jobs()):
            now = time.monotonic()
            if now > deadline:
                shown = ", ".join(f"{job.job}.{job.index} {job.name} {job.state}" for job in jobs[:50])
                raise TimeoutError(f"after {timeout} s: {shown}")
            time.sleep(max(0.01, now - asked))  # thousands of jobs take a while to tell
            asked = time.monotonic()
        return jobs

    def wait(self, timeout: float = 30.0) -> list[FakeJob]:
        """Wait until nobody waits or runs. Raises `TimeoutError`."""
        alive = ("pending", "running", "suspended", "ending")
        mine = self.site.user
        return self.wait_for(
            lambda jobs: all(job.state not in alive for job in jobs if job.user == mine), timeout
        )


def _own_environment() -> dict[str, str]:
    """Ours, and where this package is: it may have come through `sys.path`."""
    import treadle

    above = os.path.dirname(os.path.dirname(os.path.abspath(treadle.__file__)))
    path = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{above}{os.pathsep}{path}" if path else above}


def _connected(folder: str) -> _socket.socket:
    """A connection to the cluster of this folder; a path that is too long goes by a link."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    path = os.path.join(folder, client.SOCKET)
    try:
        if len(os.fsencode(path)) < _ADDRESS:
            connection.connect(path)
            return connection
        link = tempfile.mkdtemp(prefix="treadle-")
        try:
            os.symlink(folder, f"{link}/c")
            connection.connect(f"{link}/c/{client.SOCKET}")
        finally:
            shutil.rmtree(link)
    except BaseException:
        connection.close()
        raise
    return connection

"""Starts a real batch system from outside: a folder, namespaces, and a handle to stop and start its daemons.

Several may run at once, each with its own folder, names and ports. Whoever starts one holds a pipe to it and
a lock on its folder: when the pipe closes everything in there ends, and a folder without a holder is left
over from a killed one and is removed by the next start.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from schedulers import sge
from schedulers.slurm import remove_cgroups

_TESTS = Path(__file__).parent.parent
_NAMESPACES = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
_PREFIX, _LOCK = "real-", "treadle.lock"
_LONGEST_FOLDER = 80  # names of sockets are bounded (unix(7): 108 bytes)
_NEEDED = {
    "slurm": ("slurmctld", "slurmd", "sbatch", "munged"),
    "accounting": ("slurmdbd", "mariadbd", "mariadb-install-db"),
    "sge": (*(str(sge.PROGRAMS / name) for name in ("sge_qmaster", "sge_execd", "qsub")), "nsenter"),
}
_PACKAGES = "sh tests/debian-packages.sh installs it (Debian, as root)"


def missing(kind: str, *, accounting: bool = True) -> str:
    """Why `kind` (`slurm` or `sge`) cannot be started here; empty: it can."""
    if not sys.platform.startswith("linux"):
        return f"a real {kind} is started on Linux only"
    wanted = _NEEDED[kind] + (_NEEDED["accounting"] if kind == "slurm" and accounting else ())
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    for program in wanted:
        if shutil.which(program, path=path) is None:
            return f"a real {kind} needs {Path(program).name}: {_PACKAGES}"
    if os.getuid() != 0:
        return f"only root can start a real {kind}"
    probe = subprocess.run([*_NAMESPACES, "--net", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        return f"a real {kind} needs namespaces of its own: {probe.stderr.strip()}"
    return ""


class Scheduler:
    """A running one. `env` leads its commands to it; `facts` are what it was started with.

    `nodes` are the names of its nodes. Daemons are called `munged`, `mariadbd`, `slurmdbd`, `slurmctld` and
    as the nodes (SLURM), `sge_qmaster` and `sge_execd` (Grid Engine).
    """

    def __init__(self, kind: str, parent: Path | None = None, **options: Any) -> None:
        self.kind = kind
        self.folder, self._lock = _make_folder(parent or base())
        try:
            with _free_ports(kind, options) as chosen:
                self._process = self._begin(chosen)
                self.facts = self._answer()
        except BaseException:
            self.close()
            raise
        self.nodes: list[str] = self.facts["nodes"]
        self.env: dict[str, str] = dict(self.facts["env"])
        if kind == "sge":
            sge.write_clients(self.folder, self._process.pid)
            self.env["PATH"] = f"{self.bin_dir}:{os.environ.get('PATH', os.defpath)}"

    @property
    def bin_dir(self) -> str:
        """Where its commands are, when they are not the ones on PATH (empty: they are)."""
        return str(self.folder / "bin") if self.kind == "sge" else ""

    def run(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the scheduler, or one that calls such commands; `env` is added to what is set.

        Its exit code is not looked at. Raises subprocess.TimeoutExpired after `timeout` seconds.
        """
        return subprocess.run(
            argv,
            env={**os.environ, **self.env, **(env or {})},
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
        )

    def stop(self, daemon: str) -> None:
        """End one as its service would."""
        self._ask("stop", daemon)

    def kill(self, daemon: str) -> None:
        """End one without a warning."""
        self._ask("kill", daemon)

    def start(self, daemon: str) -> None:
        """Start one that was ended, until it is ready. Raises RuntimeError with the end of its log."""
        self._ask("start", daemon)

    def close(self) -> None:
        """End all daemons and all jobs, and remove the folder."""
        process = getattr(self, "_process", None)
        if process is not None:
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()  # with it goes the first process in there
                process.wait()
        _remove(self.folder)
        os.close(self._lock)

    def _begin(self, options: dict[str, Any]) -> subprocess.Popen[str]:
        if self.kind == "slurm":
            (self.folder / "ports").write_text(str(options["ports"]))
        argv = [*_NAMESPACES, *(["--net"] if self.kind == "sge" else [])]
        argv += [sys.executable, "-m", "schedulers.inside", self.kind, str(self.folder), json.dumps(options)]
        with (self.folder / "inside.out").open("w") as log:
            return subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=_TESTS,
                pass_fds=(self._lock,),
                start_new_session=True,
            )

    def _ask(self, do: str, daemon: str) -> None:
        assert self._process.stdin is not None
        print(json.dumps({"do": do, "daemon": daemon}), file=self._process.stdin, flush=True)
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended"}
        if answer["error"]:
            log = (self.folder / "inside.out").read_text()[-2000:]
            raise RuntimeError(f"{self.kind}: {answer['error']}\n{log}")
        return answer


def base() -> Path:
    """Where folders are made unless another place is given."""
    return Path(tempfile.gettempdir()) / "treadle-schedulers"


def _make_folder(parent: Path) -> tuple[Path, int]:
    parent.mkdir(exist_ok=True)
    _sweep(parent)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=_PREFIX))
    if len(str(folder)) > _LONGEST_FOLDER:
        folder.rmdir()
        raise RuntimeError(f"{parent} is too long for the names of sockets: set TMPDIR to a shorter one")
    folder.chmod(0o755)  # munged asks for it
    new = folder / "new"
    lock = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    new.rename(folder / _LOCK)  # from here on it is seen, and held
    return folder, lock


def _sweep(parent: Path) -> None:
    """Remove the folders that nobody holds any more."""
    for path in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):
            lock = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path.parent)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    with suppress(OSError):
        remove_cgroups(f"t{int((folder / 'ports').read_text())}n")
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _free_ports(kind: str, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The options with `ports`, which nobody else of us looks for until these are taken."""
    if kind != "slurm":
        yield options
        return
    count = 2 + options.get("nodes", 2)
    with (base().parent / "treadle-schedulers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        blocks = range(20_000, 32_000, 40)  # below those that systems give away
        ports = next(one for one in random.sample(blocks, len(blocks)) if _are_free(one, count))
        yield {**options, "ports": ports}


def _are_free(first: int, count: int) -> bool:
    for port in range(first, first + count):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True

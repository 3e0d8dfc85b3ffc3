"""Processes of jobs: started for real, watched, and ended with all that they started."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Mapping

from treadle.base import proc
from treadle.base.groups import Process, all_processes

MARK = "TREADLE_FAKE_CLUSTER"  # in the environment of jobs: the folder of their cluster

# stderr goes to a file of its own: what starts a process gives both streams one descriptor.
_APART = 'exec 2>>"$1"; shift; exec "$@"'


class StartError(Exception):
    """The process could not be started, or its output not be opened."""


def start(
    argv: list[str], *, env: Mapping[str, str], cwd: str, out: str, err: str = "", append: bool = False
) -> int:
    """Start a job's process; its id. `err` empty: into the same file. Raises `StartError`."""
    how = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_APPEND if append else os.O_TRUNC)
    try:
        fd = os.open(out or os.devnull, how, 0o666)
    except OSError as error:
        raise StartError(f"{out}: {error.strerror}") from error
    try:
        if err and err != out:
            os.close(os.open(err, how, 0o666))
            argv = ["/bin/sh", "-c", _APART, "sh", err, *argv]
        child = proc.spawn(argv, env=env, cwd=cwd, stdout_fd=fd)
    except OSError as error:
        raise StartError(f"{error.filename}: {error.strerror}") from error
    finally:
        os.close(fd)
    if child.pidfd >= 0:
        os.close(child.pidfd)
    return child.pid


def members(pid: int) -> list[Process]:
    """The living processes of a job: its group, and all that descend from it."""
    everyone = list(all_processes())
    found = {pid}
    for one in everyone:  # ids mostly grow from parents to children; the group holds the others
        if one.parent in found or one.group in found:
            found.add(one.pid)
    return [one for one in everyone if one.pid in found and one.alive]


def send(pid: int, number: int) -> None:
    """A signal to the job's whole group, and to what left it."""
    for one in members(pid):
        if one.group != pid:
            _kill(os.kill, one.pid, number)
    _kill(os.killpg, pid, number)


def send_leader(pid: int, number: int) -> None:
    """A signal to the job's script alone."""
    _kill(os.kill, pid, number)


def end_group(pid: int) -> None:
    """End what a job that has ended left in its group."""
    _kill(os.killpg, pid, signal.SIGKILL)


def sweep(mark: str) -> None:
    """End whatever carries the mark of a cluster in its environment, wherever it went."""
    wanted = f"{MARK}={mark}".encode()
    for one in all_processes():
        if one.alive and one.pid != os.getpid():
            try:
                with open(f"/proc/{one.pid}/environ", "rb") as file:
                    hers = wanted in file.read().split(b"\0")
            except OSError:  # gone, or someone else's
                continue
            if hers:
                _kill(os.kill, one.pid, signal.SIGKILL)


def _kill(how: Callable[[int, int], None], target: int, number: int) -> None:
    try:
        how(target, number)
    except OSError:
        pass


def resident(pid: int) -> int:
    """Bytes of memory that the job's processes hold together."""
    return sum(one.resident for one in members(pid))


def reaped() -> list[tuple[int, int, float]]:
    """Children that ended: (process id, exit code or negative signal, CPU seconds)."""
    found: list[tuple[int, int, float]] = []
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found.append((pid, os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime))


def copy_out(source: str, target: str) -> bool:
    """Bring an output file to its place, as PBS does at the end of a job; False: it is lost."""
    try:
        if os.path.isdir(target):
            target = os.path.join(target, os.path.basename(source))
        shutil.copyfile(source, target)
    except OSError:
        return False
    return True


KILL, TERM, STOP, CONTINUE = signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGCONT

"""The only module that starts a process; what is known about processes and this machine comes through it.

The ways to start one, measured on Linux (medians, `sh -c ': > f'` to its end): bare `os.posix_spawn` 655 us,
with the file actions, process group and signals below 656 us, `subprocess.Popen` 725 us, a `cd` by a shell in
between 1204 us (and dash drops variables whose names it does not like, such as exported bash functions).
`posix_spawn` cannot change the folder (Python has no name for `addchdir_np`), and changing our own would be
seen by every thread: where the wanted folder is not ours, `Popen` it is.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

from msgspec import Struct

from treadle.base.groups import (
    attempts_alive,
    end_stragglers,
    kill_groups,
    live_members,
    process_gone,
    start_time,
)
from treadle.base.machine import boot_id, gpus_here, host, pid_namespace, usable_cpus, usable_memory
from treadle.base.program import find_program, forget_programs

__all__ = [
    "Child",
    "answer_of",
    "attempts_alive",
    "become",
    "begin_session",
    "boot_id",
    "end_stragglers",
    "find_program",
    "gpus_here",
    "host",
    "kill_groups",
    "live_members",
    "output_of",
    "pid_namespace",
    "pidfds_work",
    "process_gone",
    "spawn",
    "start_time",
    "usable_cpus",
    "usable_memory",
]

_CATCHABLE = [number for number in range(1, 32) if number not in (signal.SIGKILL, signal.SIGSTOP)]
_SHELLS_OWN = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)  # ignored on purpose: nohup, a job behind `&`
_CLOSE_FROM: int | None = getattr(os, "POSIX_SPAWN_CLOSEFROM", None)  # Python 3.13
_NO_PIDFDS = (errno.ENOSYS, errno.EPERM, errno.EINVAL)  # old kernels, and sandboxes that forbid them


class Child(Struct, frozen=True, gc=False):
    """A process that was started, leader of its own group.

    `pidfd` is -1 where there are none; `started` is its kernel start time in ticks (0: unknown).
    """

    pid: int
    pidfd: int
    started: int


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    stdout_fd: int,
    stdin: str = "/dev/null",
) -> Child:
    """Start `argv` in a process group of its own, its stdout and stderr going to `stdout_fd`.

    `env` is its whole environment, on whose PATH a name without slash is looked up; `cwd` is absolute. The
    child holds no other descriptor of ours, and its signals are as new. Raises OSError, whose `filename` is
    what could not be used.
    """
    _prepare()
    program = find_program(argv[0], env.get("PATH", os.defpath), cwd)
    way = _spawn_here if _is_current(cwd) else _spawn_in
    before = _clock_ticks()
    try:
        pid = way(cwd, program, argv, env, stdout_fd, stdin)
    except FileNotFoundError:
        forget_programs()  # what was found there once may have moved
        raise
    return Child(pid, _pidfd(pid), _started(pid, before))


def become(argv: Sequence[str], *, env: Mapping[str, str], cwd: str) -> NoReturn:
    """Put `argv` in the place of this process: same terminal, same process id, signals as new.

    `env` and `cwd` as in `spawn`. Raises OSError, whose `filename` is what could not be used.
    """
    program = find_program(argv[0], env.get("PATH", os.defpath), cwd)
    os.chdir(cwd)
    for number in _CATCHABLE:  # Python ignores SIGPIPE, and ignoring is inherited
        if signal.getsignal(number) == signal.SIG_IGN and number not in _SHELLS_OWN:
            signal.signal(number, signal.SIG_DFL)
    os.execve(program, tuple(argv), env)


def output_of(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: str, data: bytes = b"", timeout: float = 10.0
) -> bytes | None:
    """What a short program prints, given `data`; its stderr is dropped.

    None where it cannot be started, fails, or takes longer than `timeout` seconds (then it is killed).
    """
    import subprocess  # slow to import, and seldom needed

    try:
        done = subprocess.run(
            argv,
            env=env,
            cwd=cwd,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
            check=False,
            process_group=0,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def answer_of(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    stdin: str = "/dev/null",
    timeout: float,
    began: Callable[[int], None] = lambda pid: None,
) -> tuple[int | None, str, str]:
    """Exit code, stdout and stderr of a command; None for the code of one that took longer than `timeout`.

    `stdin` is a file. It leads a process group of its own, which is killed when its time is over; `began` is
    told the number of that group. What is no UTF-8 comes back as replacement characters. Raises OSError when
    it cannot be started.
    """
    import subprocess  # slow to import, and not needed by local runs

    with (
        open(stdin, "rb") as given,
        subprocess.Popen(
            argv,
            executable=find_program(argv[0], env.get("PATH", os.defpath), cwd),
            env=env,
            cwd=cwd,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        ) as child,
    ):
        began(child.pid)
        code: int | None
        try:
            out, err = child.communicate(timeout=timeout)
            code = child.returncode
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            code, out, err = None, b"", b""
            with suppress(subprocess.TimeoutExpired):  # something that left the group may hold the pipes
                out, err = child.communicate(timeout=1.0)
    return code, out.decode(errors="replace"), err.decode(errors="replace")


def begin_session(argv: Sequence[str], *, env: Mapping[str, str], kept: int) -> int:
    """Start a command in a session of its own, which no terminal ends; its process id.

    Standard streams and the current folder are ours; of our other descriptors it gets `kept` alone. Raises
    OSError when it cannot be started.
    """
    import subprocess

    child = subprocess.Popen(argv, env=env, start_new_session=True, pass_fds=(kept,))
    child.returncode = 0  # else Popen would wait for it some day, and take its status from us
    return child.pid


def _spawn_here(
    _cwd: str, program: str, argv: Sequence[str], env: Mapping[str, str], stdout_fd: int, stdin: str
) -> int:
    # In this order it is right even when stdout_fd is 0 or 2.
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_DUP2, stdout_fd, 1),
        (os.POSIX_SPAWN_DUP2, 1, 2),
        (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
    ]
    if _CLOSE_FROM is not None:
        actions.append((_CLOSE_FROM, 3))
    return os.posix_spawn(
        program, tuple(argv), env, file_actions=actions, setpgroup=0, setsigmask=(), setsigdef=_CATCHABLE
    )


def _spawn_in(
    cwd: str, program: str, argv: Sequence[str], env: Mapping[str, str], stdout_fd: int, stdin: str
) -> int:
    from subprocess import Popen  # slow to import, and seldom needed

    stdin_fd = os.open(stdin, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with _signals_as_new():
            child = Popen(
                argv,
                executable=program,
                env=env,
                cwd=cwd,
                stdin=stdin_fd,
                stdout=stdout_fd,
                stderr=stdout_fd,
                process_group=0,
            )
    finally:
        os.close(stdin_fd)
    child.returncode = 0  # else Popen would wait for it some day, and take its status from us
    return child.pid


@contextmanager
def _signals_as_new() -> Iterator[None]:
    """What a child inherits of signals, as `setsigdef` and `setsigmask` would make it: none blocked, none
    ignored (those get a handler that does nothing meanwhile, for handlers are not inherited)."""
    ignored = [number for number in _CATCHABLE if signal.getsignal(number) == signal.SIG_IGN]
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        for number in ignored:
            with suppress(ValueError):  # only the main thread may
                signal.signal(number, _do_nothing)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number in ignored:
            with suppress(ValueError):
                signal.signal(number, signal.SIG_IGN)


def _do_nothing(_number: int, _frame: object) -> None:
    pass


def _is_current(folder: str) -> bool:
    wanted, current = os.stat(folder), os.stat(".")
    return wanted.st_ino == current.st_ino and wanted.st_dev == current.st_dev


_prepared = False


def _prepare() -> None:
    """Once: let no descriptor that we inherited slip into a child, and see to it that children can be
    waited for (with SIGCHLD ignored, which is inherited too, the kernel reaps them itself)."""
    global _prepared
    if _prepared:
        return
    _prepared = True
    with suppress(FileNotFoundError):  # no /dev/fd
        for fd in map(int, os.listdir("/dev/fd")):
            with suppress(OSError):  # the one that listed the folder
                if fd > 2:
                    os.set_inheritable(fd, False)
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        with suppress(ValueError):  # only the main thread may
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def pidfds_work() -> bool:
    """Whether this system gives descriptors that become readable when a process ends."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def _pidfd(pid: int) -> int:
    if not hasattr(os, "pidfd_open"):
        return -1
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in _NO_PIDFDS:
            return -1
        os.killpg(pid, signal.SIGKILL)  # too many open files: a child that cannot be watched must not run
        os.waitpid(pid, 0)
        raise


def _clock_ticks() -> int:
    """Now, in the unit and on the clock of start times (proc_pid_stat(5), field 22); 0 where unknown."""
    if _TICK == 0:
        return 0
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // _TICK


_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK") if hasattr(time, "CLOCK_BOOTTIME") else 0
_clock_agrees: bool | None = None


def _started(pid: int, before: int) -> int:
    """The start time of a child made since `before`: where no tick passed meanwhile, it is known without
    reading /proc (which costs 50 us). The first child proves that the kernel reckons that way."""
    global _clock_agrees
    if _clock_agrees is not False and before and _clock_ticks() == before:
        if _clock_agrees is None:
            _clock_agrees = start_time(pid) == before
        if _clock_agrees:
            return before
    return start_time(pid)

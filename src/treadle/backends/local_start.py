"""Starting a local attempt: its log, its environment, its process; and the words when that fails."""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Mapping, Sequence

from treadle.backends.local_gpus import GPU_VARIABLE
from treadle.base.disk import disk_error
from treadle.base.errors import DiskError
from treadle.base.files import make_parents
from treadle.base.proc import Child, spawn
from treadle.base.sole import is_sole
from treadle.engine.backend import Submission
from treadle.engine.compose import by_hand

SHORTAGE = (errno.EAGAIN, errno.ENOMEM)  # of processes or memory: may be over in a moment
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_WAY_OUT = {
    errno.E2BIG: "its text, arguments and environment are too long together: pass long lists as a file "
    "({input.list}), or move the text into a script",
    errno.EACCES: "it is not executable here: `chmod +x` it, or see whether its file system allows programs",
    errno.ENOEXEC: "it is neither a program for this machine nor a script that begins with #!",
    errno.EAGAIN: "the limit on processes is reached (ulimit -u): lower -j or raise it",
    errno.ENOMEM: "there is no memory left for another process: lower -j",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n) or lower -j",
    errno.ENFILE: "the whole machine has too many open files: lower -j",
    errno.ETXTBSY: "something still writes that program: wait until it is done",
}


def start(submission: Submission, env: Mapping[str, str], stdin: str = os.devnull) -> Child:
    """Start the process of an attempt with `env` as its whole environment, `stdin` the path it reads from.

    Raises `DiskError` when the log cannot be opened, OSError when the process cannot be started.
    """
    fd = _open_log(submission)
    try:
        return spawn(submission.argv, env=env, cwd=submission.cwd, stdout_fd=fd, stdin=stdin)
    finally:
        os.close(fd)


def _open_log(submission: Submission) -> int:
    if submission.log_from and (taken := _taken_over(submission.log_from, submission.log)) is not None:
        return taken
    mode = 0o600 if submission.private_log else 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        try:
            fd = os.open(submission.log, flags, mode)
        except FileNotFoundError:
            make_parents(submission.log)
            fd = os.open(submission.log, flags, mode)
        if submission.private_log:
            os.fchmod(fd, mode)  # it may have been there
    except (OSError, ValueError) as error:
        raise disk_error("write the log", submission.log, error) from error
    return fd


def _taken_over(spare: str, log: str) -> int | None:
    """A log that nobody needs, for it is empty and nobody can write to it any more, under its new name.

    To make a file takes a disk much longer, and thousands of empty ones are left. None: it cannot be taken.
    """
    try:
        fd = os.open(spare, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        stat = os.fstat(fd)
        if stat.st_size == 0 and stat.st_nlink == 1 and is_sole(fd):
            os.rename(spare, log)
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def environment(
    base: Mapping[str, str], submission: Submission, gpus: Sequence[str], *, pooled: bool
) -> dict[str, str]:
    """The whole environment of an attempt, on top of `base`.

    `gpus` are its own; `pooled`: this machine has some to hand out.
    """
    env = {**base, "PWD": submission.cwd, **submission.env}
    if gpus or (pooled and GPU_VARIABLE not in submission.env):
        env[GPU_VARIABLE] = ",".join(gpus)
    return env


def refusal(submission: Submission, error: OSError | ValueError | DiskError) -> str:
    """Why an attempt could not be started: the thing, the system's words, the way out."""
    if isinstance(error, DiskError):
        return str(error)
    name = submission.argv[0]
    if isinstance(error, ValueError):
        return f"cannot start '{name}': an argument or a variable holds NUL or is not valid UTF-8 text"
    words = error.strerror or str(error)
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES) and error.filename == submission.cwd:
        return f"cannot work in '{submission.cwd}': {words}\n  make that folder, or give another work folder"
    if error.errno == errno.ENOENT:
        hint = _missing(name, submission.cwd)
    else:
        hint = _WAY_OUT.get(error.errno or 0, "look at the program and at the limits of this machine")
    return f"cannot start '{name}': {words}\n  {hint}"


def _missing(name: str, cwd: str) -> str:
    if "/" not in name:
        return f"no '{name}' is on PATH here: install it, or name its environment in the rule"
    if os.path.exists(os.path.join(cwd, name)):
        return "it is there, but what its first line (#!) or its loader names is not"
    return "there is no such file: look at its spelling and at the work folder"


def script_of(submission: Submission, added: Mapping[str, str]) -> str:
    """A script for sh that runs the attempt by hand, with `added` on top of the caller's environment."""
    if submission.task.call is not None:
        return by_hand(submission)
    odd = []
    lines = ["#!/bin/sh", f"# {_one_line(submission.task.id)}, attempt {submission.attempt}"]
    for name, value in sorted(added.items()):
        pair = f"{shlex.quote(f'{name}={value}')}"
        if _SHELL_NAME.match(name):
            lines.append(f"export {name}={shlex.quote(value)}")
        else:
            odd.append(pair)
    lines.append(f"cd -- {shlex.quote(submission.cwd)} || exit 1")
    words = (["env", *odd] if odd else []) + [shlex.quote(word) for word in submission.argv]
    lines.append(f"exec {' '.join(words)} </dev/null")
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())

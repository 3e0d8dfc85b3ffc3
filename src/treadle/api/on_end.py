"""`[workflow] on_end`: one command of the user's after a run, to send a mail or a message."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING

from treadle.api.pipe import secrets_of
from treadle.base.layout import RunFolder, private_log
from treadle.base.proc import Child, spawn
from treadle.engine.options import DriveResult
from treadle.rules.schema import Workflow

if TYPE_CHECKING:
    from logging import Logger

PATIENCE = 60.0  # seconds; a message that takes longer is given up, so that no run hangs on it
_SHOWN = 1 << 16  # bytes of what it says that are kept
_GRACE = 1.0  # seconds between SIGTERM and SIGKILL then
_LOOK = 0.05  # seconds between two looks where there are no pidfds


def on_end(workflow: Workflow, folder: RunFolder, workdir: str, result: DriveResult, log: Logger) -> None:
    """Run the command in the work folder; what it writes goes to the engine's log, masked as all that is
    written there, and its failure is only said there.

    It finds TREADLE_RUN, TREADLE_WORKFLOW, TREADLE_EXIT_CODE and TREADLE_FAILED (how many tasks failed) in
    its environment.
    """
    secrets = secrets_of(workflow)
    env = {
        **os.environ,
        **{name: secrets[name] for name in workflow.on_end_secrets},
        "TREADLE_RUN": folder.run,
        "TREADLE_WORKFLOW": workflow.name,
        "TREADLE_EXIT_CODE": str(result.exit_code),
        "TREADLE_FAILED": str(len(result.failures)),
    }
    said = private_log(folder.engine_log)
    try:
        fd = os.open(said, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.unlink(said)  # it is read by its descriptor, and gone whatever happens
            child = spawn(["bash", "-c", workflow.on_end], env=env, cwd=workdir, stdout_fd=fd)
            _wait(child, log)
            if text := os.pread(fd, _SHOWN, 0):
                log.info("on_end: %s", text.decode("utf-8", "replace").rstrip())
        finally:
            os.close(fd)
    except OSError as error:
        log.warning("on_end could not be started: %s", error)


def _wait(child: Child, log: Logger) -> None:
    """Wait for its end, and end it when it takes too long or we are interrupted."""
    status = None
    try:
        status = _status(child, PATIENCE)
        if status is None:
            log.warning("on_end took more than %.0f s and was ended", PATIENCE)
        elif code := os.waitstatus_to_exitcode(status):
            log.warning("on_end failed with exit code %d", code)
    finally:
        if status is None:
            _end(child)
        if child.pidfd >= 0:
            os.close(child.pidfd)


def _status(child: Child, patience: float) -> int | None:
    """Its wait status; None when it has not ended after so many seconds."""
    if child.pidfd >= 0:
        poll = select.poll()
        poll.register(child.pidfd, select.POLLIN)
        return os.waitpid(child.pid, 0)[1] if poll.poll(patience * 1000) else None
    until = time.monotonic() + patience
    while True:
        pid, status = os.waitpid(child.pid, os.WNOHANG)
        if pid or time.monotonic() >= until:
            return status if pid else None
        time.sleep(_LOOK)


def _end(child: Child) -> None:
    """End its group; it was not waited for yet, so that the number is still its own."""
    os.killpg(child.pid, signal.SIGTERM)
    if _status(child, _GRACE) is None:
        os.killpg(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)

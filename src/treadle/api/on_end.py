"""`[workflow] on_end`: one command of the user's after a run, to send a mail or a message."""

from __future__ import annotations

import os
import select
from logging import Logger

from treadle.base.layout import RunFolder
from treadle.base.proc import kill_groups, spawn
from treadle.engine.options import DriveResult
from treadle.rules.schema import Workflow

PATIENCE = 60.0  # seconds; a message that takes longer is given up, so that no run hangs on it


def on_end(workflow: Workflow, folder: RunFolder, workdir: str, result: DriveResult, log: Logger) -> None:
    """Run the command in the work folder; what it writes goes to the engine's log, and its failure is only
    said there.

    It finds TREADLE_RUN, TREADLE_WORKFLOW, TREADLE_EXIT_CODE and TREADLE_FAILED (how many tasks failed) in
    its environment.
    """
    env = {
        **os.environ,
        "TREADLE_RUN": folder.run,
        "TREADLE_WORKFLOW": workflow.name,
        "TREADLE_EXIT_CODE": str(result.exit_code),
        "TREADLE_FAILED": str(len(result.failures)),
    }
    fd = os.open(folder.engine_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        child = spawn(["bash", "-c", workflow.on_end], env=env, cwd=workdir, stdout_fd=fd)
    except OSError as error:
        log.warning("on_end could not be started: %s", error)
        return
    finally:
        os.close(fd)
    if child.pidfd >= 0:
        ended, _, _ = select.select([child.pidfd], [], [], PATIENCE)
        os.close(child.pidfd)
        if not ended:
            log.warning("on_end took more than %.0f s and was ended", PATIENCE)
            kill_groups([(child.pid, child.started, "")], 1.0)
    code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    if code:
        log.warning("on_end failed with exit code %d", code)

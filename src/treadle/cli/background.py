"""`treadle run --detach`: the same command once more, in a session of its own, which outlives the terminal.

The new process plans, asks and says what is wrong as always. Once its run has a folder it says so on a pipe
and turns to `runs/<run>/driver.log`; then we go.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from treadle.base.layout import RunFolder
from treadle.base.proc import begin_session
from treadle.cli.again import Again
from treadle.cli.printer import Printer

_PIPE = "TREADLE_DETACHED"  # the number of the descriptor on which the run is told


class Begun(Struct, frozen=True):
    """A run in the background."""

    run: str
    pid: int
    log: str


def detach(words: Sequence[str], printer: Printer, again: Again) -> int:
    """Start `treadle run` with these words in the background; the exit code.

    It is that of the new process where that ended before it had anything to run.
    """
    reader, writer = os.pipe()
    argv = [sys.executable, "-m", "treadle.cli.main", "run", *words]
    sys.stdout.flush()
    pid = begin_session(argv, env={**os.environ, _PIPE: str(writer)}, kept=writer)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as pipe:
            told = pipe.read()
    except KeyboardInterrupt:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise
    if not told:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256
    begun = msgspec.json.decode(told, type=Begun)
    if printer.json:
        printer.object({"schema": 1, "run": begun.run, "pid": begun.pid, "log": begun.log})
    else:
        printer.talk(f"run {begun.run} goes on in the background (process {begun.pid})")
        printer.talk(f"  {again.records('status')} tells how it goes, {again.records('cancel')} ends it")
        printer.talk(f"  what it says: {begun.log}")
    return 0


def turn_away(folder: RunFolder) -> None:
    """Say to who started us that the run has begun, and write to its log from here on."""
    told = os.environ.pop(_PIPE, "")
    to_log(folder)
    if told:
        begun = Begun(folder.run, os.getpid(), folder.driver_log)
        with os.fdopen(int(told), "wb") as pipe:
            pipe.write(msgspec.json.encode(begun))


def to_log(folder: RunFolder) -> None:
    """Let all that is said from here on go into the driver's log."""
    sys.stdout.flush()
    sys.stderr.flush()
    log = os.open(folder.driver_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, standard in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(ours, standard)
    os.close(log)
    os.close(nothing)

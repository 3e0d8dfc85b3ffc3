"""Words for the stories of steps: functions that leave marks, and scripts in processes of their own."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

HEAD = (
    "import os, sys, time, pathlib\nfrom treadle import ResourceConfig, StepRunError, StepRunner, StepSpec\n"
)
# For the start of a script: the driver dies as the event is written whose number is its first argument.
KILLER = """
    import signal
    from treadle.records import append
    at, count, write = int(sys.argv[1]), 0, append.Appender.write
    def dying(self, data):
        global count
        for line in data.splitlines(keepends=True):
            write(self, line)
            count += 1
            if count == at and self.path.endswith("events.jsonl"): os.kill(os.getpid(), signal.SIGKILL)
    append.Appender.write = dying
"""


def put(text: str) -> Callable[[str], None]:
    """A function of a step that writes a text, and returns nothing."""

    def write(out: str) -> None:
        pathlib.Path(out).write_text(text)

    return write


class Calls:
    """Functions that note that they were called, from any thread."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._lock = threading.Lock()

    def put(self, name: str) -> Callable[[str], None]:
        def write(out: str) -> None:
            with self._lock:
                self.names.append(name)
            pathlib.Path(out).write_text(name)

        return write

    def boom(self, name: str) -> Callable[[str], None]:
        def fail(out: str) -> None:
            with self._lock:
                self.names.append(name)
            raise ValueError(f"{name} went wrong")

        return fail


def start_script(folder: pathlib.Path, text: str, *args: str, **more: Any) -> subprocess.Popen[str]:
    """Start a script of a person's in its own process, and do not wait for it."""
    file = folder / f"script-{abs(hash(text)) % 10**8}.py"
    if not file.exists():  # another process may be reading it
        file.write_text(HEAD + textwrap.dedent(text))
    clean = {key: value for key, value in os.environ.items() if not key.startswith("TREADLE_")}
    return subprocess.Popen(
        [sys.executable, str(file), *args],
        cwd=folder,
        env={**clean, **more.pop("env", {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def run_script(folder: pathlib.Path, text: str, *args: str, exits: int | None = 0, **more: Any) -> str:
    """Run a script; it must end with `exits` (None: whatever). What it printed."""
    process = start_script(folder, text, *args, **more)
    out, err = process.communicate(timeout=120)
    if exits is not None:
        assert process.returncode == exits, f"exit {process.returncode}\n{out}\n{err}"
    return out if exits == 0 else out + err

"""Daemons in the foreground, each a child with a name and a log: started until ready, stopped, killed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class NotStartedError(Exception):
    """A daemon that ended at once or was never ready, with the end of its log."""


class Daemons:
    """All daemons of one batch system below `folder`, and the commands that ask them.

    `settings` are environment variables for both; nothing else of our own environment reaches them.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self.env = {"PATH": _PATH, "LC_ALL": "C", "HOME": "/root", **settings}
        self._known: dict[str, tuple[list[str], Callable[[], bool]]] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._logs = folder / "log"
        self._logs.mkdir(exist_ok=True)

    def add(self, name: str, argv: Sequence[str], ready: Callable[[], bool]) -> None:
        """Make one known and start it; `ready` tells when it can be used."""
        self._known[name] = (list(argv), ready)
        self.start(name)

    def start(self, name: str, *, wait: bool = True) -> None:
        argv, ready = self._known[name]
        if name in self._running and self._running[name].poll() is None:
            return
        with self._log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=self.env,
                start_new_session=True,
            )
        if wait:
            self.until(ready, f"{name} is ready", of=name)

    def stop(self, name: str, *, hard: bool = False) -> None:
        """End it as its service would, within 20 s, or (`hard`) as a machine that loses its power."""
        process = self._running[name]
        process.kill() if hard else process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def until(self, condition: Callable[[], bool], what: str, *, of: str = "", seconds: float = 60) -> None:
        """Wait for `condition`. Raises NotStartedError when the daemon `of` ends meanwhile, or time is up."""
        end = time.monotonic() + seconds
        while not condition():
            over = of and self._running[of].poll() is not None
            if over or time.monotonic() > end:
                why = "it ended" if over else f"not within {seconds:g} s"
                raise NotStartedError(f"waited for: {what}; {why}\n{self._last_words(of)}")
            time.sleep(0.05)

    def says(self, *argv: str) -> str:
        """What a command prints; nothing when it fails, cannot be started, or takes longer than 20 s."""
        try:
            done = subprocess.run(
                argv, env=self.env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=20
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.decode(errors="replace") if done.returncode == 0 else ""

    def does(self, *argv: str) -> None:
        """Run a command that must succeed. Raises NotStartedError with what it printed."""
        done = subprocess.run(
            argv, env=self.env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=120
        )
        if done.returncode != 0:
            printed = (done.stdout + done.stderr).decode(errors="replace")
            raise NotStartedError(f"{' '.join(argv)}: exit code {done.returncode}\n{printed[-3000:]}")

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.out"

    def _last_words(self, name: str) -> str:
        if not name:
            return ""
        with self._log(name).open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 3000))
            return log.read().decode(errors="replace")

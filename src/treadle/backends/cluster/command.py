"""The commands of one scheduler: each with a time limit, in a clean environment, never in the loop's way.

Work that asks the scheduler runs on threads of its own (`Commands.begin`) and its result comes back on the
loop's (`hand_back`), which a descriptor wakes. `Outage` keeps how long nobody has answered.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from treadle.backends.cluster.dialect import Dialect, Said
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import SchedulerError
from treadle.base.proc import answer_of
from treadle.engine.aside import Aside
from treadle.engine.signals import Wake

T = TypeVar("T")

_FIRST_PAUSE = 1.0  # seconds; the pauses between tries double
_LONGEST_PAUSE = 60.0
_DAY = 24 * 3600.0


class Commands:
    """Runs commands of one scheduler. `base` is the environment that they inherit, but for what leaks."""

    def __init__(
        self, dialect: Dialect, settings: ClusterSettings, cwd: str, base: Mapping[str, str] | None = None
    ) -> None:
        self._settings = settings
        self._cwd = cwd
        self._env = clean(os.environ if base is None else base, dialect, settings.bin_dir)
        self._wake = Wake()
        self._lock = threading.Lock()
        self._closed = False
        self._live: set[int] = set()
        self._aside: Aside[Any] = Aside(self._ring)
        self.count = 0  # commands that were begun

    @property
    def reader(self) -> int:
        """A descriptor that is readable when `hand_back` has something."""
        return self._wake.reader

    @property
    def busy(self) -> bool:
        """Whether any work has not been handed back yet."""
        return len(self._aside) > 0

    def run(self, argv: Sequence[str], stdin: str = "") -> Said:
        """Run one command and wait for it; its code is None when it took longer than `command_timeout`.

        For any thread. Raises `SchedulerError` when it is not there, or may not be run.
        """
        pid = 0

        def began(group: int) -> None:
            nonlocal pid
            pid = group
            with self._lock:
                self._live.add(group)

        self.count += 1
        try:
            answer = answer_of(
                argv,
                env=self._env,
                cwd=self._cwd,
                stdin=stdin or os.devnull,
                timeout=self._settings.command_timeout,
                began=began,
            )
        except OSError as error:
            raise SchedulerError(
                f"cannot run '{argv[0]}': {error.strerror or error}",
                hint=f"is this a machine that submits to {self._settings.backend}? "
                "Set 'bin_dir' to the folder of its commands",
            ) from error
        finally:
            with self._lock:
                self._live.discard(pid)
        return Said(*answer)

    def begin(self, work: Callable[[], T], then: Callable[[T | BaseException], None]) -> None:
        """Do `work`, which may `run` commands, aside; `then` gets what came of it in `hand_back`."""
        self._aside.begin(work, then)

    def hand_back(self) -> None:
        """Call what waits for work that is done."""
        self._wake.drain()
        self._aside.hand_back()

    def wait(self, seconds: float) -> None:
        """Wait until `hand_back` has something, at most so long."""
        select.select([self._wake.reader], [], [], seconds)

    def _ring(self) -> None:
        with self._lock:
            if not self._closed:  # else the descriptor may be somebody else's
                self._wake.ring()

    def close(self) -> None:
        """End the commands that still run, and give the descriptor back."""
        if self._closed:
            return
        self._aside.close()
        with self._lock:
            self._closed = True
            for group in self._live:
                with suppress(OSError):
                    os.killpg(group, signal.SIGKILL)
        self._wake.close()


def clean(base: Mapping[str, str], dialect: Dialect, bin_dir: str) -> dict[str, str]:
    """The environment of commands: what an allocation sets must not leak into a submission."""
    env = {
        name: value
        for name, value in base.items()
        if name in dialect.kept or not name.startswith(dialect.scrubbed)
    }
    env.update(dialect.environment)
    env.pop("TREADLE_ATTEMPT", None)  # a driver that is a job itself is no part of what it submits
    if bin_dir:
        env["PATH"] = f"{bin_dir}{os.pathsep}{env.get('PATH', os.defpath)}"
    return env


class Outage:
    """How long the scheduler has not answered, and when to try again; `limit` in seconds, None: unknown."""

    def __init__(self) -> None:
        self.since: float | None = None
        self.words = ""
        self.pause = 0.0
        self.told = False

    def failed(self, now: float, words: str) -> None:
        """A question, or a submission, had no answer."""
        if self.since is None:
            self.since, self.pause = now, 0.0
        self.words = words
        self.pause = min(_LONGEST_PAUSE, 2 * self.pause or _FIRST_PAUSE)

    def answered(self, now: float) -> float | None:
        """Somebody answered: how long that took, if it was told that nobody did."""
        lasted = None if self.since is None or not self.told else now - self.since
        self.since, self.pause, self.told = None, 0.0, False
        return lasted

    def over(self, now: float, limit: float) -> bool:
        """Whether it has lasted longer than can be waited for."""
        return self.since is not None and now - self.since > limit


def outage_limit(settings: ClusterSettings, longest: int | None) -> float:
    """How long an outage is waited for, in seconds; `longest` is the longest time limit in flight."""
    if settings.outage_limit is not None:
        return settings.outage_limit
    return float(longest) if longest else _DAY

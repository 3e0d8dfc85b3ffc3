"""How a run comes to a stand before all is done: what failures, interruptions and outages lead to."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from treadle.engine.news import Interrupt, Interrupted


class Settings(Struct, frozen=True, kw_only=True):
    """How failures are met, and what is left out.

    `max_failures`: after so many required failures nothing new starts (0: no such limit; without
    `keep_going` the first is enough). `forget`: of a task that has ended only its end is kept. `linger`: so
    many seconds the end of the run waits for successes that are doubted to be confirmed.
    """

    keep_going: bool = False
    fail_fast: bool = False
    max_failures: int = 0
    cutoff: bool = True
    keep_temporary: bool = False
    forget: bool = False
    linger: float = 0.0

    @property
    def bearable(self) -> int:
        """The number of required failures after which nothing new starts."""
        return self.max_failures or (1 << 62 if self.keep_going and not self.fail_fast else 1)


class Mode(IntEnum):
    """How far a run has come to a stand; it never goes back."""

    GOING = 0
    DRAINING = 1  # nothing new starts; what runs comes to its end
    ENDING = 2  # and what runs is being cancelled
    OVER = 3


class Stop(Struct, frozen=True):
    """What the machine is to do: come to a stand this far; `force`: what is cancelled is killed at once."""

    mode: Mode
    force: bool = False


class Brakes:
    """Decides; the machine obeys. `exit_code` is what the run ends with; `hurried`: someone asked twice for
    its end."""

    __slots__ = ("_backend_failed", "_failures", "_settings", "exit_code", "hurried", "mode")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._backend_failed = False
        self._failures = 0
        self.hurried = False
        self.mode = Mode.GOING
        self.exit_code = 0

    def required_failure(self, *, borne: bool = False) -> Stop | None:
        """A task failed that the run's verdict hangs on; `borne`: what needs it goes on without it, and so
        does the run, unless it is to stop at the first failure or after so many."""
        self.exit_code = self.exit_code or 1
        if borne and not self._settings.fail_fast and not self._settings.max_failures:
            return None
        self._failures += 1
        if self._failures < self._settings.bearable or self.mode is not Mode.GOING:
            return None
        return Stop(Mode.ENDING if self._settings.fail_fast else Mode.DRAINING)

    def failed_before(self) -> None:
        """A task that failed in an earlier run is left alone: what was asked for is not there."""
        self.exit_code = self.exit_code or 1

    def interrupted(self, news: Interrupted) -> Stop:
        """Someone wants the run to stop; whoever asks twice wants it at once."""
        again = self.exit_code >= 128
        self.exit_code = news.exit_code
        match news.how:
            case Interrupt.DETACH | Interrupt.WAIT:
                return Stop(Mode.DRAINING)
            case Interrupt.CANCEL:
                self.hurried = again and self.mode is Mode.ENDING
                return Stop(Mode.ENDING, force=self.hurried)

    def disk_given_up(self) -> Stop:
        """There is no space, and nobody waits for it any longer."""
        self.exit_code = 3
        return Stop(Mode.ENDING)

    def backend_failed(self) -> Stop:
        """The backend as a whole failed; told again: it cannot even cancel what it holds."""
        if self.exit_code < 128:  # an interruption that waits for its end stays one
            self.exit_code = 3
        if self._backend_failed or self.hurried:
            return Stop(Mode.OVER)
        self._backend_failed = True
        return Stop(Mode.ENDING)

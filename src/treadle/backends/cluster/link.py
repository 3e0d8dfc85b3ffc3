"""What submitter, poller and accountant share: one scheduler's words and commands, and whether it answers."""

from __future__ import annotations

from msgspec.structs import replace

from treadle.backends.cluster.command import Commands, Outage, outage_limit
from treadle.backends.cluster.dialect import Dialect
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import SchedulerError
from treadle.engine.backend import Remark
from treadle.engine.clock import Clock, RealClock


class Link:
    """One scheduler. Its outages are states of the backend, told as notes and never a job's fault; they end
    the run only after `outage_limit`.

    Raises OptionError for settings that cannot be.
    """

    def __init__(
        self, settings: ClusterSettings, *, workdir: str, user: str = "", clock: Clock | None = None
    ) -> None:
        self.settings = settings
        self.user = user
        self.clock = clock or RealClock()
        self.dialect: Dialect = dialect_of(settings, user=user)
        self.commands = Commands(self.dialect, settings, workdir)
        if settings.backend == "pbs" and not settings.dialect:
            self._choose_dialect()
        self.outage = Outage()
        self.longest: int | None = None  # the longest time limit in flight, in seconds
        self.failure: SchedulerError | None = None
        self.leaving = False  # a failure was told: what is in flight is being cancelled, and the run ends
        self.parting = "what is in flight is cancelled, if that is heard; run again once it answers"
        self._remarks: list[Remark] = []

    def _choose_dialect(self) -> None:
        """Ask which PBS it is. Where nobody answers, it is taken for OpenPBS."""
        from treadle.backends.cluster.pbs import dialect_from_version, version_question

        try:
            found = dialect_from_version(self.commands.run(version_question()))
        except SchedulerError:  # no PBS here: nothing more than a preview can come
            return
        if found:
            self.dialect = dialect_of(replace(self.settings, dialect=found), user=self.user)

    def now(self) -> float:
        return self.clock.monotonic()

    def note(self, code: str, job: str = "", **values: str) -> None:
        """Something for people to read later."""
        self._remarks.append(Remark(code, values, job))

    def take_remarks(self) -> list[Remark]:
        """What was noted since the last time."""
        remarks, self._remarks = self._remarks, []
        return remarks

    def answered(self) -> None:
        """The scheduler answered."""
        lasted = self.outage.answered(self.now())
        if lasted is not None:
            self.note("backend_up", backend=self.settings.backend, seconds=f"{lasted:.0f}")

    def silent(self, words: str) -> float:
        """The scheduler did not answer: how many seconds to leave it alone. One silence alone is not told."""
        now, outage = self.now(), self.outage
        again = outage.since is not None
        outage.failed(now, words)
        if again and not outage.told:
            outage.told = True
            self.note("backend_down", backend=self.settings.backend, message=words)
        if outage.over(now, outage_limit(self.settings, self.longest)):
            self.give_up(self._silence(outage.since or now))
        return outage.pause

    def _silence(self, since: float) -> str:
        lasted = self.now() - since
        return f"{self.settings.backend} has not answered for {lasted:.0f} s: {self.outage.words}"

    def hurry(self) -> None:
        """Somebody asked twice to be gone: the run waits no longer, whether it answers or not."""
        since = self.outage.since
        waits = f"{self.settings.backend} was not waited for any longer"
        self.give_up(waits if since is None else self._silence(since))

    def give_up(self, message: str) -> None:
        """The run cannot go on with it. Told once more, it is left as it is."""
        self.failure = SchedulerError(message, hint=self.parting)

    def failed(self, error: BaseException) -> None:
        """Asking was not possible at all. Anything but a `SchedulerError` is raised as it is."""
        if not isinstance(error, SchedulerError):
            raise error
        self.failure = error

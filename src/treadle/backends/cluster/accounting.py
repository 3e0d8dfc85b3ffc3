"""Accounting is asked in batches: for jobs whose end hangs on it, and once for each that has settled."""

from __future__ import annotations

from collections.abc import Callable

from treadle.backends.cluster.dialect import Account, Silence
from treadle.backends.cluster.held import Held
from treadle.backends.cluster.link import Link

_LAG = 5.0  # seconds that accounting may be behind the end of a job
_TRIES = 4  # for figures: then they stay unknown
_SKEW = 60.0  # seconds by which clocks may differ


class Accountant:
    """Asks for attempts, and tells `read` of all that were asked for once it answered."""

    def __init__(self, link: Link, read: Callable[[list[Held]], None]) -> None:
        self._link = link
        self._read = read
        self._wanted: dict[int, tuple[float, Held]] = {}
        self._next: float | None = None
        self._last: float | None = None
        self._asking = False
        self._ever = False
        self._told = False
        self.there = True  # False: the site has none
        self.count = 0

    def __len__(self) -> int:
        """How many are waited for."""
        return len(self._wanted)

    def want(self, held: Held, at: float) -> None:
        """Ask for this one, not before `at`."""
        if not self.there or not held.id:
            return
        earlier = self._wanted.get(id(held))
        if earlier is None or at < earlier[0]:
            self._wanted[id(held)] = (at, held)
            self._next = at if self._next is None else min(self._next, at)

    def wants(self, held: Held) -> bool:
        """Whether it is being asked for."""
        return id(held) in self._wanted

    def want_figures(self, held: Held) -> bool:
        """Ask for one that has settled, for its numbers; whether that is still worth it. Those of a job with
        several attempts are of no one of them."""
        if held.several or held.tries >= _TRIES or not self.there or not held.id:
            return False
        pause = min(_LAG, self._link.settings.poll_interval)
        self.want(held, self._link.now() + pause * 2**held.tries)
        return True

    def due(self) -> float | None:
        """When to ask. Two questions are at least half a poll interval apart."""
        if self._asking or self._next is None:
            return None
        floor = 0.5 * self._link.settings.poll_interval
        return self._next if self._last is None else max(self._next, self._last + floor)

    def advance(self, now: float) -> None:
        """Ask, if it is time, for all that could be asked for about now."""
        due = self.due()
        if due is None or now < due:
            return
        soon = now + 0.5 * self._link.settings.poll_interval
        asked = [held for at, held in self._wanted.values() if at <= soon]
        for held in asked:
            del self._wanted[id(held)]
        self._plan_next()
        if not asked:
            return
        link = self._link
        since = min(held.sent.time for held in asked if held.sent is not None) - _SKEW
        commands = link.dialect.accounting(list(dict.fromkeys(held.id for held in asked)), since)
        self._asking = True
        self._last = now
        self.count += 1

        def ask() -> dict[str, Account] | Silence:
            found: dict[str, Account] = {}
            silence: Silence | None = None
            for argv in commands:
                answer = link.dialect.accounted(link.commands.run(argv))
                if isinstance(answer, Silence):
                    silence = answer
                    if answer.down:
                        break
                else:
                    for one in answer:
                        if one.job not in found or one.settled or not found[one.job].settled:
                            found[one.job] = one
            return silence if silence is not None and not found else found

        def answered(answer: dict[str, Account] | Silence | BaseException) -> None:
            self._answered(asked, answer, now)

        link.commands.begin(ask, answered)

    def _answered(
        self, asked: list[Held], answer: dict[str, Account] | Silence | BaseException, when: float
    ) -> None:
        self._asking = False
        link, now = self._link, self._link.now()
        if isinstance(answer, BaseException):
            link.failed(answer)
            return
        if isinstance(answer, Silence):
            self._unheard(asked, answer, now)
            return
        self._ever = True
        for held in asked:
            held.tries += 1
            held.accounted = when
            if (account := answer.get(held.id)) is not None:
                held.account = account
                held.known = when
        self._read(asked)

    def _unheard(self, asked: list[Held], silence: Silence, now: float) -> None:
        """No answer is no evidence; a site that has no accounting at all says so at the first question."""
        if not silence.down and not self._ever:
            self.there = False
            asked = [*asked, *(held for _, held in self._wanted.values())]  # they hang on it no longer
            self._wanted.clear()
            self._next = None
            self._link.note("no_accounting", message=silence.message)
        else:
            for held in asked:
                held.tries += 1
            self._tell_silence(asked, silence)
        self._read(asked)

    def _tell_silence(self, asked: list[Held], silence: Silence) -> None:
        """Once: that ends hang on an answer which does not come."""
        waiting = sum(held.ended is None for held in asked)
        if waiting and not self._told:
            self._told = True
            seconds = f"{self._link.settings.lost_after:.0f}"
            self._link.note("accounting_silent", message=silence.message, jobs=str(waiting), seconds=seconds)

    def _plan_next(self) -> None:
        self._next = min((at for at, _ in self._wanted.values()), default=None)

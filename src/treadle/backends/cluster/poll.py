"""One question for all jobs in flight, now and then; and quick looks at what jobs write, in between.

The queue is asked as little as possible: the interval grows while nothing changes. What a job writes when it
ends is a file, which costs the scheduler nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from treadle.backends.cluster.dialect import Phase, Row, Silence
from treadle.backends.cluster.held import Held, Sent
from treadle.backends.cluster.link import Link
from treadle.base.files import is_there

_LONGEST = 60.0  # seconds between two polls when nothing changes
_GROWTH = 1.5
_FIRST = 1.0  # seconds from a submission to the first poll, where the last one is long enough ago
_PUT_AWAY = 15.0  # seconds from the end of a job until the queue surely shows it as it is
_START = re.compile(r"([0-9]{1,12})\.([0-9]{1,6})\Z")
_FIRST_LOOK = 0.1  # seconds between two looks at the folders of jobs, while they find something
_LOOK_GROWTH = 1.3
_LOOK_SHARE = 25  # a look may take this part of the time (1/25) at most: slow file systems are left alone


class Heard(Struct, frozen=True):
    """What the queue said: rows by job. `whole`: a job without a row is not known to it."""

    asked: float
    rows: dict[str, Row]
    whole: bool


class Poller:
    """Asks the queue. `live` are the submissions in flight; `heard` gets every answer, and returns whether
    it brought anything new."""

    def __init__(
        self, link: Link, live: Callable[[], Iterable[Sent]], heard: Callable[[Heard], bool]
    ) -> None:
        self._link = link
        self._live = live
        self._heard = heard
        self._interval = link.settings.poll_interval
        self._next: float | None = None
        self._last: float | None = None
        self._asking = False
        self._silent: float | None = None  # since when the queue could not be read
        self.polled: float | None = None  # when the queue last answered
        self.asked = False  # and whether it was asked at all, to any end
        self.count = 0

    def soon(self) -> None:
        """Something happened: the next question comes as soon as the site's floor allows."""
        shortest = self._link.settings.poll_interval
        self._interval = shortest
        now = self._link.now()
        at = now + min(_FIRST, shortest)
        if self._last is not None:
            at = max(at, self._last + shortest)
        self._next = at if self._next is None else min(self._next, at)

    def at_once(self) -> None:
        """Somebody waits for the answer: the driver has just come, or jobs were cancelled."""
        self._next = self._link.now()

    def due(self) -> float | None:
        """When to ask (None: not while an answer is waited for, or nothing is in flight)."""
        return None if self._asking else self._next

    def advance(self, now: float) -> None:
        """Ask, if it is time."""
        if self._asking or self._next is None or now < self._next:
            return
        self._next = None
        jobs = [held.id for sent in self._live() if (held := _one_of(sent)) is not None]
        if not jobs:
            self._silent = None
            return
        link = self._link
        commands = link.dialect.poll(jobs, link.user)
        self._asking = True
        self._last = now
        self.count += 1

        def ask() -> Heard | Silence:
            rows: dict[str, Row] = {}
            silence: Silence | None = None
            for argv in commands:
                answer = link.dialect.polled(link.commands.run(argv))
                if isinstance(answer, Silence):
                    silence = answer
                    if answer.down:
                        break
                else:
                    rows.update((row.job, row) for row in answer)
            if silence is not None and not rows:
                return silence
            return Heard(now, rows, silence is None)

        link.commands.begin(ask, self._answered)

    def _answered(self, answer: Heard | Silence | BaseException) -> None:
        self._asking, self.asked = False, True
        link, now = self._link, self._link.now()
        if isinstance(answer, BaseException):
            link.failed(answer)
            return
        if isinstance(answer, Silence):
            pause = link.silent(answer.message)
            self._next = now + max(pause, link.settings.poll_interval)
            self._give_up(answer.message)
            return
        self._silent = None
        link.answered()
        if answer.whole:
            self.polled = answer.asked
        if self._heard(answer):
            self._interval = link.settings.poll_interval
        else:
            longest = max(_LONGEST, link.settings.poll_interval)
            self._interval = min(longest, self._interval * _GROWTH)
        wish = now + self._interval
        self._next = wish if self._next is None else min(self._next, wish)

    def _give_up(self, words: str) -> None:
        """The queue could not be read: for too long?"""
        link, now = self._link, self._link.now()
        patience = link.settings.poll_timeout
        if self._silent is None:
            self._silent = now
        elif patience is not None and now - self._silent >= patience:
            link.give_up(
                f"the queue of {link.settings.backend} could not be read for {now - self._silent:.0f} s, "
                f"longer than poll_timeout allows: {words}"
            )
            self._silent = now  # so long again for the jobs to be gone, and the driver leaves them


def _one_of(sent: Sent) -> Held | None:
    """One living attempt stands for its whole array: that is how every scheduler is asked."""
    return next((held for held in sent.held if held.ended is None and held.id), None)


class DoneInQueue:
    """Jobs that were seen to be done while the queue still had them: it may start one of them once more.

    Most of them are just being put away. An answer that is older than the end, or a queue that is slow to
    show a start, says of every quick job that it still waits; and a job that is cancelled while it is put
    away is called cancelled by accounting. So one counts only if it waits long after its end.
    """

    def __init__(self) -> None:
        self._held: list[tuple[float, Held]] = []

    def add(self, held: Held, now: float) -> None:
        """The end of this one was seen `now`."""
        self._held.append((now, held))

    def still_waiting(self, heard: Heard) -> list[Held]:
        """Those that are to be taken out of the queue. Each is told once."""
        found: list[Held] = []
        left: list[tuple[float, Held]] = []
        for since, held in self._held:
            row = heard.rows.get(held.id)
            if row is None and heard.whole:
                continue
            if heard.asked - since < _PUT_AWAY:
                left.append((since, held))
            elif row is not None and row.phase is Phase.PENDING:
                found.append(held)
        self._held = left
        return found


class Watch:
    """Looks at the folders of submissions for attempts that began and attempts that ended."""

    def __init__(self, live: Callable[[], Iterable[Sent]]) -> None:
        self._live = live
        self._interval = _FIRST_LOOK
        self._cost = 0.0
        self._next: float | None = None

    def soon(self, now: float) -> None:
        """There is something to look for."""
        self._interval = _FIRST_LOOK
        at = now + max(_FIRST_LOOK, self._cost * _LOOK_SHARE)
        self._next = at if self._next is None else min(self._next, at)

    def due(self) -> float | None:
        return self._next

    def advance(self, now: float, longest: float) -> tuple[list[Held], list[Held]]:
        """If it is time: the attempts that have begun, and those that left an exit file."""
        if self._next is None or now < self._next:
            return [], []
        before = time.perf_counter()
        began: list[Held] = []
        ended: list[Held] = []
        live = False
        for sent in self._live():
            live = True
            began += _new_starts(sent, now)
            ended += _new_ends(sent)
        self._cost = time.perf_counter() - before
        if began or ended:
            self._interval = _FIRST_LOOK
        else:
            self._interval = min(max(longest, _FIRST_LOOK), self._interval * _LOOK_GROWTH)
        self._next = now + max(self._interval, self._cost * _LOOK_SHARE) if live else None
        return began, ended


def _new_starts(sent: Sent, now: float) -> list[Held]:
    """Those that were started, or started again, since the last look."""
    known = sent.names
    if not (new := sent.list(now) - known):
        return []
    began: list[Held] = []
    for name in new:
        if (found := _START.match(name)) is None:
            continue
        n, number = int(found[1]), int(found[2])
        held = sent.by_n.get(n)
        if held is not None and held.ended is None:
            before = sent.running.get(n)
            if before is None or number > before[1]:
                sent.running[n] = (held, number)
            began.append(held)
    return began


def _new_ends(sent: Sent) -> Iterator[Held]:
    """Those whose last start has left an exit file since the last look."""
    for n, (held, number) in list(sent.running.items()):
        if held.ended is not None:
            del sent.running[n]
        elif is_there(sent.folder.exit(n, number)):
            del sent.running[n]
            yield held

"""What the next turn of the loop will take in: news for the machine, and notes for people."""

from __future__ import annotations

from treadle.engine.clock import Clock
from treadle.engine.news import News
from treadle.records.event import Event, Noticed


class Inbox:
    """Filled between two turns, on the loop's own thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._news: list[News] = []
        self._notes: list[Event] = []

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self._news or self._notes)

    def tell(self, news: News) -> None:
        """Something that the machine must know."""
        self._news.append(news)

    def note(self, code: str, task: str = "", **values: str) -> None:
        """Something that a person should be able to read later."""
        self._notes.append(Noticed(time=self._clock.now(), code=code, task=task, values=values))

    def take(self) -> tuple[list[News], list[Event]]:
        """All that is there, which is gone from here then."""
        taken = self._news, self._notes
        self._news, self._notes = [], []
        return taken

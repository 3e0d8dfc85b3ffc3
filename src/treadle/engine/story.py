"""What happened lately, so that news which cannot be are told with the story of their task."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from treadle.engine.news import Added, News
from treadle.engine.node import Node

_LENGTH = 4000


class MachineError(AssertionError):
    """News that cannot be, or a run that cannot go on: a bug, told with its story."""


class Story:
    """The last news, in order."""

    def __init__(self) -> None:
        self._news: deque[tuple[float, News]] = deque(maxlen=_LENGTH)

    def add(self, now: float, news: News) -> None:
        if type(news) is not Added:  # of no one task, and it would keep its batch in memory
            self._news.append((now, news))

    def impossible(self, task: str, node: Node | None, news: News) -> MachineError:
        """The error for `news` of a task, which stands as `node` says (None: there is no such task)."""
        return MachineError("\n".join(self._lines(task, node, news)))

    def _lines(self, task: str, node: Node | None, news: News) -> Iterator[str]:
        yield f"impossible news of {task}: {news}"
        if node is None:
            yield "  it is not a task of this run"
        else:
            yield f"  it is {node.state}, attempt {node.attempt}, n {node.n}, job {node.job!r}"
        for now, earlier in self._news:
            if getattr(earlier, "task", None) == task:
                yield f"  {now:.3f} {earlier}"

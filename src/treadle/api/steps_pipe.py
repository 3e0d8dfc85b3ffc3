"""From a list of steps to the plan of their tasks: the front half of the pipe for steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.decide.reason import Decision, Verdict

if TYPE_CHECKING:
    from treadle.steps.book import StepBook
    from treadle.steps.record import Seen


def note_rebuilds(book: StepBook, seen: Mapping[str, Seen], decision: Decision) -> None:
    """Tell the book which steps are wanted again though they are complete, and what they replace."""
    for task, answer in decision.answers.items():
        if answer.verdict is Verdict.WILL_RUN and task in book:
            found = seen.get(task)
            if found is not None and found.record is not None:
                wanted = found.state == "complete"
                book.put(task, replace(book[task], wanted=wanted, replaces=found.record))

"""Before a run: whether the functions of its steps can be sent to where they are to be called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from treadle.base.errors import StepError
from treadle.plan.task import ScheduledTask, Where

if TYPE_CHECKING:
    from treadle.steps.book import StepBook


def refuse_unsendable(book: StepBook, tasks: Iterable[ScheduledTask]) -> None:
    """See that every function that goes to another process can be pickled.

    Raises `StepError` with all that cannot.
    """
    going = [task.id for task in tasks if task.call is not None and task.call.where is not Where.THREAD]
    if not going:
        return
    from treadle.backends.payload import check_picklable

    found = [one for one in (check_picklable(book[task]) for task in going if task in book) if one]
    if found:
        raise StepError(found)

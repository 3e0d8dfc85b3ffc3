"""What the driver keeps of one attempt from its intent to its end."""

from __future__ import annotations

from treadle.engine.backend import Submission
from treadle.engine.slate import Slate
from treadle.plan.task import Resources, ScheduledTask
from treadle.records.event import FileRecord


class Attempt:
    """One attempt. `slate` was found before it, `before` are its inputs as it finds them, `standing` the
    outputs that stood there when it began.

    `name` is that of its job, as the intent tells it; `job` is empty until the backend holds it. `deferred`:
    the job holds nothing but a watch for who is at it now.
    """

    __slots__ = (
        "attempt",
        "before",
        "copies_log",
        "deferred",
        "job",
        "n",
        "name",
        "resources",
        "running",
        "slate",
        "standing",
        "submission",
        "task",
    )

    def __init__(self, task: ScheduledTask, attempt: int, n: int, resources: Resources, slate: Slate) -> None:
        self.task = task
        self.attempt = attempt
        self.n = n
        self.name = ""
        self.resources = resources
        self.slate = slate
        self.standing: dict[str, FileRecord] = {}
        self.before: dict[str, FileRecord] = {}
        self.submission: Submission | None = None
        self.job = ""
        self.running = False
        self.copies_log = False
        self.deferred = False

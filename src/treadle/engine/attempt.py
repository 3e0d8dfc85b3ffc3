"""What the driver keeps of one attempt from its intent to its end."""

from __future__ import annotations

from treadle.base.layout import RunFolder
from treadle.engine.backend import Submission
from treadle.engine.slate import Slate
from treadle.plan.task import Resources, ScheduledTask
from treadle.records.event import FileRecord


class Attempt:
    """One attempt. `slate` was found before it, `before` are its inputs as it finds them, `standing` the
    outputs that stood there when it began.

    `name` is that of its job, as the intent tells it; `job` is empty until the backend holds it. `deferred`:
    the job holds nothing but a watch for who is at it now. `folder` is that of the run that submitted it.
    `adopted`: an earlier driver looked at its inputs; `anew`: its end is only waited for, whatever it makes;
    `doomed` as in `Adoptee`. `shown` is what was told of it last while it waited. `scratch` is the folder of
    its private folder, where that is one of this machine. `whole`, `lost`, `unit` and `after` as in `Launch`.
    """

    __slots__ = (
        "adopted",
        "after",
        "anew",
        "attempt",
        "before",
        "copies_log",
        "deferred",
        "doomed",
        "exclude",
        "folder",
        "job",
        "lost",
        "n",
        "name",
        "resources",
        "running",
        "scratch",
        "shown",
        "slate",
        "standing",
        "submission",
        "task",
        "unit",
        "whole",
    )

    def __init__(
        self,
        task: ScheduledTask,
        attempt: int,
        n: int,
        resources: Resources,
        slate: Slate,
        folder: RunFolder,
        exclude: tuple[str, ...] = (),
    ) -> None:
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
        self.folder = folder
        self.exclude = exclude
        self.adopted = False
        self.anew = False
        self.doomed = False
        self.scratch = ""
        self.unit = 0
        self.after: tuple[int, ...] = ()
        self.whole: ScheduledTask | None = None
        self.lost: tuple[str, ...] = ()
        self.shown = ("", "", "")

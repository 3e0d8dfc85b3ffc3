"""What is kept of each attempt and of each submission, and the file that tells later drivers about them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from treadle.backends.cluster.dialect import Account, Phase, Row
from treadle.backends.cluster.exit_file import Witness, look_for_exit
from treadle.backends.cluster.script_task import holds_secrets
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.verdict import Ended, Facts
from treadle.base.files import read_regular
from treadle.base.layout import JobFolder
from treadle.engine.backend import JobReport, JobStatus, Submission, Witnessed
from treadle.engine.compose import ATTEMPT
from treadle.records.event import EndReason

FORMAT = 1
SUBMITTED = "submitted"  # the state of what the queue has taken and not shown yet


class Element(Struct, frozen=True, array_like=True):
    """One attempt in a submission; `index` is that in the array, from 1 (0: no array)."""

    n: int
    index: int
    name: str


class Elements(Struct, frozen=True):
    """One submission: the name that the scheduler knows it by, when it was made (seconds since the epoch)."""

    format: int
    name: str
    array: bool
    time: float
    elements: tuple[Element, ...]


class Held:
    """One attempt from its submission to us to its end. Times by the driver's clock.

    `name` is its own, by which the engine calls it; `id` what the scheduler does (empty: not known). `row`,
    `last`, `over`, `known`, `witness`, `looked`, `account`, `accounted` as in `Facts`. `submission` is there
    until the scheduler has it. `several`: others are in the same job. `shown` is what the engine was last
    told of its place in the queue, and when. `doomed` as in `Adoptee`.
    """

    __slots__ = (
        "account", "accounted", "asked", "attempt", "cancelled", "doomed", "ended", "exclude", "id", "index",
        "known", "last", "limit", "log", "looked", "n", "name", "over", "provisional", "row", "secret",
        "sent", "sent_at", "several", "shown", "shown_at", "status", "submission", "task", "told_id", "tries",
        "witness",
    )  # fmt: skip

    def __init__(self, submission: Submission, settings: ClusterSettings) -> None:
        self.submission: Submission | None = submission
        self.n = submission.n
        self.name = submission.name
        self.task = submission.task
        self.attempt = submission.env.get(ATTEMPT, "")
        self.limit = submission.resources.time_limit or settings.walltime
        self.log = submission.log
        self.exclude = submission.exclude
        self.secret = holds_secrets(submission)
        self.id = ""
        self.index = 0
        self.several = False
        self.sent: Sent | None = None
        self.sent_at = 0.0
        self.known = 0.0
        self.row: Row | None = None
        self.last: Row | None = None
        self.over: float | None = None
        self.witness = Witness()
        self.looked: float | None = None
        self.account: Account | None = None
        self.accounted: float | None = None
        self.tries = 0  # how often accounting was asked
        self.asked = 0  # how often its cancelling was asked for
        self.cancelled = False
        self.doomed = False
        self.status = JobStatus.PENDING
        self.shown = ""
        self.shown_at: float | None = None
        self.told_id = False
        self.ended: Ended | None = None
        self.provisional = False  # its success was told, and has not been confirmed yet

    def took(self, sent: Sent, id: str, now: float) -> None:
        """The scheduler has it. That it took the job is the first that the queue says of it."""
        self.sent, self.id, self.sent_at, self.known = sent, id, now, now
        self.row = Row(id, Phase.UNKNOWN, SUBMITTED)
        self.submission = None

    def facts(self, now: float, polled: float | None, accounting: bool) -> Facts:
        """All that is known of it. Silence is no evidence: only from the first answer on that does not know
        it does it count as unknown."""
        return Facts(
            now=now,
            known=self.known if self.over is None else max(self.known, self.over),
            row=self.row,
            last=self.last,
            polled=polled if polled is not None and polled >= self.sent_at else None,
            over=self.over,
            witness=self.witness,
            looked=self.looked,
            account=self.account,
            accounted=self.accounted,
            accounting=accounting and bool(self.id),
            cancelled=self.cancelled,
            doomed=self.doomed,
            several=self.several,
        )

    @property
    def begun(self) -> bool:
        """Its folder tells that it was started."""
        return self.witness.starts > 0 or (self.sent is not None and self.n in self.sent.running)

    @property
    def requeued(self) -> bool:
        """The queue says that it ran before, and waits again."""
        return self.row is not None and self.row.requeued

    def report(self) -> JobReport:
        """Its news."""
        id = "" if self.told_id else self.id
        self.told_id = bool(self.id)
        if self.ended is None:
            return JobReport(job=self.name, status=self.status, reason=self.shown, job_id=id)
        exit = self.witness.exit
        written = Witnessed(inputs=exit.inputs, outputs=exit.outputs, end=exit.end) if exit else None
        ok = self.ended.outcome.reason is EndReason.OK
        return JobReport(
            job=self.name,
            status=JobStatus.ENDED,
            outcome=self.ended.outcome,
            job_id=id,
            written=written,
            provisional=ok and self.provisional,
        )


class Sent:
    """One submission: a single job, or a whole array. `live` counts the attempts that have not ended, and
    `jobs` the jobs that have such ones."""

    __slots__ = (
        "array", "by_n", "folder", "held", "id", "listed", "live", "name", "names", "open", "running", "time",
    )  # fmt: skip

    def __init__(self, folder: JobFolder, name: str, array: bool, time: float, held: list[Held]) -> None:
        self.folder = folder
        self.name = name
        self.array = array
        self.time = time
        self.held = held
        self.id = ""
        self.live = 0
        self.open: Counter[int] = Counter()
        self.by_n: dict[int, Held] = {}
        self.count()
        self.names: frozenset[str] = frozenset()
        self.listed: float | None = None
        # Those that began, with the number of their last start, and whose end has not been seen, by their n.
        self.running: dict[int, tuple[Held, int]] = {}

    def count(self) -> None:
        """Count the attempts anew: those in it are other ones, or they have their indices now."""
        self.live = len(self.held)
        self.by_n = {one.n: one for one in self.held}
        self.open = Counter(one.index for one in self.held)

    @property
    def jobs(self) -> int:
        return len(self.open)

    def ended(self, held: Held) -> bool:
        """One has ended; whether its job has ended with it."""
        self.live -= 1
        self.open[held.index] -= 1
        if self.open[held.index]:
            return False
        del self.open[held.index]
        return True

    def mates(self, held: Held) -> list[Held]:
        """The attempts in the same job that have not ended, itself among them."""
        return [one for one in self.held if one.index == held.index and one.ended is None]

    def list(self, now: float) -> frozenset[str]:
        """The names in its folder, read anew unless that was done at this very moment (a listing lets NFS
        look, where a question for one file is answered from memory)."""
        if self.listed != now:
            names: list[str] = []
            with suppress(OSError):
                names = os.listdir(self.folder.root)
            self.names, self.listed = frozenset(names), now
        return self.names

    def look(self, held: Held, now: float) -> None:
        """See what an attempt has left."""
        names, folder = self.names if self.listed == now else self.list(now), self.folder
        if os.path.basename(folder.start(held.n, 1)) not in names:
            held.witness = Witness(refused=os.path.basename(folder.refused(held.n)) in names)
        else:
            held.witness = look_for_exit(folder, held.n, held.attempt)
            if held.witness.exit is None:
                with suppress(OSError):
                    os.listdir(folder.start(held.n, held.witness.starts))
                held.witness = look_for_exit(folder, held.n, held.attempt)
        held.looked = now


def read_elements(folder: JobFolder) -> Elements | None:
    """Which attempts are in a submission; None where its file is not there, or is not of this Treadle."""
    try:
        found = msgspec.json.decode(read_regular(folder.elements), type=Elements)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found if found.format == FORMAT else None


def by_job(some: Sequence[Held]) -> list[list[Held]]:
    """Attempts that wait: those of a unit as one."""
    jobs: dict[tuple[int, int], list[Held]] = {}
    for held in some:
        unit = held.submission.unit if held.submission is not None else 0
        jobs.setdefault((unit, 0 if unit else held.n), []).append(held)
    return list(jobs.values())

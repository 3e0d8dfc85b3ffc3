"""What the contract suite holds a backend with: attempts go in, news come out."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from treadle.backends.local import LocalBackend
from treadle.backends.pair import PairBackend
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.names import job_name
from treadle.engine.backend import Accepted, ExecutorBackend, JobReport, JobStatus, Refused, Submission
from treadle.plan.task import Call, Command, Policy, Resources, ScheduledTask, Where
from treadle.records.event import Outcome
from treadle.steps.book import Entry, StepBook
from treadle.steps.spec import StepSpec

PATIENCE = 90.0  # seconds for what must come


class Kind(Struct, frozen=True):
    """A backend under contract: how one is made for a work folder and a book, where its steps run (None: it
    runs commands alone), what it must refuse (by name of the resource; None: it refuses nothing), and whether
    what is cancelled is asked to end before it is killed."""

    name: str
    make: Callable[[Path, StepBook], AbstractContextManager[ExecutorBackend]]
    where: Where | None
    refuses: Resources | None = None
    asks: bool = True


@contextmanager
def local(folder: Path, book: StepBook) -> Iterator[ExecutorBackend]:
    backend = LocalBackend(book=book)
    yield backend
    backend.close()


@contextmanager
def pair(folder: Path, book: StepBook) -> Iterator[ExecutorBackend]:
    backend = PairBackend(LocalBackend(), LocalBackend(book=book))
    yield backend
    backend.close()


LOCAL = Kind("local", local, Where.PROCESS)
PAIR = Kind("pair", pair, Where.CLIENT)


class Bench:
    """One backend in a work folder, driven as the engine's loop does it."""

    def __init__(self, kind: Kind, folder: Path, backend: ExecutorBackend, book: StepBook) -> None:
        self.kind = kind
        self.folder = folder
        self.backend = backend
        self.book = book
        self.run: RunFolder = StateFolder(str(folder)).run(
            "20261129T110501Z-" + f"{hash(folder) & 0xFFFF:04x}"
        )
        Path(self.run.logs).mkdir(parents=True)
        self.live: dict[str, int] = {}
        self.news: dict[int, list[JobReport]] = {}
        self.jobs: dict[int, str] = {}
        self.n = 0

    def command(self, text: str, **changes: Any) -> Submission:
        """An attempt at a command, not submitted."""
        task = ScheduledTask(id=f"t/n={self.n + 1}", rule="t", command=Command(text=text))
        argv = changes.pop("argv", ("bash", "-c", text))
        return self._submission(task, argv, **changes)

    def step(self, spec: StepSpec, **changes: Any) -> Submission:
        """An attempt at a step, not submitted."""
        if self.kind.where is None:
            pytest.skip("it runs commands alone")
        path = spec.path_under(str(self.folder / "artifacts"))
        self.book.put(spec.task_id, Entry(spec=spec, path=path))
        where = changes.pop("where", self.kind.where)
        call = Call(step=spec.name, identity=spec.identity, path=path, where=where)
        task = ScheduledTask(id=spec.task_id, rule=f"@{spec.name}", call=call, policy=Policy())
        return self._submission(task, (), **changes)

    def _submission(
        self,
        task: ScheduledTask,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str] | None = None,
        grace: float = 1.0,
        time_limit: int | None = None,
        resources: Resources | None = None,
    ) -> Submission:
        self.n += 1
        return Submission(
            task=task,
            attempt=1,
            n=self.n,
            name=job_name(self.run.run, self.n),
            argv=argv,
            env={"TREADLE_ATTEMPT": f"{self.run.run}.{self.n}", **(env or {})},
            cwd=str(self.folder),
            log=self.run.attempt_log(self.n),
            resources=resources or Resources(time_limit=time_limit),
            grace=grace,
        )

    def submit(self, *batch: Submission) -> list[Accepted | Refused]:
        """Hand them in as one batch."""
        answers = self.backend.submit(list(batch))
        assert len(answers) == len(batch)
        for submission, answer in zip(batch, answers, strict=True):
            self.news[submission.n] = []
            if isinstance(answer, Accepted):
                self.live[answer.job] = submission.n
                self.jobs[submission.n] = answer.job
        return answers

    def turn(self, longest: float = 5.0) -> None:
        """Wait for news as the engine does, and take them in."""
        wish = self.backend.next_timeout()
        wait = longest if wish is None else min(wish, longest)
        fd = self.backend.fileno()
        select.select([fd] if fd is not None else [], [], [], wait)
        for report in self.backend.poll(list(self.live)):
            self.news[self.live[report.job]].append(report)
            if report.outcome is not None or report.status is JobStatus.FREED:
                del self.live[report.job]

    def until(self, done: Callable[[], Any], what: str = "it") -> None:
        """Go on until something is so."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, f"{what} never came: {self.news}"
            self.turn(0.05)

    def until_there(self, name: str) -> None:
        """Go on until an attempt has made a file; one must live to make it."""
        there = (self.folder / name).exists
        self.until(lambda: there() or not self.live, name)
        assert there(), f"{name} never came: {self.news}"

    def finish(self, submission: Submission) -> Outcome:
        """Go on until this attempt has ended; how it did."""
        self.until(lambda: self.jobs[submission.n] not in self.live, submission.task.id)
        outcome = self.news[submission.n][-1].outcome
        assert outcome is not None
        return outcome

    def do(self, submission: Submission) -> Outcome:
        """Submit it, and go on until it has ended."""
        (answer,) = self.submit(submission)
        assert isinstance(answer, Accepted), answer
        return self.finish(submission)

    def cancel(self, submission: Submission, *, force: bool = False) -> None:
        self.backend.cancel([self.jobs[submission.n]], force=force)

    def log(self, submission: Submission) -> str:
        return Path(submission.log).read_text()

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def close(self) -> None:
        """End what a failed test left running."""
        if self.live:
            self.backend.cancel(list(self.live), force=True)
            self.until(lambda: not self.live, "the end of what was cancelled")

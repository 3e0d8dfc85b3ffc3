"""A tiny driver of steps: enough of the engine's loop to see them through a local backend."""

from __future__ import annotations

import contextvars
import os
import select
import time
from pathlib import Path

import pytest

from treadle.backends.local import LocalBackend
from treadle.base.layout import ArtifactPlaces, StateFolder
from treadle.engine.backend import Accepted, JobReport, JobStatus, Submission
from treadle.plan.task import Call, Policy, Resources, ScheduledTask, Where
from treadle.records.event import Outcome
from treadle.steps.book import Entry, StepBook
from treadle.steps.record import ArtifactState, Dep, Standing
from treadle.steps.spec import StepSpec
from treadle.steps.stores import store_for

BOTH = pytest.mark.parametrize("where", [Where.THREAD, Where.PROCESS])
NAME = contextvars.ContextVar("NAME", default="nobody")


class StepDriver:
    """Runs steps of one run below one prefix; `reports` are all news as they came."""

    def __init__(self, workdir: Path, run: str = "one", prefix: str = "") -> None:
        self.workdir = workdir
        self.run = StateFolder(str(workdir)).run(f"{run}-{os.getpid()}-{workdir.name}")
        Path(self.run.logs).mkdir(parents=True)
        self.prefix = prefix or str(workdir / "artifacts")
        self.book = StepBook()
        self.backend = LocalBackend(book=self.book)
        self.reports: list[JobReport] = []
        self.live: dict[str, Submission] = {}
        self.ended: dict[str, Outcome] = {}
        self.n = 0
        self._waiting = select.poll()
        self._waiting.register(self.backend.fileno(), select.POLLIN)

    def path(self, spec: StepSpec) -> str:
        return spec.path_under(self.prefix)

    def seen(self, spec: StepSpec):
        return store_for(self.path(spec)).look(self.path(spec), spec.identity)

    def content(self, spec: StepSpec) -> str:
        return Path(self.path(spec)).read_text()

    def log(self, n: int = 0) -> str:
        return Path(self.run.attempt_log(n or self.n)).read_text()

    def submission(self, spec: StepSpec, where: Where, *, time_limit=None, grace=10.0, **entry) -> Submission:
        self.n += 1
        deps = tuple(Dep(one.name, one.identity, self.path(one)) for one in spec.deps)
        self.book.put(spec.task_id, Entry(spec=spec, path=self.path(spec), deps=deps, **entry))
        call = Call(step=spec.name_with_hash, identity=spec.identity, path=self.path(spec), where=where)
        resources = Resources(time_limit=time_limit)
        return Submission(
            task=ScheduledTask(id=spec.task_id, rule="@" + spec.name, call=call, policy=Policy()),
            attempt=1,
            n=self.n,
            name=f"t-{self.n}",
            argv=(),
            env={"TREADLE_ATTEMPT": f"{self.run.run}.{self.n}"},
            cwd=str(self.workdir),
            log=self.run.attempt_log(self.n),
            resources=resources,
            grace=grace,
        )

    def submit(self, spec: StepSpec, where: Where = Where.PROCESS, **changes) -> str:
        """Begin a step; its job."""
        submission = self.submission(spec, where, **changes)
        (answer,) = self.backend.submit([submission])
        assert isinstance(answer, Accepted), answer
        self.live[answer.job] = submission
        return answer.job

    def turn(self, longest: float = 5.0) -> None:
        """Wait for news as the engine does, and take them in."""
        wish = self.backend.next_timeout()
        self._waiting.poll(1000 * (longest if wish is None else min(wish, longest)))
        for report in self.backend.poll(list(self.live)):
            self.reports.append(report)
            submission = self.live[report.job]
            if report.outcome is not None:
                self.ended[submission.task.id] = report.outcome
            if report.outcome is not None or report.status is JobStatus.FREED:
                del self.live[report.job]

    def until(self, condition, bound: float = 60.0) -> None:
        deadline = time.monotonic() + bound
        while not condition():
            assert time.monotonic() < deadline, self.reports
            self.turn(0.02)

    def perform(self, spec: StepSpec, where: Where = Where.PROCESS, **changes) -> Outcome:
        """Run a step to its end."""
        job = self.submit(spec, where, **changes)
        self.until(lambda: job not in self.live)
        return self.ended[spec.task_id]

    def error(self, spec: StepSpec) -> BaseException:
        return self.book.errors[spec.task_id]

    def told(self) -> list[JobStatus]:
        return [report.status for report in self.reports]

    def close(self) -> None:
        self.backend.cancel(list(self.live), force=True)
        self.until(lambda: not self.live)
        self.backend.close()


def writes(text):
    """A step's function that writes a text."""

    def fn(out):
        with open(out, "w") as file:
            file.write(text)

    return fn


def assert_clean(steps, spec, state=Standing.FAILED):
    """Nothing of the attempt is left but its status."""
    seen = steps.seen(spec)
    assert (seen.state, seen.status.state) == (ArtifactState.ABSENT, state)
    assert seen.status.error
    places = ArtifactPlaces(steps.path(spec))
    assert not os.path.lexists(places.work(f"{steps.run.run}.{steps.n}"))
    assert store_for(steps.path(spec)).holder(steps.path(spec)) is None


def begun(steps, path: Path) -> None:
    """Wait until a step gave its sign."""
    steps.until(path.exists)

"""The loop around the machine, with a backend that starts no processes and a clock that jumps."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from treadle.base.layout import StateFolder
from treadle.decide.reason import Answer
from treadle.engine.backend import Submission
from treadle.engine.loop import DriveOptions, DriveResult, drive
from treadle.plan.task import ScheduledTask
from treadle.records.compact import Checkpoint
from treadle.records.event import End, EndReason, Event, Noticed, Outcome, RunStarted, TaskSettled
from treadle.records.journal import Journal, read_journal
from treadle.records.past import Past
from treadle.records.recorder import Recorder
from treadle.testing import plans
from treadle.testing.backend import OK, FakeBackend
from treadle.testing.clock import JumpingClock

BAD = Outcome(reason=EndReason.APP, exit_code=3)

Act = Callable[[Submission], Outcome | str | None]


class Bench:
    """A work folder in which plans are driven; what a task does is a function of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = StateFolder(str(folder))
        self.acts: dict[str, Act] = {}
        self.backend = FakeBackend(self._act)
        self.clock = JumpingClock()
        self.heard: list[Event] = []
        self.number = 0
        self.records: Any = None
        self.lock: Any = None
        self.wrap: Callable[[Recorder], Any] = lambda recorder: recorder
        self.listener: Callable[[Sequence[Event]], None] = self.heard.extend

    def _act(self, submission: Submission) -> Outcome | str | None:
        with open(submission.log, "a") as log:
            log.write(f"log of {submission.task.id}\n")
        act = self.acts.get(submission.task.id)
        if act is not None:
            return act(submission)
        for path in submission.task.outputs:
            (self.folder / path).write_text(f"made by {submission.task.id}")
        return OK

    def drive(
        self,
        *tasks: ScheduledTask,
        answers: dict[str, Answer] | None = None,
        past: Past | None = None,
        secrets: dict[str, str] | None = None,
        **options: Any,
    ) -> DriveResult:
        self.number += 1
        self.run = self.state.run(f"20260101T00000{self.number}Z-aaaa")
        os.makedirs(self.run.logs)
        first = RunStarted(time=0.0, format=1, run=self.run.run, treadle="0", workflow="small")
        recorder = Recorder(Journal.create(self.run.events, first), Checkpoint.open(self.state, self.run.run))
        plan = plans.plan(tasks)
        try:
            return drive(
                plan,
                plans.decision(plan, answers),
                Past() if past is None else past,
                self.backend,
                self.wrap(recorder),
                DriveOptions(**{"jobs": 2, **options}),
                run=self.run,
                workdir=str(self.folder),
                secrets=secrets,
                lock=self.lock,
                listener=self.listener,
                clock=self.clock,
            )
        finally:
            recorder.close()

    def events(self, kind: type[Event] = Event) -> list[Any]:
        return [event for event in read_journal(self.run.events).events if isinstance(event, kind)]

    def ends(self) -> dict[str, End]:
        return {event.task: event.state for event in self.events(TaskSettled)}

    def codes(self) -> list[str]:
        return [event.code for event in self.events(Noticed)]

    def write(self, path: str, text: str = "x") -> None:
        (self.folder / path).write_text(text)

    def names(self) -> list[str]:
        return sorted(name for name in os.listdir(self.folder) if not name.startswith("."))


task = plans.task

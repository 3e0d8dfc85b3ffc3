"""Jobs of earlier runs on a scheduler, met by a run on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from treadle.api.adoption import Taken, watched_notes
from treadle.api.pipe import Request, View, look
from treadle.api.run import RunOptions, RunReport, run
from treadle.api.session import Recovered
from treadle.base.errors import LockError
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.mask import Mask
from treadle.base.place import Severity
from treadle.cli.words import notice
from treadle.decide.flight import sent_identity
from treadle.decide.reason import Verdict
from treadle.records.event import FORMAT, AttemptSubmitted, Event, Noticed, RunStarted
from treadle.records.flight import Interrupted
from treadle.records.journal import Journal, is_ended, read_journal
from treadle.records.lock import LockNews
from treadle.records.owner import Owner
from treadle.records.runs import new_run
from treadle.records.version import prepare

DEAD = Owner(uuid="of-a-run-elsewhere", host="elsewhere", pid=7, user="ann", locked=True)
FLOW = """
[workflow]
name = "flow"
version = "1.0.0"

[[rules]]
name = "a"
output = ["a.txt"]
shell = "echo a > {output}"

[[rules]]
name = "b"
output = ["b.txt"]
shell = "echo b > {output}"
"""


class Front:
    """Agrees to everything, and keeps what it hears."""

    def __init__(self) -> None:
        self.said: list[LockNews | Recovered] = []
        self.events: list[Event] = []

    def say(self, news: LockNews | Recovered) -> None:
        self.said.append(news)

    def agree(self, view: View, mask: Mask) -> bool:
        return True

    def open(self, folder: RunFolder) -> None:
        pass

    def feed(self, events: Sequence[Event]) -> None:
        self.events += events

    def close(self) -> None:
        pass


class Folder:
    """A work folder whose last driver was killed while SLURM had the job of a task."""

    def __init__(self, root: Path) -> None:
        (root / "flow.oxoflow").write_text(FLOW)
        self.request = Request(file=str(root / "flow.oxoflow"), workdir=str(root))
        self.state = StateFolder(str(root))
        self.front = Front()

    def fly(self, task: str, output: str) -> RunFolder:
        prepare(self.state)
        plan = look(self.request).plan
        identity = sent_identity(plan.tasks[task], lambda path: None, "") if task in plan.tasks else "x"
        folder = new_run(self.state, DEAD, now=1_800_000_000.0)
        first = RunStarted(time=1.0, format=FORMAT, run=folder.run, treadle="0", workflow="flow")
        journal = Journal.create(folder.events, first)
        journal.write(
            [
                AttemptSubmitted(
                    time=2.0, task=task, attempt=1, n=4, name="t-4", backend="slurm", outputs=(output,),
                    identity=identity,
                )
            ]
        )  # fmt: skip
        journal.close()
        return folder

    def run(self, **options: bool) -> RunReport:
        return run(self.request, RunOptions(jobs=1, **options), self.front)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_job_that_cannot_be_reached_from_here_is_refused_with_the_way_out(folder: Folder) -> None:
    old = folder.fly("a", "a.txt")
    assert look(folder.request).decision.answers["a"].verdict is Verdict.IN_FLIGHT
    with pytest.raises(LockError, match="may still be at work on slurm") as found:
        folder.run()
    assert found.value.diagnostics[0].code == "in-flight-elsewhere"
    assert "--backend slurm" in found.value.diagnostics[0].hint
    assert not is_ended(old.events)


def test_a_preview_foresees_that_a_run_will_be_refused(folder: Folder) -> None:
    folder.fly("a", "a.txt")
    (told,) = look(folder.request).beyond
    assert (told.code, told.severity) == ("in-flight-elsewhere", Severity.WARNING)
    assert "a run is refused: a of run" in told.message
    there = look(replace(folder.request, backend="slurm"))
    assert there.beyond == ()
    assert there.decision.answers["a"].verdict is Verdict.IN_FLIGHT


def test_who_is_sure_that_it_is_dead_says_so_and_it_was_interrupted(folder: Folder) -> None:
    old = folder.fly("a", "a.txt")
    report = folder.run(assume_dead=True)
    assert report.exit_code == 0
    assert report.result is not None
    assert report.result.counts == {"succeeded": 2}
    assert is_ended(old.events)
    answers = look(folder.request).decision.answers.values()
    assert {one.verdict for one in answers} == {Verdict.UP_TO_DATE}


def test_jobs_that_are_left_alone_are_noted_once_for_each_run() -> None:
    left = tuple(
        Interrupted(run=run, task=f"a/n={n}", key=str(n), attempt=1, n=n, name=f"t-{n}", backend="slurm")
        for n, run in enumerate(("one", "one", "two", "one"), 1)
    )
    notes = [one for one in watched_notes(Taken(watched=left)) if isinstance(one, Noticed)]
    assert [(one.task, one.values["run"], one.values["tasks"]) for one in notes] == [
        ("a/n=1", "one", "3"),
        ("a/n=3", "two", "1"),
    ]
    assert notice(notes[0]) == "a/n=1 and 2 more were not asked for: their jobs on slurm are left at work"
    assert notice(notes[1]) == "a/n=3 was not asked for: its job on slurm is left at work"


def test_a_job_of_no_task_of_this_workflow_is_left_alone_and_noted(folder: Folder) -> None:
    old = folder.fly("other", "other.txt")
    assert folder.run().exit_code == 0
    notes = [event for event in folder.front.events if isinstance(event, Noticed)]
    values = {"run": old.run, "backend": "slurm", "tasks": "1"}
    assert [(one.code, one.task, one.values) for one in notes] == [("left_in_flight", "other", values)]
    assert not is_ended(old.events)
    attempts = [
        event.n
        for run_id in folder.state.run_ids()
        for event in read_journal(folder.state.run(run_id).events).events
        if isinstance(event, AttemptSubmitted) and run_id != old.run
    ]
    assert attempts == [5, 6]  # no number of ours is that of a job in flight

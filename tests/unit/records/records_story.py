"""A realistic run as events, for the tests of records: successes, a retry, a failure, an eviction."""

from __future__ import annotations

from pathlib import Path

from treadle.base.layout import RunFolder, StateFolder
from treadle.records.clock import SystemClock
from treadle.records.event import (
    FORMAT,
    AttemptEnded,
    AttemptStarted,
    AttemptSubmitted,
    End,
    EndReason,
    Event,
    Evidence,
    FileRecord,
    Noticed,
    Outcome,
    OutputEvicted,
    PlanEntered,
    RunEnded,
    RunStarted,
    TaskSettled,
    Usage,
)
from treadle.records.journal import Journal
from treadle.records.owner import Owner, this_process
from treadle.records.runs import new_run
from treadle.records.version import prepare

FLOW = "flow"
DEAD = Owner(uuid="of-a-run-elsewhere", host="elsewhere", pid=7, user="ann", locked=True)


def started(run: str = "20261129T110501Z-ab12", **fields: object) -> RunStarted:
    known = {"time": 1.0, "format": FORMAT, "run": run, "treadle": "0.1", "workflow": FLOW, "host": "node1"}
    return RunStarted(**{**known, **fields})


def record(path: str, content: str = "a") -> FileRecord:
    return FileRecord(path, len(path), 1_764_413_106_123_456_789, 4711, content * 64)


def evidence(*outputs: str, text: str = "sort {input}", content: str = "a", note: str = "") -> Evidence:
    return Evidence(
        identity=content * 64,
        text=text,
        inputs=(record("data/ä 1.fq"), record("ref.fa")),
        outputs=tuple(record(path, content) for path in outputs),
        note=note,
    )


def submitted(n: int, *outputs: str, attempt: int = 1, task: str = "", **fields: object) -> AttemptSubmitted:
    known = {"time": 2.0, "task": task or outputs[0], "attempt": attempt, "n": n, "outputs": outputs}
    return AttemptSubmitted(**{"name": f"run.{n}", "backend": "local", **known, **fields})


def settled(
    n: int, *outputs: str, state: End = End.SUCCEEDED, task: str = "", **fields: object
) -> TaskSettled:
    good = state is End.SUCCEEDED
    outcome = Outcome(
        reason=EndReason.OK if good else EndReason.APP,
        exit_code=0 if good else 2,
        host="node1",
        usage=Usage(wall=1.5, memory=1 << 20),
    )
    known = {
        "time": 3.0,
        "task": task or outputs[0],
        "key": outputs[0] if outputs else "",
        "n": n,
        "attempt": 1,
    }
    made = evidence(*outputs) if good else None
    return TaskSettled(**{"state": state, "outcome": outcome, "evidence": made, **known, **fields})


def story(run: str = "20261129T110501Z-ab12", *, ended: bool = True) -> list[Event]:
    """a and b succeed, c fails twice, d is blocked, e is evicted; f is in flight, g waits for a retry."""
    events: list[Event] = [
        started(run),
        PlanEntered(time=1.1, round=1, digest="d" * 64, tasks=7, will_run=7),
        submitted(1, "out/a.txt"),
        AttemptStarted(time=2.1, task="out/a.txt", n=1, job="101", started=5001),
        submitted(2, "out/b.txt", "out/b.log"),
        AttemptStarted(time=2.1, task="out/b.txt", n=2, job="102", started=5002),
        settled(1, "out/a.txt"),
        submitted(3, "c"),
        settled(2, "out/b.txt", "out/b.log"),
        AttemptEnded(
            time=3.0, task="c", attempt=1, n=3, outcome=Outcome(reason=EndReason.OOM, exit_code=137)
        ),
        submitted(4, "c", attempt=2),
        settled(4, "c", state=End.FAILED),
        settled(0, "d", state=End.BLOCKED, attempt=0, outcome=None, cause="c"),
        submitted(5, "e"),
        settled(5, "e"),
        OutputEvicted(time=4.0, task="e", key="e", record=record("e")),
        Noticed(time=4.0, code="output-untouched", task="e", values={"path": "e"}),
        submitted(6, "f", before=(record("f"),)),
        AttemptStarted(time=4.1, task="f", n=6, job="106", started=5006),
        submitted(7, "g"),
        AttemptEnded(time=4.2, task="g", attempt=1, n=7, outcome=Outcome(reason=EndReason.APP, exit_code=1)),
    ]
    return [*events, RunEnded(time=5.0, exit_code=1)] if ended else events


def fresh(tmp_path: Path) -> StateFolder:
    """The state folder of a new work folder."""
    state = StateFolder(str(tmp_path))
    prepare(state)
    return state


def journaled(
    state: StateFolder, *, ended: bool = False, owner: Owner = DEAD, tail: bytes = b""
) -> RunFolder:
    """A run folder with the story in its journal; `tail` is what a crash left behind it."""
    folder = new_run(state, owner, now=SystemClock().now())
    write_journal(folder, story(folder.run, ended=ended), tail)
    return folder


def write_journal(folder: RunFolder, events: list[Event], tail: bytes = b"") -> None:
    first, *rest = events
    assert isinstance(first, RunStarted)
    journal = Journal.create(folder.events, first)
    journal.write(rest)
    journal.close()
    with open(folder.events, "ab") as file:
        file.write(tail)


def ourselves(*, locked: bool = False) -> Owner:
    """An owner that lives: this very process."""
    return this_process(SystemClock(), locked=locked)

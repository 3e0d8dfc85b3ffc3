"""The loop around the machine, with a backend that starts no processes and a clock that jumps."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from treadle.base.errors import DiskError, LockError, PlanError
from treadle.base.layout import StateFolder
from treadle.decide.reason import Answer, OutputNeeded, Upstream, Verdict
from treadle.engine.backend import Abilities, Submission
from treadle.engine.loop import DriveOptions, DriveResult, drive
from treadle.engine.news import Interrupt
from treadle.plan.task import Command, Policy, Resources, ScheduledTask
from treadle.plan.tokens import INPUT_LIST
from treadle.records.compact import Checkpoint
from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    AttemptSubmitted,
    End,
    EndReason,
    Event,
    Noticed,
    Outcome,
    OutputEvicted,
    RunEnded,
    RunStarted,
    TaskSettled,
    Usage,
)
from treadle.records.journal import Journal, read_journal
from treadle.records.past import Past, load_past
from treadle.records.recorder import Recorder
from treadle.testing import plans
from treadle.testing.backend import OK, FakeBackend
from treadle.testing.clock import JumpingClock

BAD = Outcome(reason=EndReason.APP, exit_code=3)
CUT = Answer(Verdict.WILL_RUN, (Upstream("up"),), may_cut_off=True)

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


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


task = plans.task


# What is written, and when


def test_a_run_is_journaled_from_intent_to_end(bench: Bench) -> None:
    result = bench.drive(task("a", outputs=["a.txt"]), task("b", ["a"], inputs=["a.txt"], outputs=["b.txt"]))
    assert (result.exit_code, result.counts) == (0, {"succeeded": 2})
    kinds = [type(event).__name__ for event in bench.events()]
    one = ["AttemptSubmitted", "AttemptStarted", "TaskSettled"]
    assert kinds == ["RunStarted", "PlanEntered", *one, *one, "RunEnded"]
    assert bench.heard == bench.events()[1:]
    assert [event.n for event in bench.events(AttemptSubmitted)] == [1, 2]


def test_the_intent_is_on_the_disk_before_the_backend_is_called(bench: Bench) -> None:
    seen: list[int] = []

    def act(submission: Submission) -> Outcome:
        seen.extend(event.n for event in bench.events(AttemptSubmitted) if event.n == submission.n)
        return OK

    bench.acts = {"a": act, "b": act}
    bench.drive(task("a"), task("b"))
    assert seen == [1, 2]


def test_starts_of_one_turn_are_one_batch(bench: Bench) -> None:
    batches: list[int] = []
    submit = bench.backend.submit

    def counted(batch: Sequence[Submission]) -> Any:
        batches.append(len(batch))
        return submit(batch)

    bench.backend.submit = counted  # type: ignore[method-assign]
    bench.drive(*(task(name) for name in "abcdef"), jobs=3)
    assert batches == [3, 3]


def test_names_of_attempts_are_short_unique_and_begin_with_a_letter(bench: Bench) -> None:
    bench.drive(*(task(f"t{at}") for at in range(40)))
    names = [event.name for event in bench.events(AttemptSubmitted)]
    assert len(set(names)) == 40
    assert all(len(name) <= 15 and name[0] == "t" for name in names)
    assert {submission.name for submission in bench.backend.submissions} == set(names)


def test_evidence_reaches_the_checkpoint_file(bench: Bench) -> None:
    bench.write("in")
    bench.drive(task("a", inputs=["in"], outputs=["a.txt"]))
    evidence = load_past(bench.state).evidence("a.txt")
    assert evidence is not None
    assert [record.path for record in evidence.inputs] == ["in"]
    assert [len(record.digest) for record in (*evidence.inputs, *evidence.outputs)] == [64, 64]


def test_the_journal_is_synced_at_most_every_two_seconds(bench: Bench) -> None:
    syncs: list[float] = []

    class Counting:
        def __init__(self, recorder: Recorder) -> None:
            self.write = recorder.write

        def sync(self) -> None:
            syncs.append(bench.clock.monotonic())

    bench.wrap = Counting
    delayed = Policy(retries=10, retry_delay=1.5)
    bench.acts = {"a": lambda submission: BAD if submission.attempt < 4 else OK}
    bench.drive(task("a", policy=delayed))
    assert len(syncs) >= 3
    assert all(later - sooner >= 1.99 for sooner, later in pairwise(syncs[:-1]))


# Success, and what it leaves


def test_an_output_that_is_not_made_fails_the_task(bench: Bench) -> None:
    bench.acts = {"a": lambda submission: OK}
    result = bench.drive(task("a", outputs=["x", "y"]))
    assert result.exit_code == 1
    (failure,) = result.failures
    assert failure.outcome is not None
    assert (failure.outcome.reason, failure.outcome.exit_code) == (EndReason.APP, 0)
    assert "did not make x, y" in failure.outcome.message
    assert failure.log == bench.run.attempt_log(1)


def test_an_output_left_untouched_counts_as_made_and_is_said(bench: Bench) -> None:
    bench.write("x")
    bench.acts = {"a": lambda submission: OK}
    assert bench.drive(task("a", outputs=["x"])).exit_code == 0
    assert bench.codes() == ["output_untouched"]


def test_an_input_that_changes_meanwhile_leaves_a_stale_result(bench: Bench) -> None:
    bench.write("in", "old")

    def act(submission: Submission) -> Outcome:
        bench.write("in", "newer")
        bench.write("x")
        return OK

    bench.acts = {"a": act}
    bench.drive(task("a", inputs=["in"], outputs=["x"]))
    (settled,) = bench.events(TaskSettled)
    assert settled.evidence.stale == ("in",)
    assert settled.evidence.inputs[0].size == 3, "the input as the attempt found it"
    assert bench.codes() == ["input_changed"]


def test_large_outputs_are_digested_aside_and_the_run_waits_for_them(bench: Bench) -> None:
    def act(submission: Submission) -> Outcome:
        (bench.folder / submission.task.outputs[0]).write_bytes(b"x" * 3_000_000)
        return OK

    bench.acts = {"a": act, "b": act}
    assert bench.drive(task("a", outputs=["a"]), task("b", outputs=["b"])).exit_code == 0
    digests = {event.evidence.outputs[0].digest for event in bench.events(TaskSettled)}
    assert len(digests) == 1
    assert len(digests.pop()) == 64


def test_an_output_above_the_limit_is_not_read(bench: Bench) -> None:
    bench.drive(task("a", outputs=["a"], policy=Policy(digest_limit=3)))
    (settled,) = bench.events(TaskSettled)
    assert settled.evidence.outputs[0].digest == ""


def test_a_folder_may_be_an_output(bench: Bench) -> None:
    def act(submission: Submission) -> Outcome:
        (bench.folder / "d").mkdir()
        bench.write("d/x")
        return OK

    bench.acts = {"a": act}
    bench.drive(task("a", outputs=["d"]))
    (settled,) = bench.events(TaskSettled)
    assert settled.evidence.outputs[0].folder
    assert settled.evidence.outputs[0].digest


def test_the_benchmark_is_a_table(bench: Bench) -> None:
    usage = Usage(wall=1.5, cpu=0.25, memory=1024)
    bench.acts = {"a": lambda submission: structs.replace(OK, usage=usage)}
    bench.drive(task("a", benchmark="bench/a.tsv"))
    head, line = (bench.folder / "bench/a.tsv").read_text().splitlines()
    assert head.split("\t") == ["wall_seconds", "cpu_seconds", "peak_memory_bytes"]
    assert line.split("\t") == ["1.5", "0.25", "1024"]


def test_the_rules_log_is_the_log_of_the_last_attempt(bench: Bench) -> None:
    bench.acts = {"a": lambda submission: BAD if submission.attempt == 1 else OK}
    bench.drive(task("a", log="logs/a.log", policy=Policy(retries=1)))
    log = bench.folder / "logs/a.log"
    assert log.read_text() == "log of a\n"
    assert os.path.samefile(log, bench.run.attempt_log(2))


def test_the_rules_log_is_copied_where_it_cannot_be_linked(bench: Bench) -> None:
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == bench.folder.stat().st_dev:
        pytest.skip("no second file system here")
    log = elsewhere / f"treadle-test-{os.getpid()}.log"
    try:
        bench.drive(task("a", log=str(log)))
        assert log.read_text() == "log of a\n"
    finally:
        log.unlink(missing_ok=True)


def test_a_log_that_the_command_names_is_left_to_it(bench: Bench) -> None:
    bench.write("a.log", "kept")
    bench.drive(task("a", log="a.log", log_named=True))
    assert (bench.folder / "a.log").read_text() == "kept"


# Before an attempt


def test_a_success_that_is_made_again_starts_from_a_clean_slate(bench: Bench) -> None:
    a = task("a", outputs=["x", "y"])
    bench.drive(a)
    bench.write("y", "edited by hand")
    seen: list[list[str]] = []

    def act(submission: Submission) -> Outcome:
        seen.append(bench.names())
        bench.write("x")
        bench.write("y")
        return OK

    bench.acts = {"a": act}
    bench.drive(a, past=load_past(bench.state))
    assert seen == [["y.failed"]]
    (submitted,) = bench.events(AttemptSubmitted)
    assert [record.path for record in submitted.before] == ["x", "y"]
    assert bench.codes() == ["set_aside"]


def test_an_output_recorded_by_another_task_is_removed_too(bench: Bench) -> None:
    bench.drive(task("a", outputs=["x", "y"]))
    bench.acts = {"b": lambda submission: OK}
    bench.drive(task("b", outputs=["y"]), past=load_past(bench.state))
    assert bench.names() == ["x"], "what a task left under another name is not taken for the new one's"


def test_an_output_of_nobody_is_left_where_it_is(bench: Bench) -> None:
    bench.write("x", "mine")
    seen: list[str] = []
    bench.acts = {"a": lambda submission: seen.append((bench.folder / "x").read_text()) or OK}  # type: ignore[func-returns-value]
    bench.drive(task("a", outputs=["x"]))
    assert seen == ["mine"]


def test_inputs_are_listed_in_a_file_where_the_command_reads_one(bench: Bench) -> None:
    for name in ("i 1", "i2"):
        bench.write(name)
    bench.drive(task("a", inputs=["i 1", "i2"], text=f"xargs < {INPUT_LIST}"))
    (submission,) = bench.backend.submissions
    name = submission.argv[2].split(" < ")[1]
    assert (bench.folder / name).read_text() == "i 1\ni2\n"


def test_a_secret_is_in_the_environment_and_the_log_is_private(bench: Bench) -> None:
    secret = Command(text="x", secrets=("TREADLE_SECRET_TOKEN",))
    bench.drive(task("a", command=secret), secrets={"TREADLE_SECRET_TOKEN": "s3cret"})
    (submission,) = bench.backend.submissions
    assert submission.env["TREADLE_SECRET_TOKEN"] == "s3cret"
    assert submission.private_log


def test_gpus_that_are_not_there_are_refused_before_anything_starts(bench: Bench) -> None:
    with pytest.raises(PlanError, match="asks for 1 GPU"):
        bench.drive(task("a"), task("b", resources=Resources(gpus=1)), gpus=0)
    assert bench.backend.submissions == []


# Failure


def test_what_a_failed_attempt_made_is_set_aside_before_it_is_told(bench: Bench) -> None:
    def act(submission: Submission) -> Outcome:
        bench.write("x", "half")
        return BAD

    bench.acts = {"a": act}
    bench.listener = lambda events: bench.heard.extend(
        event for event in events if isinstance(event, TaskSettled) and bench.names() == ["x.failed"]
    )
    result = bench.drive(task("a", outputs=["x"]))
    assert result.exit_code == 1
    assert len(bench.heard) == 1
    assert bench.codes() == ["set_aside"]


def test_a_resumable_task_keeps_what_it_made(bench: Bench) -> None:
    def act(submission: Submission) -> Outcome:
        with open(bench.folder / "x", "a") as file:
            file.write("step\n")
        return BAD if submission.attempt == 1 else OK

    bench.acts = {"a": act}
    bench.drive(task("a", outputs=["x"], policy=Policy(retries=1, resumable=True)))
    assert (bench.folder / "x").read_text() == "step\nstep\n"


def test_a_failed_attempt_leaves_a_script_to_run_by_hand(bench: Bench) -> None:
    bench.acts = {"a": lambda submission: BAD}
    bench.drive(task("a", text="false"))
    assert Path(bench.run.attempt_text(1)).read_text() == "# a\nbash -c false\n"


def test_retries_wait_their_pause(bench: Bench) -> None:
    bench.acts = {"a": lambda submission: BAD if submission.attempt < 3 else OK}
    result = bench.drive(task("a", policy=Policy(retries=2, retry_delay=20)))
    assert result.exit_code == 0
    assert [event.retry_in for event in bench.events(AttemptEnded)] == [20.0, 40.0]
    assert 60 <= bench.clock.passed < 61


def test_a_refusal_fails_its_task_only(bench: Bench) -> None:
    bench.acts = {"a": lambda submission: "no such partition"}
    result = bench.drive(task("a"), task("b"), keep_going=True)
    assert result.counts == {"failed": 1, "succeeded": 1}
    assert result.failures[0].outcome == Outcome(reason=EndReason.NEVER_STARTED, message="no such partition")


def test_blocked_tasks_are_told_with_their_cause(bench: Bench) -> None:
    bench.acts = {"a": lambda submission: BAD}
    result = bench.drive(task("a"), task("b", ["a"]), task("c", ["b"]))
    assert result.blocked == {"b": "a", "c": "a"}


# Cut-off and temporary outputs


def test_a_task_is_cut_off_when_its_inputs_come_out_the_same(bench: Bench) -> None:
    up = task("up", outputs=["u"])
    down = task("down", ["up"], inputs=["u"], outputs=["d"])
    bench.drive(up, down)
    again = task("up", outputs=["u"], text="another command")
    result = bench.drive(again, down, answers={"down": CUT}, past=load_past(bench.state))
    assert result.counts == {"succeeded": 1, "unchanged": 1}
    evidence = load_past(bench.state).evidence("d")
    assert evidence is not None
    assert evidence.inputs[0].inode == (bench.folder / "u").stat().st_ino, "recorded as it is now"


def test_a_task_is_not_cut_off_when_they_do_not(bench: Bench) -> None:
    up = task("up", outputs=["u"])
    down = task("down", ["up"], inputs=["u"], outputs=["d"])
    bench.drive(up, down)
    bench.acts = {"up": lambda submission: bench.write("u", "other") or OK}  # type: ignore[func-returns-value]
    result = bench.drive(up, down, answers={"down": CUT}, past=load_past(bench.state))
    assert result.counts == {"succeeded": 2}


def test_large_inputs_are_compared_aside(bench: Bench) -> None:
    def act(submission: Submission) -> Outcome:
        (bench.folder / "u").write_bytes(b"x" * 2_000_000)
        return OK

    bench.acts = {"up": act}
    bench.write("big", "y" * 2_000_000)
    up = task("up", outputs=["u"])
    down = task("down", ["up"], inputs=["u", "big"], outputs=["d"])
    bench.drive(up, down)
    bench.write("big", "y" * 2_000_000)
    result = bench.drive(up, down, answers={"down": CUT}, past=load_past(bench.state))
    assert result.counts == {"succeeded": 1, "unchanged": 1}


def test_a_task_without_evidence_is_never_cut_off(bench: Bench) -> None:
    result = bench.drive(task("up"), task("down", ["up"]), answers={"down": CUT})
    assert result.counts == {"succeeded": 2}


def test_temporary_outputs_get_a_tombstone_and_go(bench: Bench) -> None:
    make = task("make", outputs=["t", "kept"], temporary=["t"])
    use = task("use", ["make"], inputs=["t"], outputs=["u"])
    assert bench.drive(make, use).exit_code == 0
    assert bench.names() == ["kept", "u"]
    (evicted,) = bench.events(OutputEvicted)
    assert (evicted.task, evicted.record.path) == ("make", "t")
    assert evicted.record.digest
    assert isinstance(bench.events()[-1], RunEnded)
    assert load_past(bench.state).tombstone("t") == evicted.record


def test_what_was_removed_on_purpose_is_made_again_only_when_it_is_needed(bench: Bench) -> None:
    make = task("make", outputs=["t"], temporary=["t"])
    up = task("up", outputs=["o"])
    use = task("use", ["make", "up"], inputs=["t", "o"], outputs=["u"])
    bench.drive(make, up, use)
    buried = Answer(Verdict.WILL_RUN, (OutputNeeded(path="t", by="use"),), may_cut_off=True)
    answers = {"make": buried, "use": CUT}
    result = bench.drive(make, up, use, answers=answers, past=load_past(bench.state))
    assert result.counts == {"succeeded": 1, "unchanged": 2}
    bench.acts = {"up": lambda submission: bench.write("o", "other") or OK}  # type: ignore[func-returns-value]
    result = bench.drive(make, up, use, answers=answers, past=load_past(bench.state))
    assert result.counts == {"succeeded": 3}
    assert bench.names() == ["o", "u"]


def test_a_temporary_output_that_someone_changed_stays(bench: Bench) -> None:
    make = task("make", outputs=["t"], temporary=["t"])
    use = task("use", ["make"], inputs=["t"])
    bench.acts = {"use": lambda submission: bench.write("t", "mine now") or OK}  # type: ignore[func-returns-value]
    bench.drive(make, use)
    assert bench.names() == ["t"]


# Signals


def interrupting(bench: Bench, *numbers: int) -> None:
    """Send us signals once the first attempt has started."""

    def listener(events: Sequence[Event]) -> None:
        bench.heard.extend(events)
        if any(isinstance(event, AttemptStarted) for event in events):
            bench.listener = bench.heard.extend
            for number in numbers:
                os.kill(os.getpid(), number)

    bench.listener = lambda events: listener(events)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_cancels_what_runs_and_is_recorded(bench: Bench, number: int, code: int) -> None:
    def act(submission: Submission) -> None:
        bench.write("x", "half")

    bench.acts = {"a": act}
    interrupting(bench, number)
    before = signal.getsignal(number)
    result = bench.drive(task("a", outputs=["x"]), task("b", ["a"]))
    assert result.exit_code == code
    assert result.counts == {"cancelled": 2}
    assert bench.ends() == {"a": End.CANCELLED}
    assert bench.names() == ["x.failed"]
    assert bench.events(RunEnded)[0].exit_code == code
    assert bench.backend.cancelled == [("1", False)]
    assert signal.getsignal(number) is before


def test_a_hangup_leaves_jobs_that_outlive_us(bench: Bench) -> None:
    bench.backend.abilities = Abilities(adoption=True, batch=True)
    bench.acts = {"a": lambda submission: None}
    interrupting(bench, signal.SIGHUP)
    assert bench.drive(task("a")).exit_code == 143
    assert bench.backend.cancelled == []
    assert bench.ends() == {}


def test_an_interrupt_can_be_made_to_wait(bench: Bench) -> None:
    bench.acts = {"a": lambda submission: None}

    def listener(events: Sequence[Event]) -> None:
        if any(isinstance(event, AttemptStarted) for event in events):
            os.kill(os.getpid(), signal.SIGINT)
            bench.backend.end("a")

    bench.listener = listener
    result = bench.drive(task("a"), task("b", ["a"]), on_interrupt=Interrupt.WAIT)
    assert (result.exit_code, result.counts) == (130, {"succeeded": 1, "cancelled": 1})


# The disk, the backend, the lock


class Full:
    """Records on a disk that is full from the nth write on, until the clock has come to `until`."""

    def __init__(self, recorder: Recorder, clock: JumpingClock, nth: int, until: float) -> None:
        self.recorder, self.clock, self.nth, self.until = recorder, clock, nth, until

    def write(self, events: Sequence[Event]) -> None:
        self.nth -= 1
        if self.nth < 0 and self.clock.monotonic() < self.until:
            raise DiskError("no space", code="disk-full")
        self.recorder.write(events)

    def sync(self) -> None:
        self.recorder.sync()


@pytest.mark.parametrize("nth", range(3))
def test_a_journal_that_cannot_be_written_is_waited_for(bench: Bench, nth: int) -> None:
    bench.wrap = lambda recorder: Full(recorder, bench.clock, nth, 35.0)
    result = bench.drive(task("a", outputs=["a"]), task("b", ["a"], inputs=["a"], outputs=["b"]))
    assert result.exit_code == 0
    assert bench.ends() == {"a": End.SUCCEEDED, "b": End.SUCCEEDED}
    assert isinstance(bench.events()[-1], RunEnded)
    started = [event.n for event in bench.events(AttemptStarted)]
    assert len(bench.backend.submissions) == len(started) == 2, "nothing starts without its intent"
    assert bench.clock.passed == pytest.approx(40, abs=3)


def test_a_journal_that_stays_unwritable_ends_the_run_with_3(bench: Bench) -> None:
    bench.wrap = lambda recorder: Full(recorder, bench.clock, 0, 10_000.0)
    assert bench.drive(task("a")).exit_code == 3
    assert bench.backend.submissions == []
    assert 600 <= bench.clock.passed <= 620


def test_a_last_write_that_stays_impossible_ends_the_run_with_3(bench: Bench) -> None:
    bench.wrap = lambda recorder: Full(recorder, bench.clock, 1, 10_000.0)
    assert bench.drive(task("a")).exit_code == 3
    assert len(bench.backend.submissions) == 1


def test_an_attempt_that_fails_for_the_disk_is_tried_again_when_there_is_space(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = {"free": 0}
    real = os.statvfs("/")

    def statvfs(path: str) -> os.statvfs_result:
        return os.statvfs_result((1, 1, *real[2:4], space["free"], *real[5:]))

    monkeypatch.setattr(os, "statvfs", statvfs)

    def act(submission: Submission) -> Outcome:
        return BAD if submission.attempt == 1 else OK

    bench.acts = {"a": act}
    wait = bench.clock.wait

    def waiting(selector: Any, timeout: float | None) -> Any:
        if bench.clock.passed > 25:
            space["free"] = 1 << 30
        return wait(selector, timeout)

    bench.clock.wait = waiting  # type: ignore[method-assign]
    assert bench.drive(task("a"), task("b", ["a"])).exit_code == 0
    (ended,) = bench.events(AttemptEnded)
    assert ended.outcome.reason is EndReason.DISK
    assert bench.codes() == ["disk_waiting", "disk_fine"]
    assert 30 <= bench.clock.passed < 45


def test_a_backend_that_fails_ends_the_run_with_3(bench: Bench) -> None:
    def act(submission: Submission) -> None:
        bench.backend.outage = "no controller"

    bench.acts = {"a": act}
    assert bench.drive(task("a"), task("b", ["a"])).exit_code == 3
    assert "backend_failed" in bench.codes()


def test_a_backend_that_fails_as_it_is_called_ends_the_run_with_3(bench: Bench) -> None:
    bench.backend.outage = "no controller"
    assert bench.drive(task("a")).exit_code == 3
    assert bench.ends() == {"a": End.FAILED}


def test_a_lock_that_is_lost_stops_everything_and_leaves_no_process(bench: Bench) -> None:
    class Lost:
        def __init__(self, recorder: Recorder) -> None:
            self.recorder, self.writes = recorder, 0

        def write(self, events: Sequence[Event]) -> None:
            self.writes += 1
            if self.writes > 1:
                raise LockError("no longer ours")
            self.recorder.write(events)

        def sync(self) -> None:
            self.recorder.sync()

    bench.wrap = Lost
    bench.acts = {"a": lambda submission: None}
    with pytest.raises(LockError):
        bench.drive(task("a"))
    assert bench.backend.running == {}


def test_the_lock_beats_while_the_run_waits(bench: Bench) -> None:
    beats: list[float] = []

    class Lock:
        def beat(self) -> None:
            beats.append(bench.clock.monotonic())

    bench.lock = Lock()
    bench.acts = {"a": lambda submission: BAD if submission.attempt == 1 else OK}
    bench.drive(task("a", policy=Policy(retries=1, retry_delay=100)))
    assert [round(beat) for beat in beats] == [0, 15, 30, 45, 60, 75, 90]


def test_a_bug_in_a_listener_leaves_no_process(bench: Bench) -> None:
    bench.acts = {"a": lambda submission: None}

    def broken(events: Sequence[Event]) -> None:
        if any(isinstance(event, AttemptStarted) for event in events):
            raise RuntimeError("broken")

    bench.listener = broken
    with pytest.raises(RuntimeError):
        bench.drive(task("a"))
    assert bench.backend.running == {}

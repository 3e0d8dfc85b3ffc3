"""The loop: what it writes and when, what it does before an attempt, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from loop_bench import BAD, Bench, task

from treadle.base.errors import PlanError
from treadle.engine.backend import Submission
from treadle.plan.task import Command, Policy, Resources
from treadle.plan.tokens import INPUT_LIST
from treadle.records.event import AttemptEnded, AttemptSubmitted, EndReason, Outcome, TaskSettled
from treadle.records.past import load_past
from treadle.records.recorder import Recorder
from treadle.testing.backend import OK

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

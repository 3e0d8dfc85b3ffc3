"""The loop: outputs, logs and evidence of a success, and outputs that are not made or not kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from loop_bench import BAD, Bench, task
from msgspec import structs

from treadle.decide.reason import Answer, OutputNeeded, Upstream, Verdict
from treadle.engine.backend import Submission
from treadle.plan.task import Policy
from treadle.records.event import EndReason, Outcome, OutputEvicted, RunEnded, TaskSettled, Usage
from treadle.records.past import load_past
from treadle.testing.backend import OK

CUT = Answer(Verdict.WILL_RUN, (Upstream("up"),), may_cut_off=True)


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

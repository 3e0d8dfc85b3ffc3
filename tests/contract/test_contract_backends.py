"""The contract of `ExecutorBackend`: what every backend does alike, for commands and for steps."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from contract_bench import Bench

from treadle.base.proc import attempts_alive
from treadle.engine.backend import Accepted, JobStatus, Refused
from treadle.plan.task import Resources
from treadle.records.event import EndReason
from treadle.steps.record import ArtifactState
from treadle.steps.spec import StepSpec
from treadle.steps.stores import store_for

# Commands


@pytest.mark.parametrize("code", [0, 3])
def test_an_exit_code_is_told_as_it_is(bench: Bench, code: int) -> None:
    outcome = bench.do(bench.command(f"exit {code}"))
    assert outcome.exit_code == code
    assert outcome.reason is (EndReason.APP if code else EndReason.OK)


def test_an_end_has_its_times_and_its_host(bench: Bench) -> None:
    before = time.time()
    outcome = bench.do(bench.command("true"))
    assert outcome.start is not None
    assert outcome.end is not None
    assert before - 1 <= outcome.start <= outcome.end <= time.time() + 1
    assert outcome.host


def test_both_streams_go_to_the_log_which_is_named(bench: Bench) -> None:
    submission = bench.command("echo out; echo err >&2")
    bench.do(submission)
    assert bench.log(submission) == "out\nerr\n"
    assert bench.backend.logs(bench.jobs[submission.n]) == [submission.log]


def test_a_command_has_its_folder_its_variables_and_an_empty_stdin(bench: Bench) -> None:
    submission = bench.command('pwd > where; echo "$WORD" > word; cat > stdin', env={"WORD": "a 'b' $c\nd"})
    assert bench.do(submission).reason is EndReason.OK
    assert bench.text("where").strip() == str(bench.folder)
    assert bench.text("word") == "a 'b' $c\nd\n"
    assert bench.text("stdin") == ""


def test_what_kills_itself_failed_by_that_signal(bench: Bench) -> None:
    outcome = bench.do(bench.command("kill -KILL $$"))
    assert outcome.reason is EndReason.APP
    assert outcome.signal == 9 or outcome.exit_code == 137


def test_a_batch_is_answered_in_its_order(bench: Bench) -> None:
    batch = [bench.command(f"echo {n} > out{n}") for n in range(3)]
    answers = bench.submit(*batch)
    assert len({answer.job for answer in answers if isinstance(answer, Accepted)}) == 3
    for n, submission in enumerate(batch):
        assert bench.finish(submission).reason is EndReason.OK
        assert bench.text(f"out{n}") == f"{n}\n"


def test_an_end_is_told_once(bench: Bench) -> None:
    submission = bench.command("true")
    bench.do(submission)
    for _ in range(3):
        bench.turn(0.01)
    assert [report.status for report in bench.news[submission.n]].count(JobStatus.ENDED) == 1


def test_nothing_is_told_of_what_runs_but_that_it_runs(bench: Bench) -> None:
    submission = bench.command("touch up; until test -e go; do sleep 0.01; done")
    bench.submit(submission)
    bench.until_there("up")
    bench.turn(0.1)
    assert {report.status for report in bench.news[submission.n]} <= {JobStatus.PENDING, JobStatus.RUNNING}
    (bench.folder / "go").touch()
    assert bench.finish(submission).reason is EndReason.OK


def test_news_make_the_descriptor_readable(bench: Bench) -> None:
    if not bench.backend.abilities.notifies:
        pytest.skip("it says that it does not")
    assert bench.backend.fileno() is not None
    began = time.monotonic()
    assert bench.do(bench.command("sleep 0.2")).reason is EndReason.OK
    assert time.monotonic() - began < 60


def test_a_program_that_is_not_there_is_named(bench: Bench) -> None:
    submission = bench.command("", argv=("no-such-program", "x"))
    (answer,) = bench.submit(submission)
    if isinstance(answer, Refused):
        assert "no-such-program" in answer.message
        return
    outcome = bench.finish(submission)
    if outcome.exit_code == 127 and bench.backend.abilities.batch:  # only its shell can tell
        assert "no-such-program" in bench.log(submission)
    else:
        assert outcome.reason is EndReason.NEVER_STARTED
        assert "no-such-program" in outcome.message


def test_one_refusal_leaves_the_rest_of_the_batch_alone(bench: Bench) -> None:
    bad = bench.command("true", resources=bench.kind.refuses or Resources(gpus=9))
    good = bench.command("touch made")
    refused, accepted = bench.submit(bad, good)
    assert isinstance(refused, Refused)
    assert isinstance(accepted, Accepted)
    assert bench.finish(good).reason is EndReason.OK
    assert bench.text("made") == ""


def test_a_time_limit_ends_it(bench: Bench) -> None:
    outcome = bench.do(bench.command("sleep 300", time_limit=1))
    assert outcome.reason is EndReason.TIME
    assert attempts_alive(bench.run.run) == []


def test_a_cancelled_command_may_clean_up(bench: Bench) -> None:
    if not bench.kind.asks:
        pytest.skip("it kills at once what is cancelled")
    submission = bench.command("trap 'echo bye > last; exit 1' TERM; touch up; sleep 300 & wait", grace=30)
    bench.submit(submission)
    bench.until_there("up")
    bench.cancel(submission)
    assert bench.finish(submission).reason is EndReason.CANCELLED
    assert bench.text("last") == "bye\n"
    assert attempts_alive(bench.run.run) == []


def test_a_stubborn_command_is_killed_after_its_grace(bench: Bench) -> None:
    submission = bench.command("trap '' TERM; touch up; while :; do sleep 300; done", grace=0.5)
    bench.submit(submission)
    bench.until_there("up")
    bench.cancel(submission)
    assert bench.finish(submission).reason is EndReason.CANCELLED
    assert attempts_alive(bench.run.run) == []


def test_force_waits_for_no_grace(bench: Bench) -> None:
    submission = bench.command("trap '' TERM; touch up; while :; do sleep 300; done", grace=600)
    bench.submit(submission)
    bench.until_there("up")
    bench.cancel(submission, force=True)
    assert bench.finish(submission).reason is EndReason.CANCELLED
    assert attempts_alive(bench.run.run) == []


def test_cancelling_what_has_ended_or_was_never_there_is_nothing(bench: Bench) -> None:
    submission = bench.command("true")
    bench.do(submission)
    bench.backend.cancel([bench.jobs[submission.n], "no-such-job"])
    assert bench.backend.poll([]) == []


def test_what_a_command_left_in_the_background_ends_with_it(bench: Bench) -> None:
    assert bench.do(bench.command("sleep 300 & echo $! > pid")).reason is EndReason.OK
    assert not Path(f"/proc/{bench.text('pid').strip()}/status").exists() or (
        "zombie" in Path(f"/proc/{bench.text('pid').strip()}/status").read_text()
    )


def test_the_script_does_the_same_by_hand(bench: Bench) -> None:
    submission = bench.command('echo "$WORD" > word; exit 7', env={"WORD": "it's"})
    script = bench.folder / "again.sh"
    script.write_text(bench.backend.render_script(submission))
    assert subprocess.run(["sh", str(script)], check=False).returncode == 7
    assert bench.text("word") == "it's\n"


def test_names_that_nobody_knows_are_not_found(bench: Bench) -> None:
    assert bench.backend.find(["taaaaaaaa-1"]) == {}


def test_jobs_are_found_by_name_where_they_can_be_adopted(bench: Bench) -> None:
    submission = bench.command("until test -e go; do sleep 0.01; done")
    bench.submit(submission)
    found = bench.backend.find([submission.name, "taaaaaaaa-1"])
    (bench.folder / "go").touch()
    assert found == ({submission.name: bench.jobs[submission.n]} if bench.backend.abilities.adoption else {})
    assert bench.finish(submission).reason is EndReason.OK


# Steps


def test_a_step_makes_its_artifact_and_its_record_comes_back(bench: Bench) -> None:
    def make(out: str) -> dict[str, int]:
        Path(out).write_text("model")
        return {"layers": 12}

    spec = StepSpec("train", fn=make)
    assert bench.do(bench.step(spec)).reason is EndReason.OK
    record = bench.book.records[spec.task_id]
    assert record.result is not None
    assert record.result.value == {"layers": 12}
    assert Path(bench.book[spec.task_id].path).read_text() == "model"
    seen = store_for(record.path).look(record.path, spec.identity)
    assert (seen.state, seen.record) == (ArtifactState.COMPLETE, record)


def test_an_exception_comes_back_as_it_was_with_its_traceback(bench: Bench) -> None:
    def fail(out: str) -> None:
        print("on the way")
        raise ValueError("no such layer")

    spec = StepSpec("fails", fn=fail)
    submission = bench.step(spec)
    outcome = bench.do(submission)
    assert outcome.reason is EndReason.APP
    assert "ValueError: no such layer" in outcome.message
    error = bench.book.errors[spec.task_id]
    assert type(error) is ValueError
    assert error.args == ("no such layer",)
    assert "in fail" in str(error.__cause__)
    assert "on the way" in bench.log(submission)
    assert not Path(bench.book[spec.task_id].path).exists()


def test_the_end_of_its_process_is_that_steps_failure(bench: Bench) -> None:
    bad = bench.step(StepSpec("crashes", fn=lambda out: os._exit(3)))
    good = bench.step(StepSpec("fine", fn=lambda out: Path(out).write_text("x")))
    bench.submit(bad, good)
    outcome = bench.finish(bad)
    assert outcome.reason is EndReason.APP
    assert outcome.message
    assert bench.finish(good).reason is EndReason.OK
    assert bad.task.id in bench.book.errors


def test_a_system_exit_is_that_steps_failure(bench: Bench) -> None:
    def leave(out: str) -> None:
        raise SystemExit(0)

    outcome = bench.do(bench.step(StepSpec("leaves", fn=leave)))
    assert outcome.reason is EndReason.APP


def test_a_step_has_its_variables(bench: Bench) -> None:
    spec = StepSpec("env", fn=lambda out: os.environ["WORD"], env_vars={"WORD": "hello"})
    assert bench.do(bench.step(spec)).reason is EndReason.OK
    record = bench.book.records[spec.task_id]
    assert record.result is not None
    assert record.result.value == "hello"


def test_a_cancelled_step_that_looks_at_ctx_ends_by_itself(bench: Bench) -> None:
    if not bench.kind.asks:
        pytest.skip("it kills at once what is cancelled")
    folder = str(bench.folder)

    def wait(out: str, ctx: object) -> None:
        Path(folder, "up").touch()
        while not ctx.cancelled:  # type: ignore[attr-defined]
            time.sleep(0.01)
        Path(folder, "saved").touch()
        raise RuntimeError("cancelled")

    submission = bench.step(StepSpec("waits", fn=wait), grace=30)
    bench.submit(submission)
    bench.until_there("up")
    bench.cancel(submission)
    assert bench.finish(submission).reason is EndReason.CANCELLED
    assert (bench.folder / "saved").exists()


def test_a_cancelled_step_that_does_not_look_is_ended(bench: Bench) -> None:
    folder = str(bench.folder)

    def wait(out: str) -> None:
        Path(folder, "up").write_text(str(os.getpid()))
        time.sleep(300)

    submission = bench.step(StepSpec("sleeps", fn=wait), grace=0.3)
    bench.submit(submission)
    bench.until_there("up")
    bench.cancel(submission)
    assert bench.finish(submission).reason is EndReason.CANCELLED
    pid = bench.text("up")
    bench.until(lambda: not Path(f"/proc/{pid}").exists(), "the end of its process")


def test_a_steps_time_is_over(bench: Bench) -> None:
    submission = bench.step(StepSpec("slow", fn=lambda out: time.sleep(300)), time_limit=1, grace=0.3)
    assert bench.do(submission).reason is EndReason.TIME


def test_a_complete_artifact_is_taken_and_nothing_is_called(bench: Bench) -> None:
    folder = str(bench.folder)

    def make(out: str) -> None:
        with open(f"{folder}/calls", "a") as file:
            file.write("called\n")
        Path(out).touch()

    spec = StepSpec("once", fn=make)
    for _ in range(2):
        assert bench.do(bench.step(spec)).reason is EndReason.OK
    assert bench.text("calls") == "called\n"


def test_a_step_that_another_makes_is_deferred_and_freed(bench: Bench) -> None:
    spec = StepSpec("shared", fn=lambda out: Path(out).touch())
    submission = bench.step(spec)
    path = bench.book[spec.task_id].path
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    from treadle.steps.owner import this_owner

    lease = store_for(path).claim(path, this_owner("another.1"))
    bench.submit(submission)
    bench.until(lambda: any(one.status is JobStatus.DEFERRED for one in bench.news[submission.n]), "deferral")
    assert "another.1" in bench.news[submission.n][-1].reason
    lease.release()  # type: ignore[union-attr]
    bench.until(lambda: bench.news[submission.n][-1].status is JobStatus.FREED, "freedom")
    assert bench.do(submission).reason is EndReason.OK  # the very same attempt again, as the engine does it


def test_a_deferred_step_can_be_cancelled(bench: Bench) -> None:
    from treadle.steps.owner import this_owner

    spec = StepSpec("shared", fn=lambda out: Path(out).touch())
    submission = bench.step(spec)
    path = bench.book[spec.task_id].path
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    lease = store_for(path).claim(path, this_owner("another.1"))
    bench.submit(submission)
    bench.until(lambda: any(one.status is JobStatus.DEFERRED for one in bench.news[submission.n]), "deferral")
    bench.cancel(submission)
    assert bench.finish(submission).reason is EndReason.CANCELLED
    lease.release()  # type: ignore[union-attr]


def test_a_function_that_cannot_be_sent_is_refused_in_words(bench: Bench) -> None:
    import threading

    lock = threading.Lock()
    spec = StepSpec("locked", fn=lambda out: lock.acquire())
    (answer,) = bench.submit(bench.step(spec))
    assert isinstance(answer, Refused)
    assert "locked" in answer.message
    assert "lock" in answer.message

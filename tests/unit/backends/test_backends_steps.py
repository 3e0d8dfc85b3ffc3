"""Steps through the local backend: in threads and as worker processes; what comes back."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest
import step_driver
from step_driver import BOTH, writes

from treadle.backends.answers import WorkerError
from treadle.base.errors import StepError
from treadle.engine.backend import JobStatus, Refused
from treadle.plan.task import Where
from treadle.records.event import EndReason
from treadle.steps.record import Standing
from treadle.steps.resources import ResourceConfig
from treadle.steps.spec import StepSpec


@BOTH
def test_a_step_makes_its_artifact_and_its_record_is_in_the_book(steps, where):
    spec = StepSpec("tok", fn=lambda out: writes("tokens")(out) or {"n": 3})
    outcome = steps.perform(spec, where)
    assert outcome.reason is EndReason.OK
    assert outcome.usage.wall > 0
    assert steps.content(spec) == "tokens"
    record = steps.book.records[spec.task_id]
    assert record == steps.seen(spec).record
    assert (record.result.value, record.provenance.attempt) == ({"n": 3}, f"{steps.run.run}.1")
    assert steps.told() == [JobStatus.ENDED]


@BOTH
def test_what_is_complete_is_taken(steps, other, where):
    spec = StepSpec("tok", fn=lambda out: time.time())
    steps.perform(spec, where)
    assert other.perform(spec, where).reason is EndReason.OK
    assert other.book.records[spec.task_id] == steps.book.records[spec.task_id]


@BOTH
def test_ctx_reads_deps(steps, where):
    below = StepSpec("tok", fn=lambda out: writes("tokens")(out) or [1, 2])

    def fn(out, ctx):
        with open(ctx.path(below)) as file:
            return [file.read(), ctx.load(below), ctx.attrs, ctx.attempt, ctx.cancelled]

    spec = StepSpec("train", fn=fn, deps=[below], hash_attrs={"lr": 1})
    steps.perform(below, where)
    steps.perform(spec, where)
    assert steps.book.records[spec.task_id].result.value == ["tokens", [1, 2], {"lr": 1}, 1, False]


@BOTH
def test_an_exception_comes_back_as_it_was(steps, where):
    class LayerError(ValueError):
        pass

    def fn(out):
        raise LayerError("no such layer")

    spec = StepSpec("train", fn=fn)
    outcome = steps.perform(spec, where)
    assert outcome.reason is EndReason.APP
    assert outcome.message.endswith("LayerError: no such layer")
    error = steps.error(spec)
    assert type(error) is LayerError
    text = f"{error.__cause__}" if where is Where.PROCESS else str(error.__traceback__.tb_frame.f_code)
    assert "fn" in text
    assert steps.seen(spec).status.state is Standing.FAILED


@BOTH
@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_leaving_python_is_the_failure_of_the_step(steps, where, kind):
    def fn(out):
        raise kind(0)

    spec = StepSpec("train", fn=fn)
    assert steps.perform(spec, where).reason is EndReason.APP
    assert type(steps.error(spec)) is kind
    fine = StepSpec("tok", fn=writes("x"))
    assert steps.perform(fine, where).reason is EndReason.OK


@BOTH
def test_a_step_is_tried_again_after_a_failure(steps, where, tmp_path):
    def fn(out, ctx):
        seen = tmp_path / "seen"
        seen.write_text((seen.read_text() if seen.exists() else "") + "x")
        writes("half")(out)
        if seen.read_text() != "xxx":
            raise ValueError

    spec = StepSpec("train", fn=fn)
    reasons = [steps.perform(spec, where).reason for _ in range(3)]
    assert reasons == [EndReason.APP, EndReason.APP, EndReason.OK]
    assert spec.task_id not in steps.book.errors


def test_context_variables_reach_threads_and_not_processes(steps):
    step_driver.NAME.set("somebody")
    specs = [
        StepSpec(where.value, fn=lambda out: step_driver.NAME.get())
        for where in (Where.THREAD, Where.PROCESS)
    ]
    for spec, where in zip(specs, (Where.THREAD, Where.PROCESS), strict=True):
        steps.perform(spec, where)
    values = [steps.book.records[spec.task_id].result.value for spec in specs]
    assert values == ["somebody", "nobody"]


def test_a_step_of_its_own_process_has_its_variables_folder_and_modules(steps, tmp_path, monkeypatch):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "mine_of_steps.py").write_text("def make(out): return 'by reference'\n")
    monkeypatch.syspath_prepend(tmp_path / "beside")
    import mine_of_steps

    spec = StepSpec(
        "env", fn=lambda out: [os.environ["COLOUR"], os.getcwd(), os.getpid()], env_vars={"COLOUR": "red"}
    )
    steps.perform(spec)
    colour, cwd, pid = steps.book.records[spec.task_id].result.value
    assert (colour, cwd) == ("red", str(tmp_path))
    assert pid != os.getpid()
    by_name = StepSpec("mod", fn=mine_of_steps.make)
    steps.perform(by_name)
    assert steps.book.records[by_name.task_id].result.value == "by reference"


def test_what_a_worker_prints_is_in_its_log(steps):
    def fn(out):
        print("to stdout")
        print("to stderr", file=sys.stderr)
        os.system("echo from a child")
        print("x" * 5_000_000)
        return sys.stdin.read()

    spec = StepSpec("loud", fn=fn)
    assert steps.perform(spec).reason is EndReason.OK
    log = steps.log()
    assert len(log) > 5_000_000
    assert all(text in log for text in ("to stdout", "to stderr", "from a child"))
    assert steps.book.records[spec.task_id].result.value == ""


def test_a_function_that_cannot_be_sent_is_refused_with_the_way_out(steps):
    lock = threading.Lock()
    spec = StepSpec("train", fn=lambda out: lock)
    (answer,) = steps.backend.submit([steps.submission(spec, Where.PROCESS)])
    assert isinstance(answer, Refused)
    assert "'train'" in answer.message
    assert "lock" in answer.message
    assert isinstance(steps.error(spec), StepError)


def test_an_exception_that_cannot_be_sent_is_told_by_its_text(steps):
    def fn(out):
        raise ValueError("with a lock", threading.Lock())

    spec = StepSpec("train", fn=fn)
    steps.perform(spec)
    assert type(steps.error(spec)) is WorkerError
    assert "ValueError" in str(steps.error(spec))


class Unloadable:
    def __reduce__(self):
        return _fail_to_load, ()


def _fail_to_load():
    raise RuntimeError("no GPU driver here")


def test_a_function_that_cannot_be_read_there_is_refused(steps):
    thing = Unloadable()
    spec = StepSpec("train", fn=lambda out: thing)
    outcome = steps.perform(spec)
    assert outcome.reason is EndReason.NEVER_STARTED
    assert "no GPU driver here" in outcome.message
    assert type(steps.error(spec)) is RuntimeError


@BOTH
def test_a_value_that_is_lost_is_warned_of_at_its_function(steps, where):
    spec = StepSpec("tok", fn=lambda out: writes("x")(out) or object())
    with pytest.warns(UserWarning, match="'tok': what it returned is not kept .*object") as caught:
        assert steps.perform(spec, where).reason is EndReason.OK
    assert (caught[0].filename, caught[0].lineno) == (__file__, spec.fn.__code__.co_firstlineno)


def test_resources_and_usage_are_known(steps):
    def fn(out, ctx):
        until = time.process_time() + 0.3
        while time.process_time() < until:
            pass
        return [ctx.resources.cpu, len(bytearray(60_000_000))]

    spec = StepSpec("busy", fn=fn, resources=ResourceConfig(cpu=2))
    outcome = steps.perform(spec)
    record = steps.book.records[spec.task_id]
    assert record.result.value[0] == 2
    assert record.cpu >= 0.3
    assert record.memory > 60_000_000
    assert outcome.usage.cpu >= 0.3

"""Steps through the local backend: in threads and as worker processes; what comes back, and what is left."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
import step_driver
from step_driver import StepDriver

from treadle.backends.answers import WorkerError
from treadle.base.errors import StepError
from treadle.base.groups import attempts_alive
from treadle.base.layout import ArtifactPlaces
from treadle.engine.backend import JobStatus, Refused
from treadle.plan.task import Where
from treadle.records.event import EndReason
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactState, Standing
from treadle.steps.resources import ResourceConfig
from treadle.steps.spec import StepSpec
from treadle.steps.stores import store_for

BOTH = pytest.mark.parametrize("where", [Where.THREAD, Where.PROCESS])


@pytest.fixture
def steps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = StepDriver(tmp_path)
    yield made
    made.close()
    assert attempts_alive(made.run.run) == []
    assert not os.path.isdir(made.run.payloads) or os.listdir(made.run.payloads) == []


@pytest.fixture
def other(tmp_path):
    """A second run over the same artifacts."""
    made = StepDriver(tmp_path, run="two")
    yield made
    made.close()


def writes(text):
    def fn(out):
        with open(out, "w") as file:
            file.write(text)

    return fn


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


@pytest.mark.parametrize("code", [0, 7])
def test_os_exit_is_the_failure_of_the_step(steps, code):
    def fn(out):
        writes("half")(out)
        print("so far so good", flush=True)
        os._exit(code)

    spec = StepSpec("train", fn=fn)
    outcome = steps.perform(spec)
    assert (outcome.reason, outcome.exit_code) == (EndReason.APP, code)
    assert "os._exit" in outcome.message
    error = steps.error(spec)
    assert isinstance(error, StepError)
    assert "'train_" in str(error)
    assert "so far so good" in str(error)
    assert_clean(steps, spec)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_worker_that_is_killed_is_the_failure_of_its_step(steps, number):
    def fn(out):
        writes("half")(out)
        os.kill(os.getpid(), number)
        time.sleep(60)

    spec = StepSpec("train", fn=fn)
    outcome = steps.perform(spec)
    assert (outcome.reason, outcome.signal) == (EndReason.APP, number)
    assert signal.Signals(number).name in str(steps.error(spec))
    assert_clean(steps, spec)
    again = StepSpec("train", fn=writes("whole"))
    assert steps.perform(again).reason is EndReason.OK


def test_what_was_published_by_a_worker_that_was_killed_then_counts(steps):
    def fn(out):
        sys.modules["__main__"].encode_answer = lambda answer: os.kill(os.getpid(), signal.SIGKILL)
        writes("whole")(out)

    spec = StepSpec("train", fn=fn)
    outcome = steps.perform(spec)
    assert (outcome.reason, outcome.signal) == (EndReason.OK, signal.SIGKILL)
    assert steps.book.records[spec.task_id] == steps.seen(spec).record
    assert steps.content(spec) == "whole"


def assert_clean(steps, spec, state=Standing.FAILED):
    """Nothing of the attempt is left but its status."""
    seen = steps.seen(spec)
    assert (seen.state, seen.status.state) == (ArtifactState.ABSENT, state)
    assert seen.status.error
    places = ArtifactPlaces(steps.path(spec))
    assert not os.path.lexists(places.work(f"{steps.run.run}.{steps.n}"))
    assert store_for(steps.path(spec)).holder(steps.path(spec)) is None


def test_the_time_limit_ends_a_worker(steps):
    def fn(out):
        writes("half")(out)
        time.sleep(300)

    spec = StepSpec("slow", fn=fn)
    outcome = steps.perform(spec, time_limit=1)
    assert outcome.reason is EndReason.TIME
    assert "time limit" in str(steps.error(spec))
    assert_clean(steps, spec, Standing.INTERRUPTED)


def test_a_worker_that_is_deaf_is_killed_after_its_grace(steps):
    def fn(out):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.system("sleep 300")

    outcome = steps.perform(StepSpec("deaf", fn=fn), time_limit=1, grace=0.2)
    assert (outcome.reason, outcome.signal) == (EndReason.TIME, signal.SIGKILL)


def begun(steps, path: Path) -> None:
    steps.until(path.exists)


@BOTH
def test_a_function_that_looks_at_ctx_cancelled_ends_by_itself(steps, where, tmp_path):
    def fn(out, ctx):
        while not ctx.cancelled:
            (tmp_path / "ready").touch()
            time.sleep(0.01)
        with open(f"{ctx.checkpoint_dir}/state", "w") as file:
            file.write("saved")
        raise RuntimeError("stopping")

    spec = StepSpec("train", fn=fn)
    job = steps.submit(spec, where, grace=30)
    begun(steps, tmp_path / "ready")
    steps.backend.cancel([job])
    steps.until(lambda: not steps.live)
    assert steps.ended[spec.task_id].reason is EndReason.CANCELLED
    assert Path(ArtifactPlaces(steps.path(spec)).checkpoints, "state").read_text() == "saved"
    assert steps.seen(spec).status.state is Standing.INTERRUPTED


@BOTH
def test_what_was_finished_in_spite_of_being_cancelled_counts(steps, where, tmp_path):
    def fn(out, ctx):
        while not ctx.cancelled:
            (tmp_path / "ready").touch()
            time.sleep(0.01)
        writes("whole")(out)

    spec = StepSpec("train", fn=fn)
    job = steps.submit(spec, where, grace=30)
    begun(steps, tmp_path / "ready")
    steps.backend.cancel([job])
    steps.until(lambda: not steps.live)
    assert steps.ended[spec.task_id].reason is EndReason.OK
    assert steps.book.records[spec.task_id] == steps.seen(spec).record


def test_a_thread_that_does_not_hear_is_left_behind_in_bounded_time(steps, tmp_path):
    end = threading.Event()

    def fn(out):
        (tmp_path / "ready").touch()
        end.wait(60)

    spec = StepSpec("deaf", fn=fn)
    job = steps.submit(spec, Where.THREAD, grace=0.1)
    begun(steps, tmp_path / "ready")
    before = time.monotonic()
    steps.backend.cancel([job])
    steps.until(lambda: not steps.live)
    end.set()
    assert time.monotonic() - before < 20
    outcome = steps.ended[spec.task_id]
    assert outcome.reason is EndReason.CANCELLED
    assert "left behind" in outcome.message
    assert spec.task_id not in steps.book.errors


def test_a_thread_that_ends_after_all_is_closed_disturbs_nobody(tmp_path):
    """Its descriptor may be another one's by then."""
    steps, end = StepDriver(tmp_path), threading.Event()

    def fn(out):
        (tmp_path / "ready").touch()
        end.wait(60)

    spec = StepSpec("deaf", fn=fn)
    job = steps.submit(spec, Where.THREAD, grace=0.0)
    begun(steps, tmp_path / "ready")
    steps.backend.cancel([job])
    before = set(os.listdir("/dev/fd"))
    steps.close()
    assert len(before - set(os.listdir("/dev/fd"))) >= 3  # the pipe and the epoll
    readers = [os.pipe() for _ in range(10)]
    end.set()
    deadline = time.monotonic() + 30
    while steps.seen(spec).state is not ArtifactState.COMPLETE:
        assert time.monotonic() < deadline
    while any(one.name.startswith("treadle thread-") for one in threading.enumerate()):
        assert time.monotonic() < deadline
    for reader, writer in readers:
        assert not select.select([reader], [], [], 0)[0]
        os.close(reader)
        os.close(writer)


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


def test_whatever_the_function_leaves_running_ends_with_the_worker(steps, tmp_path):
    def fn(out):
        threading.Thread(target=time.sleep, args=(300,)).start()
        os.system("sleep 300 &")
        return "fine"

    assert steps.perform(StepSpec("leaky", fn=fn)).reason is EndReason.OK
    assert attempts_alive(steps.run.run) == []


@BOTH
def test_a_step_that_someone_else_makes_is_deferred_and_then_freed(steps, where):
    spec = StepSpec("tok", fn=writes("ours"))
    store = store_for(steps.path(spec))
    lease = store.claim(steps.path(spec), this_owner("other.7"))
    steps.submit(spec, where)
    steps.until(lambda: steps.reports)
    assert steps.told() == [JobStatus.DEFERRED]
    assert "other.7" in steps.reports[0].reason
    steps.turn(0.3)
    assert steps.told() == [JobStatus.DEFERRED]
    lease.release()
    steps.until(lambda: not steps.live)
    assert steps.told() == [JobStatus.DEFERRED, JobStatus.FREED]
    assert steps.perform(spec, where).reason is EndReason.OK


@BOTH
def test_of_two_runs_one_makes_it_and_the_other_takes_it(steps, other, where, tmp_path):
    def fn(out):
        with open(tmp_path / "calls", "a") as file:
            file.write("x")
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        writes("once")(out)

    spec = StepSpec("tok", fn=fn)
    steps.submit(spec, where)
    begun(steps, tmp_path / "calls")
    other.submit(spec, where)
    other.until(lambda: other.told() == [JobStatus.DEFERRED])
    (tmp_path / "go").touch()
    steps.until(lambda: not steps.live)
    other.until(lambda: not other.live)
    assert other.told() == [JobStatus.DEFERRED, JobStatus.FREED]
    assert other.perform(spec, where).reason is EndReason.OK
    assert (tmp_path / "calls").read_text() == "x"
    assert other.book.records[spec.task_id] == steps.book.records[spec.task_id]


def test_waiting_for_someone_else_can_be_cancelled(steps):
    spec = StepSpec("tok", fn=writes("ours"))
    lease = store_for(steps.path(spec)).claim(steps.path(spec), this_owner("other.7"))
    job = steps.submit(spec, Where.THREAD)
    steps.until(lambda: steps.reports)
    steps.backend.cancel([job])
    steps.until(lambda: not steps.live)
    lease.release()
    assert steps.ended[spec.task_id].reason is EndReason.CANCELLED


def test_a_resumable_step_goes_on_after_kill_9(steps, tmp_path):
    def fn(out):
        with open(out, "a") as file:
            file.write("part ")
        if Path(out).read_text() == "part ":
            os.kill(os.getpid(), signal.SIGKILL)

    spec = StepSpec("train", fn=fn, resumable=True)
    assert steps.perform(spec).signal == signal.SIGKILL
    assert steps.perform(spec).reason is EndReason.OK
    assert steps.content(spec) == "part part "


def test_a_worker_whose_lease_was_taken_ends_and_waits_for_the_other(steps, tmp_path):
    """The lease is lost as its next beat finds out; that is in 30 s, so the function makes it come sooner."""

    def fn(out):
        from treadle.steps import heartbeats, lease
        from treadle.steps.local_store import LocalStore

        lease.BEAT = 0.0
        now = [0.0]
        elsewhere = LocalStore(monotonic=lambda: now[0])
        for now[0] in (0.0, 100.0):  # 90 s of silence, by its own clock
            elsewhere.claim(path, this_owner("usurper.1"))
        heartbeats.of_this_process.beat()
        time.sleep(300)

    spec = StepSpec("train", fn=fn)
    path = steps.path(spec)
    steps.submit(spec)
    steps.until(lambda: steps.reports)
    assert steps.told() == [JobStatus.DEFERRED]
    assert "usurper.1" in steps.reports[0].reason


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

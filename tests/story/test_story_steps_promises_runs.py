"""Promises of a run where trouble is odd: odd callers, odd targets, steps that come twice, odd ends."""

from __future__ import annotations

import asyncio
import json
import pathlib
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from story_steps import Calls, put, run_script

from treadle import OptionError, ResourceConfig, StepError, StepRunError, StepRunner, StepSpec


def last_event(tmp_path: pathlib.Path) -> dict[str, object]:
    journal = max(tmp_path.glob(".treadle/runs/*/events.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    event: dict[str, object] = json.loads(journal.read_text().splitlines()[-1])
    return event


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_that_leaves_alone_what_failed_before_is_recorded_as_failed(
    runner: StepRunner, tmp_path: pathlib.Path, streamed: bool
) -> None:
    calls = Calls()
    bad = StepSpec("bad", fn=calls.boom("bad"))
    with pytest.raises(StepRunError):
        runner.run([bad])
    steps = [bad, StepSpec("above", fn=put("x"), deps=[bad]), StepSpec("new", fn=calls.put("new"))]
    with pytest.raises(StepRunError) as caught:
        runner.run(iter(steps) if streamed else steps, force_run_failed=False)
    assert calls.names == ["bad", "new"]
    assert "failed before" in str(caught.value.exceptions[0])
    assert ".status.json" in str(caught.value.exceptions[0])
    assert last_event(tmp_path)["exit_code"] == 1


def test_targets_that_are_no_steps_are_refused(runner: StepRunner) -> None:
    for wrong in (3, [None], [["a"]]):
        with pytest.raises(OptionError, match="targets are steps or their names"):
            runner.run([StepSpec("a", fn=put("a"))], targets=wrong)  # type: ignore[arg-type]


def test_a_step_that_runs_itself_is_told_so_and_does_not_wait_for_itself(runner: StepRunner) -> None:
    def again(out: str) -> None:
        runner.run([StepSpec("again", fn=again)])

    with pytest.raises(StepRunError) as caught:
        runner.run([StepSpec("again", fn=again)])
    (inner,) = caught.value.exceptions
    assert isinstance(inner, StepError)
    assert "would wait for itself" in str(inner)


def test_a_step_may_run_others_in_a_run_of_its_own(runner: StepRunner, tmp_path: pathlib.Path) -> None:
    inner = StepSpec("inner", fn=put("inner"))

    def outer(out: str) -> str:
        return str(runner.run([inner]))

    step = StepSpec("outer", fn=outer)
    assert runner.run([step, inner]).counts == {"succeeded": 2}
    assert runner.run([step])[step].state == "up_to_date"


def test_a_run_within_a_running_event_loop_works(runner: StepRunner) -> None:
    def make(out: str) -> None:
        async def write() -> None:
            await asyncio.sleep(0)
            pathlib.Path(out).write_text("x")

        asyncio.run(write())

    async def main() -> dict[str, int]:
        kinds = [StepSpec("thread", fn=put("x")), StepSpec("process", fn=put("x"), isolation="process")]
        return dict(runner.run([*kinds, StepSpec("loop", fn=make)]).counts)

    assert asyncio.run(main()) == {"succeeded": 3}


def test_one_runner_serves_many_threads_at_once(runner: StepRunner) -> None:
    calls = Calls()
    steps = [StepSpec(f"s{i}", fn=calls.put(f"s{i}")) for i in range(20)]
    reports = []
    threads = [threading.Thread(target=lambda: reports.append(runner.run(steps))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(reports) == 4
    assert sorted(calls.names) == sorted(f"s{i}" for i in range(20))


def test_one_step_with_two_codes_is_an_error_in_a_stream_too(runner: StepRunner) -> None:
    begun, over = threading.Event(), threading.Event()

    def slow(out: str) -> None:
        begun.set()
        assert over.wait(60)

    def twice() -> Iterator[StepSpec]:
        yield StepSpec("one", fn=slow)
        assert begun.wait(60)
        threading.Timer(0.5, over.set).start()
        yield StepSpec("one", fn=put("other"))

    def asking_for_more() -> Iterator[StepSpec]:
        yield StepSpec("one", fn=slow)
        assert begun.wait(60)
        threading.Timer(0.5, over.set).start()
        yield StepSpec("one", fn=slow, resources=ResourceConfig(cpu=1))

    with pytest.raises(StepRunError, match="is there twice, with different code"):
        runner.run(twice())
    begun.clear()
    over.clear()
    with pytest.raises(StepRunError, match="is there twice, with different resources"):
        runner.run(asking_for_more(), force=True)


def test_two_steps_at_one_path_are_an_error_in_batches_of_a_stream_too(runner: StepRunner) -> None:
    done = threading.Event()

    def first(out: str) -> None:
        put("first")(out)
        done.set()

    def apart() -> Iterator[StepSpec]:
        yield StepSpec("a", fn=first, override_output_path="same", hash_attrs={"x": 1})
        assert done.wait(60)
        yield StepSpec("a", fn=put("second"), override_output_path="same", hash_attrs={"x": 2})

    with pytest.raises(StepRunError) as caught:
        runner.run(apart())
    assert "another" in str(caught.value.exceptions[0])
    path = pathlib.Path(runner.run([], dry_run=True).run or runner._places().prefix) / "same"
    assert path.read_text() == "first"


@pytest.mark.parametrize(
    "wrong", ["yield 3", "yield None", "yield (step,)", "raise RuntimeError('oh')", "sys.exit(4)"]
)
def test_whatever_a_generator_does_what_it_gave_before_is_finished_and_all_is_told(
    tmp_path: pathlib.Path, wrong: str
) -> None:
    text = f"""
        def put(out):
            pathlib.Path(out).write_text("x")
        step = StepSpec("first", fn=put)
        def steps():
            yield step
            yield step
            {wrong}
        try:
            StepRunner().run(steps())
        except StepRunError as error:
            print(len(error.exceptions), error.report.counts, os.path.exists(step.output_path))
    """
    assert run_script(tmp_path, text) == "1 {'succeeded': 1} True\n"


def test_thousands_of_failures_are_one_error_that_stays_readable(runner: StepRunner) -> None:
    def fail(out: str) -> None:
        raise ValueError("x" * 1000)

    with pytest.raises(StepRunError) as caught:
        runner.run([StepSpec(f"s{i}", fn=fail) for i in range(2000)])
    assert len(caught.value.exceptions) == 2000
    assert len(str(caught.value)) < 1000
    assert caught.value.report.counts == {"failed": 2000}


def test_a_large_value_comes_back_whole_from_threads_and_processes(runner: StepRunner) -> None:
    def large(out: str) -> str:
        return "x" * 20_000_000

    steps = [StepSpec("here", fn=large), StepSpec("there", fn=large, isolation="process")]
    started = time.monotonic()
    assert runner.run(steps).counts == {"succeeded": 2}
    assert time.monotonic() - started < 30


ENDS = {
    "os._exit(3)": "exit code 3",
    "os._exit(0)": "exit code 0",
    "import ctypes; ctypes.string_at(0)": "SIGSEGV",
    "os.kill(os.getpid(), 9)": "SIGKILL",
    "os.abort()": "SIGABRT",
}


@pytest.mark.parametrize("deed", ENDS)
def test_however_a_worker_process_ends_that_is_its_steps_failure(tmp_path: pathlib.Path, deed: str) -> None:
    text = f"""
        import traceback
        def die(out):
            pathlib.Path(out).write_text("half")
            {deed}
        def put(out):
            pathlib.Path(out).write_text("x")
        bad = StepSpec("bad", fn=die, isolation="process")
        try:
            StepRunner().run([bad, StepSpec("good", fn=put, deps=[]), StepSpec("above", fn=put, deps=[bad])])
        except StepRunError as error:
            print(error.report.counts, error.report[bad].error, os.path.exists(bad.output_path))
        left = os.listdir(".treadle/artifacts/.treadle-artifacts/work")
        print(left, [name for name in os.listdir(".treadle/artifacts/.treadle-artifacts") if "lease" in name])
    """
    told = run_script(tmp_path, text)
    assert "{'blocked': 1, 'failed': 1, 'succeeded': 1}" in told
    assert ENDS[deed] in told
    assert told.rstrip().split("\n")[0].endswith("False")
    assert told.rstrip().split("\n")[1].startswith("[]")


def test_a_failure_that_cannot_be_pickled_comes_back_as_text(tmp_path: pathlib.Path) -> None:
    text = """
        import threading
        class Odd(Exception):
            def __init__(self, one, two):
                super().__init__(one)
                self.lock = threading.Lock()
        def fail(out):
            raise Odd("went wrong", 2)
        try:
            StepRunner().run([StepSpec("bad", fn=fail, isolation="process")])
        except StepRunError as error:
            print(type(error.exceptions[0]).__name__, error.exceptions[0], error.report.steps[0].error)
    """
    assert run_script(tmp_path, text) == "WorkerError Odd: went wrong Odd: went wrong\n"


def test_a_function_that_cannot_be_sent_is_an_error_before_anything_runs(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    lock = threading.Lock()

    def locked(out: str) -> None:
        with lock:
            put("x")(out)

    with pytest.raises(StepError, match=r"cannot be sent to another process.*lock"):
        runner.run([StepSpec("fine", fn=put("x")), StepSpec("bad", fn=locked, isolation="process")])
    assert not (tmp_path / ".treadle/artifacts").exists()


def test_cells_of_a_notebook_run_in_threads_and_in_processes_and_their_code_is_seen(
    tmp_path: pathlib.Path,
) -> None:
    text = """
        import linecache, types
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        def cell(number, text):
            name = f"<cell-{number}>"
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)
            exec(compile(text, name, "exec"), main.__dict__)
        cell(1, "from treadle import *\\nfrom dataclasses import dataclass\\n"
                "@dataclass\\nclass Score:\\n    x: int\\n"
                "def helper(): return Score(3)\\ndef make(out): return helper()\\n")
        cell(2, "here, there = StepSpec('here', fn=make), StepSpec('there', fn=make, isolation='process')\\n"
                "print(StepRunner().run([here, there]), here.load(), there.load(Score))\\n")
        cell(3, "import warnings; warnings.simplefilter('ignore')\\ndef make(out): return Score(4)\\n"
                "step = StepSpec('here', fn=make)\\nprint(StepRunner().run([step])[step].reason)\\n")
    """
    assert run_script(tmp_path, text) == "2 succeeded Score(x=3) Score(x=3)\ncode_changed\n"


@pytest.mark.skipif(sys.platform != "linux", reason="a small file system is mounted for it")
def test_what_is_made_in_a_folder_that_cannot_be_written_is_that_steps_failure(
    runner: StepRunner,
) -> None:
    lost = StepSpec("lost", fn=put("x"), override_output_path="/proc/none/x")
    fine = StepSpec("fine", fn=put("x"))
    with pytest.raises(StepRunError) as caught:
        runner.run([lost, fine])
    assert caught.value.report.counts == {"failed": 1, "succeeded": 1}
    assert "/proc/none" in str(caught.value.exceptions[0])

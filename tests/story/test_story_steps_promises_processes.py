"""Functions that fork, start processes, change what their process has, and fail far from the driver."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap
import time

import pytest
from story_steps import run_script

FORKING = """
def leaves(out):
    if os.fork() == 0:
        pathlib.Path(out + ".child").touch()
        sys.exit(3)
    pathlib.Path(out).write_text(str(os.waitstatus_to_exitcode(os.wait()[1])))
def raises(out):
    if os.fork() == 0:
        raise ValueError("in the child")
    pathlib.Path(out).write_text(str(os.waitstatus_to_exitcode(os.wait()[1])))
def returns(out):
    if os.fork():
        pathlib.Path(out).write_text(str(os.waitstatus_to_exitcode(os.wait()[1])))
"""


@pytest.mark.parametrize("isolation", ["None", "'process'"])
def test_a_child_that_comes_back_out_of_a_function_ends_and_publishes_nothing(
    tmp_path: pathlib.Path, isolation: str
) -> None:
    text = f"""
        steps = [StepSpec(f.__name__, fn=f, isolation={isolation}) for f in (leaves, raises, returns)]
        report = StepRunner().run(steps, max_concurrent=1)
        print(report, [pathlib.Path(step.output_path).read_text() for step in steps])
    """
    told = run_script(tmp_path, FORKING + "\n".join(line[8:] for line in text.splitlines()))
    assert told == "3 succeeded ['3', '1', '0']\n"


def test_a_function_may_start_processes_of_its_own(tmp_path: pathlib.Path) -> None:
    text = """
        import multiprocessing, subprocess
        def shell(out):
            subprocess.run(["sh", "-c", 'echo hi > "$0"', out], check=True)
        def pool(out):
            with multiprocessing.get_context("spawn").Pool(2) as workers:
                return workers.map(abs, [1, -2])
        if __name__ == "__main__":
            kinds = [dict(), dict(isolation="process")]
            steps = [StepSpec(f"{fn.__name__}{n}", fn=fn, **kind)
                     for fn in (shell, pool) for n, kind in enumerate(kinds)]
            print(StepRunner().run(steps), steps[2].load(), steps[3].load())
    """
    assert run_script(tmp_path, text) == "4 succeeded [1, 2] [1, 2]\n"


def test_what_a_function_forked_can_be_ended_by_it(tmp_path: pathlib.Path) -> None:
    text = """
        import multiprocessing, signal
        def deaf(ready):
            signal.alarm(60)  # of a child that does not end
            ready.set()
            signal.pause()
        def ending(out, ctx):
            assert not ctx.cancelled
            fork = multiprocessing.get_context("fork")
            ready = fork.Event()
            child = fork.Process(target=deaf, args=(ready,), daemon=True)
            child.start()
            ready.wait()
            child.terminate()
            child.join()
            return child.exitcode
        kinds = [dict(), dict(isolation="process")]
        steps = [StepSpec(f"ending{n}", fn=ending, **kind) for n, kind in enumerate(kinds)]
        print(StepRunner().run(steps), [step.load() for step in steps])
    """
    assert run_script(tmp_path, text) == "2 succeeded [-15, -15]\n"


@pytest.mark.parametrize("isolation", ["None", "'process'"])
def test_a_child_hears_what_comes_in_the_moment_that_it_is_forked(
    tmp_path: pathlib.Path, isolation: str
) -> None:
    (tmp_path / "early.py").write_text(
        "import os, signal\n"
        "ending = []\n"
        "os.register_at_fork(after_in_child=lambda: ending and os.kill(os.getpid(), signal.SIGTERM))\n"
    )
    text = f"""
        import early, signal
        from treadle import StepRunner, StepSpec
        def forking(out, ctx):
            assert not ctx.cancelled
            early.ending.append(1)
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # of a child that does not end
                signal.pause()
            early.ending.clear()
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        step = StepSpec("forking", fn=forking, isolation={isolation})
        print(StepRunner().run([step]), step.load())
    """
    (tmp_path / "script.py").write_text("import early, os\n" + textwrap.dedent(text))
    ran = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout == "1 succeeded -15\n", ran.stderr


def test_a_function_that_changes_folder_and_variables_moves_no_artifact(tmp_path: pathlib.Path) -> None:
    text = """
        def wander(out):
            os.chdir("/")
            os.environ["TREADLE_PREFIX"] = "/nowhere"
            pathlib.Path(out).write_text("x")
        def put(out):
            pathlib.Path(out).write_text("x")
        first = StepSpec("first", fn=wander)
        then = StepSpec("then", fn=put, deps=[first])
        last = StepSpec("last", fn=put, deps=[then], isolation="process")
        here = os.getcwd()
        report = StepRunner().run([last])
        print(report, all(line.path.startswith(here) and os.path.exists(line.path) for line in report))
    """
    assert run_script(tmp_path, text) == "3 succeeded True\n"


TROUBLE = """
import traceback
def helper(out):
    return out.nope

def make(out):
    return helper(out)
try:
    StepRunner().run([StepSpec("bad", fn=make, isolation="process")])
except StepRunError as error:
    traceback.print_exception(error.exceptions[0], file=sys.stdout)
"""


def test_the_traceback_of_a_worker_shows_files_and_lines_of_the_script_and_none_of_ours(
    tmp_path: pathlib.Path,
) -> None:
    told = run_script(tmp_path, TROUBLE)
    assert "dynamic-code" not in told
    assert told.index('.py", line 9, in make') < told.index('.py", line 6, in helper')
    assert "return out.nope" in told
    assert "worker.py" not in told


def test_the_traceback_of_a_script_from_stdin_names_it(tmp_path: pathlib.Path) -> None:
    head = "import sys\nfrom treadle import StepRunError, StepRunner, StepSpec"
    done = subprocess.run(
        [sys.executable, "-"], cwd=tmp_path, input=head + TROUBLE, capture_output=True, text=True, timeout=60
    )
    assert 'File "<stdin>", line 5, in helper' in done.stdout, done.stderr


def test_a_worker_whose_time_is_over_tells_where_it_was_and_nothing_of_ours(tmp_path: pathlib.Path) -> None:
    text = """
        def hang(out):
            print("began", flush=True)
            time.sleep(60)
        try:
            StepRunner().run([StepSpec("slow", fn=hang, timeout=1)])
        except StepRunError as error:
            print(error.exceptions[0])
    """
    told = run_script(tmp_path, text)
    assert "its time limit of 1s was over" in told
    assert "began" in told
    assert "time.sleep(60)" in told
    assert "worker.py" not in told


def test_a_dataclass_of_the_script_can_be_sent_after_one_was_loaded(tmp_path: pathlib.Path) -> None:
    text = """
        from dataclasses import dataclass
        @dataclass
        class Inner:
            x: int
        @dataclass
        class Score:
            inner: Inner
        first = StepSpec("first", fn=lambda out: Score(Inner(3)))
        StepRunner().run([first])
        assert first.load() == Score(Inner(3))
        def read(out, ctx):
            return Score(Inner(ctx.load(first, Score).inner.x + 1))
        then = StepSpec("then", fn=read, deps=[first], isolation="process")
        print(StepRunner().run([then]), then.load())
    """
    assert run_script(tmp_path, text) == "1 succeeded, 1 up to date Score(inner=Inner(x=4))\n"


MISUSE = {
    "os.closerange(3, 256)": "succeeded",
    "os.closerange(0, 256)": "succeeded",
    "os.closerange(3, 256); [os.open('there', os.O_RDWR | os.O_CREAT) for _ in range(9)]": "succeeded",
    "sys.stdout = sys.stderr = None": "succeeded",
    "sys.stdout = sys.stderr = None; 1 / 0": "ZeroDivisionError",
    "os.setsid() if os.getpid() != os.getpgid(0) else None; os.umask(0o777)": "succeeded",
    "threading.Thread(target=time.sleep, args=(60,)).start()": "succeeded",
    "subprocess.Popen(['sleep', '60'])": "succeeded",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)": "succeeded",
    "shutil.rmtree('.treadle/runs')": "succeeded",
    "sys.path.insert(0, '/nowhere'); os.chdir('/')": "succeeded",
    "atexit.register(lambda: 1 / 0)": "succeeded",
}


@pytest.mark.parametrize("deed", MISUSE)
def test_whatever_a_function_does_to_its_process_its_end_is_told_soon(
    tmp_path: pathlib.Path, deed: str
) -> None:
    text = f"""
        import atexit, shutil, signal, subprocess, threading
        def make(out):
            pathlib.Path(out).write_text("made")
            {deed}
        step = StepSpec("step", fn=make, isolation="process")
        try:
            StepRunner().run([step])
            print("succeeded", open(step.output_path).read())
        except StepRunError as error:
            print(error.report[step].error)
        print([str(one) for one in pathlib.Path().rglob("*.lease.*")])
    """
    began = time.monotonic()
    lines = run_script(tmp_path, text).splitlines()
    assert lines[0].startswith(MISUSE[deed])
    assert lines[1] == "[]"
    assert time.monotonic() - began < 30
    there = tmp_path / "there"
    assert not there.exists() or there.read_bytes() == b""

"""Runs of steps that are interrupted or killed: what was done stays, and no half passes for a whole."""

from __future__ import annotations

import json
import pathlib
import signal
import sys
import time

import pytest
from story_steps import KILLER, run_script, start_script

from waiting import until

STEPS = """
    class Interrupted(Exception): pass
    here = pathlib.Path.cwd()
    def mark(name):
        def work(out):
            with open(here / "calls", "a") as log: log.write(name + "\\n")
            open(out, "w").write(name)
        return work
"""

PIPELINE = (
    STEPS
    + """
    one = StepSpec("one", fn=mark("one"))
    far = StepSpec("far", fn=mark("far"), deps=[one], isolation="process")
    two = StepSpec("two", fn=mark("two"), deps=[one])
    top = StepSpec("top", fn=mark("top"), deps=[far, two])
"""
)


def calls(folder: pathlib.Path) -> list[str]:
    log = folder / "calls"
    return log.read_text().split() if log.exists() else []


def events(folder: pathlib.Path) -> list[dict[str, object]]:
    journal = folder / ".treadle" / "runs" / "latest" / "events.jsonl"
    return [json.loads(line) for line in journal.read_text().splitlines()]


def test_ctrl_c_ends_in_order_and_is_recorded(tmp_path: pathlib.Path) -> None:
    process = start_script(
        tmp_path,
        STEPS
        + """
    def wait(out, ctx):
        pathlib.Path("began").touch()
        while not ctx.cancelled: time.sleep(0.01)
        raise Interrupted
    def far(out):
        pathlib.Path("far").touch()
        time.sleep(600)
    steps = [StepSpec("thread", fn=wait), StepSpec("process", fn=far, isolation="process")]
    later = [StepSpec(f"later{i}", fn=mark("later"), deps=steps) for i in range(3)]
    try:
        StepRunner().run(later)
    except KeyboardInterrupt:
        print("interrupted")
        raise SystemExit(130)
    """,
    )
    until(lambda: (tmp_path / "began").exists() and (tmp_path / "far").exists())
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "interrupted\n"), err
    assert time.monotonic() - started < 15
    assert calls(tmp_path) == []
    found = events(tmp_path)
    assert found[-1]["event"] == "run_ended"
    assert found[-1]["exit_code"] == 130
    beside = tmp_path / ".treadle" / "artifacts" / ".treadle-artifacts"
    states = [json.loads(path.read_text())["state"] for path in sorted(beside.glob("*.status.json"))]
    assert states
    assert set(states) == {"interrupted"}
    assert not [path for path in beside.glob("*.json") if not path.name.endswith(".status.json")]
    assert not list(beside.glob("*.lease.*"))


def test_ctrl_c_is_bounded_though_a_thread_does_not_listen(tmp_path: pathlib.Path) -> None:
    process = start_script(
        tmp_path,
        """
    def deaf(out):
        pathlib.Path("began").touch()
        time.sleep(300)
    try:
        StepRunner().run([StepSpec("deaf", fn=deaf)])
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """,
    )
    until((tmp_path / "began").exists)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)  # twice: at once
    out, err = process.communicate(timeout=30)
    assert out == "interrupted\n", err


def test_ctrl_c_ends_a_stream_whose_generator_hangs(tmp_path: pathlib.Path) -> None:
    process = start_script(
        tmp_path,
        """
    def steps():
        yield StepSpec("one", fn=lambda out: pathlib.Path("began").touch())
        time.sleep(300)
    try:
        StepRunner().run(steps())
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        os._exit(0)
    """,
    )
    until((tmp_path / "began").exists)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert out == "interrupted\n", err
    assert events(tmp_path)[-1]["exit_code"] == 130


def test_sigterm_ends_in_order_too_and_the_program_with_it(tmp_path: pathlib.Path) -> None:
    process = start_script(
        tmp_path,
        """
    def far(out):
        pathlib.Path("far").touch()
        time.sleep(600)
    StepRunner().run([StepSpec("process", fn=far, isolation="process")])
    """,
    )
    until((tmp_path / "far").exists)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert events(tmp_path)[-1]["exit_code"] == 143


# The driver is killed at every event of a small run, and run again


def test_a_driver_that_is_killed_at_any_event_goes_on_where_it_was(tmp_path: pathlib.Path) -> None:
    deaths = 0
    for at in range(1, 40):
        folder = tmp_path / str(at)
        folder.mkdir()
        killed = start_script(folder, KILLER + PIPELINE + "    StepRunner().run([top])\n", str(at))
        killed.communicate(timeout=60)
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL
        deaths += 1
        done = set(calls(folder))
        out = run_script(folder, PIPELINE + "    print(StepRunner().run([top])['top'].state)\n")
        assert out.split()[0] in ("succeeded", "up_to_date")
        again = calls(folder)
        assert set(again) == {"one", "two", "far", "top"}
        # What was recorded as done was not done again: at most the few in flight at the death were.
        assert len(again) <= 4 + 2
        assert done <= set(again)
        for name in ("one", "two", "far", "top"):
            (path,) = (folder / ".treadle" / "artifacts").glob(f"{name}_*")
            assert path.read_text() == name
        if out.split()[0] == "up_to_date":
            continue  # there was nothing left to run, so nothing was written either
        ended = [
            json.loads((run / "events.jsonl").read_text().splitlines()[-1])
            for run in sorted((folder / ".treadle" / "runs").iterdir())
            if run.name != "latest" and (run / "events.jsonl").exists()
        ]
        assert all(event["event"] == "run_ended" for event in ended)
    assert deaths > 10


@pytest.mark.skipif(sys.platform != "linux", reason="workers of a killed driver are seen to end by /proc")
def test_a_worker_process_does_not_outlive_its_killed_driver(tmp_path: pathlib.Path) -> None:
    process = start_script(
        tmp_path,
        """
    def far(out):
        pathlib.Path("pid").write_text(str(os.getpid()))
        time.sleep(600)
    StepRunner().run([StepSpec("process", fn=far, isolation="process")])
    """,
    )
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    worker = int((tmp_path / "pid").read_text())
    process.kill()
    process.communicate(timeout=30)

    def gone() -> bool:
        stat = pathlib.Path(f"/proc/{worker}/stat")
        try:
            return stat.read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    until(gone, 30)


@pytest.mark.parametrize("how", ["", ', isolation="process"'])
def test_a_step_whose_driver_was_killed_was_interrupted(tmp_path: pathlib.Path, how: str) -> None:
    text = f"""
    def work(out):
        if not os.path.exists("began"):
            open("began", "w").write("x")
            time.sleep(600)
    killed = StepSpec("killed", fn=work{how})
    report = StepRunner().run([StepSpec("never", fn=work, deps=[killed])], dry_run=len(sys.argv) > 1)
    for line in report: print(line.step.rpartition("_")[0], line.state, line.reason)
    """
    killed = start_script(tmp_path, text)
    until(lambda: (tmp_path / "began").exists())
    preview = run_script(tmp_path, text, "preview").splitlines()
    assert preview == ["killed will_run never_ran", "never will_run never_ran"]  # it is being made
    killed.kill()
    killed.communicate(timeout=60)
    told = ["killed will_run last_failed", "never will_run never_ran"]
    until(lambda: run_script(tmp_path, text, "preview").splitlines() == told)  # workers follow in a moment
    ended = run_script(tmp_path, text).splitlines()
    assert ended == ["killed succeeded last_failed", "never succeeded never_ran"]
    assert run_script(tmp_path, text).splitlines() == ["never up_to_date "]

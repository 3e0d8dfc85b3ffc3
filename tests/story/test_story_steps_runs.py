"""A list of steps is one plan: what runs, in which order, what fails with it, and what is told."""

from __future__ import annotations

import contextvars
import json
import pathlib
import subprocess
import sys
import threading
import time
import traceback

import pytest
from story_steps import Calls, put, run_script

from treadle import OptionError, StepError, StepRunError, StepRunner, StepSpec
from waiting import until


def test_the_examples_run_as_they_stand(tmp_path: pathlib.Path) -> None:
    text = """
        tokenize = StepSpec(name="tokenize", fn=lambda out: open(out, "w").write("tokens"), hash_attrs={"vocab": "v1"})
        build_vocab = StepSpec(name="build_vocab", deps=[tokenize], fn=lambda out: open(out, "w").write("vocab"), hash_attrs={"size": 1000})
        train = StepSpec(name="train", deps=[tokenize, build_vocab], fn=lambda out: open(out, "w").write("model"), hash_attrs={"layers": 12})
        StepRunner().run([train])

        steps = [StepSpec(name=f"step_{i}", fn=lambda out, i=i: open(out, "w").write(str(i))) for i in range(20)]
        StepRunner().run(steps, max_concurrent=5)

        remote_job = StepSpec(name="remote_job", fn=lambda out: open(out, "w").write("remote result"),
                              resources=ResourceConfig(cpu=4, memory_gb=16))
        StepRunner().run([remote_job])          # submitted through the current client
        print(open(train.output_path).read(), open(steps[7].output_path).read(), open(remote_job.output_path).read())
    """  # noqa: E501
    assert run_script(tmp_path, text) == "model 7 remote result\n"


def test_each_step_runs_once_its_deps_are_done_and_once_at_all(runner: StepRunner) -> None:
    calls = Calls()
    base = StepSpec("base", fn=calls.put("base"))
    left = StepSpec("left", fn=calls.put("left"), deps=[base])
    right = StepSpec("right", fn=calls.put("right"), deps=[base])
    top = StepSpec("top", fn=calls.put("top"), deps=[left, right])
    report = runner.run([top, base, top, left])  # order and repetition do not matter
    assert sorted(calls.names) == ["base", "left", "right", "top"]
    assert calls.names[0] == "base"
    assert calls.names[-1] == "top"
    assert report.counts == {"succeeded": 4}
    assert runner.run([top]).counts == {"up_to_date": 1}
    assert len(calls.names) == 4


def test_what_a_complete_step_builds_on_is_not_visited_through_it(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    calls = Calls()
    below = StepSpec("below", fn=calls.put("below"))
    above = StepSpec("above", fn=calls.put("above"), deps=[below])
    first = runner.run([above])
    pathlib.Path(first[below].path).unlink()
    report = runner.run([above])
    assert calls.names == ["below", "above"]
    assert [line.step for line in report] == [above.name_with_hash]
    assert runner.run([above, below]).counts == {"succeeded": 1, "up_to_date": 1}


def test_a_complete_dep_that_vanishes_in_the_meantime_fails_loudly(runner: StepRunner) -> None:
    dep = StepSpec("dep", fn=put("dep"))
    path = pathlib.Path(runner.run([dep])[dep].path)
    gate = StepSpec("gate", fn=lambda out: path.unlink())
    reader = StepSpec("reader", fn=put("x"), deps=[dep, gate])
    with pytest.raises(StepRunError) as caught:
        runner.run([reader])
    (error,) = caught.value.exceptions
    assert "'dep'" in str(error)
    assert "run again" in str(error)


def test_a_failed_dep_blocks_what_builds_on_it_and_nothing_else(runner: StepRunner) -> None:
    calls = Calls()
    bad = StepSpec("bad", fn=calls.boom("bad"))
    above = StepSpec("above", fn=calls.put("above"), deps=[bad])
    top = StepSpec("top", fn=calls.put("top"), deps=[above])
    free = [StepSpec(f"free{i}", fn=calls.put(f"free{i}")) for i in range(5)]
    with pytest.raises(StepRunError) as caught:
        runner.run([top, *free], max_concurrent=1)
    error = caught.value
    assert error.blocked == (above.name_with_hash, top.name_with_hash)
    assert error.report.counts == {"blocked": 2, "failed": 1, "succeeded": 5}
    assert sorted(calls.names) == ["bad", *[f"free{i}" for i in range(5)]]


def test_every_root_failure_is_raised_as_it_was_with_its_traceback(runner: StepRunner) -> None:
    def deep(out: str) -> None:
        {}["missing"]

    steps = [
        StepSpec("first", fn=Calls().boom("first")),
        StepSpec("second", fn=deep),
        StepSpec("third", fn=deep, isolation="process"),
    ]
    with pytest.raises(StepRunError) as caught:
        runner.run(steps)
    kinds = [type(one) for one in caught.value.exceptions]
    assert kinds == [ValueError, KeyError, KeyError]
    text = "".join(traceback.format_exception(caught.value))
    assert text.count("in deep") == 2
    assert "first went wrong" in text
    assert caught.value.report[steps[1]].error.startswith("KeyError")
    group, rest = caught.value.split(ValueError)
    assert isinstance(group, StepRunError)
    assert group.report is caught.value.report
    assert rest is not None


def test_the_error_survives_a_pickle(runner: StepRunner) -> None:
    import pickle

    with pytest.raises(StepRunError) as caught:
        runner.run([StepSpec("bad", fn=Calls().boom("bad"))])
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, StepRunError)
    assert again.report == caught.value.report


def test_a_report_tells_of_each_step_what_came_of_it(runner: StepRunner) -> None:
    def flaky(out: str, ctx: object) -> None:
        if ctx.attempt == 1:  # type: ignore[attr-defined]
            raise OSError("not yet")
        pathlib.Path(out).write_text("done")

    step = StepSpec("flaky", fn=flaky, retries=2)
    line = runner.run([step])[step]
    assert (line.state, line.reason, line.attempts) == ("succeeded", "never_ran", 2)
    assert line.path == str(pathlib.Path(line.path).absolute())
    assert pathlib.Path(line.path).read_text() == "done"
    assert line.seconds is not None
    assert runner.run([step])["flaky"].state == "up_to_date"


def test_a_dry_run_tells_what_would_run_and_why_and_writes_nothing(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    calls = Calls()
    done = StepSpec("done", fn=calls.put("done"))
    new = StepSpec("new", fn=calls.put("new"), deps=[done])
    report = runner.run([new], dry_run=True)
    assert not any(tmp_path.iterdir())
    assert [(line.state, line.reason) for line in report] == [("will_run", "never_ran")] * 2
    runner.run([done])
    before = sorted(tmp_path.rglob("*"))
    report = runner.run([new, done], dry_run=True)
    assert sorted(tmp_path.rglob("*")) == before
    assert report[new].state == "will_run"
    assert report[done].state == "up_to_date"
    assert report.dry_run
    assert calls.names == ["done"]


def test_a_dry_run_pulls_no_more_than_ten_thousand_steps_and_says_so(runner: StepRunner) -> None:
    pulled = 0

    def endless():  # type: ignore[no-untyped-def]
        nonlocal pulled
        while True:
            pulled += 1
            yield StepSpec("many", hash_attrs={"i": pulled}, fn=put(""))

    report = runner.run(endless(), dry_run=True)
    assert report.truncated
    assert "there are more" in str(report)
    assert len(report) == 10_000
    assert pulled == 10_001
    assert not runner.run(iter([StepSpec("one", fn=put(""))]), dry_run=True).truncated


@pytest.mark.parametrize("number", [0, -1, 2.5, True, "8"])
def test_numbers_that_make_no_sense_are_refused(runner: StepRunner, number: object) -> None:
    with pytest.raises(OptionError, match="max_concurrent"):
        runner.run([], max_concurrent=number)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="max_remote"):
        runner.run([], max_remote=number)  # type: ignore[arg-type]


@pytest.mark.parametrize("steps", [None, 5, ["train"], [None], iter(["train"])])
def test_what_is_no_step_is_refused(runner: StepRunner, steps: object) -> None:
    with pytest.raises((StepError, StepRunError)) as caught:
        runner.run(steps)  # type: ignore[arg-type]
    if isinstance(caught.value, StepRunError):
        assert all(isinstance(one, StepError) for one in caught.value.exceptions)


def test_no_steps_are_no_work(runner: StepRunner, tmp_path: pathlib.Path) -> None:
    assert len(runner.run([])) == 0
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("streamed", [False, True])
def test_no_more_steps_run_at_a_time_than_was_said(runner: StepRunner, streamed: bool) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def count(out: str) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1

    steps = [StepSpec(f"s{i}", fn=count) for i in range(20)]
    runner.run(iter(steps) if streamed else steps, max_concurrent=3)
    assert most == 3


def test_without_keep_going_nothing_new_starts_after_a_failure(runner: StepRunner) -> None:
    calls = Calls()
    steps = [StepSpec(f"bad{i}", fn=calls.boom(f"bad{i}")) for i in range(10)]
    with pytest.raises(StepRunError) as caught:
        runner.run(steps, keep_going=False, max_concurrent=1)
    assert len(calls.names) == 1
    assert caught.value.report.counts == {"cancelled": 9, "failed": 1}


def test_targets_choose_steps_by_name_with_what_they_build_on(runner: StepRunner) -> None:
    calls = Calls()
    base = StepSpec("base", fn=calls.put("base"))
    wanted = StepSpec("wanted", fn=calls.put("wanted"), deps=[base])
    other = StepSpec("other", fn=calls.put("other"))
    runner.run([wanted, other], targets=["wanted"])
    assert calls.names == ["base", "wanted"]
    runner.run(iter([wanted, other]), targets=[other])
    assert calls.names[2:] == ["other"]
    below = StepSpec("below", fn=calls.put("below"))
    runner.run(iter([StepSpec("above", fn=calls.put("above"), deps=[below])]), targets=["below"])
    assert calls.names[3:] == ["below"], "a target may be what a step of the stream builds on, as in a list"
    for steps in ([wanted], iter([wanted])):
        with pytest.raises((OptionError, StepRunError), match="wantd"):
            runner.run(steps, targets=["wantd"])


def test_what_failed_before_can_be_left_alone(runner: StepRunner) -> None:
    calls = Calls()
    bad = StepSpec("bad", fn=calls.boom("bad"))
    above = StepSpec("above", fn=calls.put("above"), deps=[bad])
    with pytest.raises(StepRunError):
        runner.run([above])
    free = StepSpec("free", fn=calls.put("free"))
    for streamed in (False, True):
        steps = [above, free]
        with pytest.raises(StepRunError) as caught:
            runner.run(iter(steps) if streamed else steps, force_run_failed=False)
        (error,) = caught.value.exceptions
        assert isinstance(error, StepError)
        assert ".status.json" in str(error)
        assert "bad went wrong" in str(error)
        assert caught.value.blocked == (above.name_with_hash,)
    assert calls.names == ["bad", "free"]
    with pytest.raises(StepRunError):
        runner.run([above])
    assert calls.names == ["bad", "free", "bad"]


def test_system_exit_in_a_step_is_that_steps_failure(runner: StepRunner) -> None:
    def leave(out: str) -> None:
        sys.exit(7)

    steps = [StepSpec("leaver", fn=leave), StepSpec("far", fn=leave, isolation="process")]
    with pytest.raises(StepRunError) as caught:
        runner.run([*steps, StepSpec("stays", fn=put("x"))])
    assert caught.value.report.counts == {"failed": 2, "succeeded": 1}
    assert "SystemExit" in str(caught.value.exceptions[0])


def test_a_crash_of_a_worker_process_is_that_steps_failure(runner: StepRunner) -> None:
    import os

    def crash(out: str) -> None:
        os.abort()

    with pytest.raises(StepRunError) as caught:
        runner.run([StepSpec("crash", fn=crash, isolation="process"), StepSpec("stays", fn=put("x"))])
    assert caught.value.report.counts == {"failed": 1, "succeeded": 1}


def test_a_timeout_ends_a_step(runner: StepRunner) -> None:
    def forever(out: str) -> None:
        time.sleep(600)

    with pytest.raises(StepRunError) as caught:
        runner.run([StepSpec("forever", fn=forever, timeout=1)])
    assert "time" in caught.value.report["forever"].error


def test_context_variables_reach_functions_in_threads(runner: StepRunner) -> None:
    who = contextvars.ContextVar("who", default="nobody")
    seen: list[str] = []
    who.set("me")
    steps = [StepSpec("one", fn=lambda out: seen.append(who.get()))]
    runner.run(steps)
    runner.run(StepSpec("two", fn=lambda out: seen.append(who.get())) for _ in range(1))
    assert seen == ["me", "me"]


def test_a_runner_works_outside_of_the_main_thread(runner: StepRunner) -> None:
    reports = []
    thread = threading.Thread(target=lambda: reports.append(runner.run([StepSpec("one", fn=put("x"))])))
    thread.start()
    thread.join(60)
    assert [report.counts for report in reports] == [{"succeeded": 1}]


def test_a_script_from_stdin_needs_no_main_guard(tmp_path: pathlib.Path) -> None:
    script = (
        "from treadle import StepRunner, StepSpec\n"
        "def work(out):\n    open(out, 'w').write('far')\n"
        "step = StepSpec('far', fn=work, isolation='process')\n"
        "StepRunner().run([step])\nprint(open(step.output_path).read())\n"
    )
    done = subprocess.run(
        [sys.executable, "-"],
        input=script,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "far\n"


def test_a_run_of_steps_has_a_journal_and_takes_no_lock(runner: StepRunner, tmp_path: pathlib.Path) -> None:
    locks: list[bool] = []
    step = StepSpec("one", fn=lambda out: locks.append((tmp_path / ".treadle/lock").exists()))
    report = runner.run([step])
    assert locks == [False]
    journal = tmp_path / ".treadle" / "runs" / report.run / "events.jsonl"
    events = [json.loads(line)["event"] for line in journal.read_text().splitlines()]
    assert events[0] == "run_started"
    assert events[-1] == "run_ended"
    assert "task_settled" in events


def test_a_prefix_says_where_artifacts_stand(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = StepSpec("one", fn=put("x"))
    given = StepRunner(workdir=tmp_path, prefix=tmp_path / "given").run([step])[step].path
    assert given == str(tmp_path / "given" / step.name_with_hash)
    assert StepRunner(workdir=tmp_path, prefix="below").run([step])[step].path == str(
        tmp_path / "below" / step.name_with_hash
    )
    monkeypatch.setenv("TREADLE_PREFIX", str(tmp_path / "env"))
    assert StepRunner(workdir=tmp_path).run([step])[step].path.startswith(str(tmp_path / "env"))


def test_artifacts_can_stand_in_an_object_store(tmp_path: pathlib.Path) -> None:
    below = StepSpec("below", fn=put("far"))

    def read(out: str, ctx: object) -> None:
        pathlib.Path(out).write_text(pathlib.Path(ctx.path(below)).read_text() + "!")  # type: ignore[attr-defined]

    above = StepSpec("above", fn=read, deps=[below])
    runner = StepRunner(workdir=tmp_path, prefix=f"memory://{tmp_path.name}/artifacts")
    assert runner.run([above]).counts == {"succeeded": 2}
    assert runner.run([above]).counts == {"up_to_date": 1}


def test_a_step_waits_for_its_dep_only_and_not_for_its_neighbours(runner: StepRunner) -> None:
    """No levels: what builds on the fast one runs while the slow one still does."""
    reached = threading.Event()
    fast = StepSpec("fast", fn=put("x"))
    after = StepSpec("after", fn=lambda out: reached.set(), deps=[fast])
    slow = StepSpec("slow", fn=lambda out: until(reached.is_set))
    assert runner.run([slow, after], max_concurrent=2).counts == {"succeeded": 3}

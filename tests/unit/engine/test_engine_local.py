"""The driver with real processes: commands, hooks, ends, signals, retries on this machine."""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from treadle.backends.local import LocalBackend
from treadle.base.layout import StateFolder
from treadle.base.mask import Mask
from treadle.base.proc import attempts_alive
from treadle.decide.decide import Options, decide
from treadle.decide.facts import gather
from treadle.decide.reason import Verdict
from treadle.engine.loop import DriveOptions, DriveResult, drive
from treadle.plan.task import Command, Growth, Policy, Resources, ScheduledTask, Shell
from treadle.records.compact import Checkpoint
from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    End,
    EndReason,
    Event,
    Noticed,
    RunStarted,
    TaskSettled,
)
from treadle.records.journal import Journal, read_journal
from treadle.records.past import load_past
from treadle.records.recorder import Recorder
from treadle.testing import plans

task = plans.task


class Bench:
    """A work folder; each run goes down the whole way: past, facts, decision, drive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = StateFolder(str(folder))
        self.backend = LocalBackend()
        self.number = 0
        self.listener: Any = None

    def drive(self, *tasks: ScheduledTask, **options: Any) -> DriveResult:
        self.number += 1
        secrets = options.pop("secrets", None)
        mask = Mask()
        for value in (secrets or {}).values():
            mask.add(value)
        self.run = self.state.run(f"20260101T0000{self.number:02}Z-{os.getpid() % 65536:04x}")
        os.makedirs(self.run.logs)
        first = RunStarted(time=0.0, format=1, run=self.run.run, treadle="0", workflow="small")
        past = load_past(self.state)
        recorder = Recorder(
            Journal.create(self.run.events, first, mask), Checkpoint.open(self.state, self.run.run, mask)
        )
        plan = plans.plan(tasks)
        asked = Options(workdir=str(self.folder), flowdir=str(self.folder))
        facts = gather(plan, past, asked)
        self.decision = decide(plan, facts, past, asked)
        try:
            return drive(
                plan,
                self.decision,
                past,
                self.backend,
                recorder,
                DriveOptions(**{"jobs": 2, "grace": 0.3, **options}),
                run=self.run,
                workdir=str(self.folder),
                secrets=secrets,
                mask=mask,
                listener=self.listener,
                known=facts.records,
            )
        finally:
            recorder.close()
            assert attempts_alive(self.run.run) == [], "no process is left behind"

    def to_run(self) -> list[str]:
        return self.decision.to_run()

    def settled(self, name: str) -> TaskSettled:
        events = read_journal(self.run.events).events
        return next(e for e in events if isinstance(e, TaskSettled) and e.task == name)

    def log(self, n: int) -> str:
        return Path(self.run.attempt_log(n)).read_text()

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.backend.close()


def once_running(bench: Bench, ready: str, act: Any) -> None:
    """Call `act` from another thread once a command has made the file `ready`."""

    def wait() -> None:
        until = time.monotonic() + 20
        while not (bench.folder / ready).exists() and time.monotonic() < until:
            time.sleep(0.005)
        act()

    threading.Thread(target=wait, daemon=True).start()


def test_a_small_pipeline_runs_and_is_up_to_date_afterwards(bench: Bench) -> None:
    (bench.folder / "in").write_text("hello\n")
    tasks = [
        task("upper", text="tr a-z A-Z < in > out/up", inputs=["in"], outputs=["out/up"]),
        task("count", ["upper"], text="wc -c < out/up > n", inputs=["out/up"], outputs=["n"]),
    ]
    assert bench.drive(*tasks).exit_code == 0
    assert bench.text("n").strip() == "6"
    usage = bench.settled("upper").outcome
    assert usage is not None
    assert usage.usage.wall is not None
    assert bench.drive(*tasks).counts == {"up_to_date": 2}
    assert bench.to_run() == []


def test_cut_off_spares_what_would_read_the_same(bench: Bench) -> None:
    (bench.folder / "in").write_text("b\na\n")
    tasks = [
        task("sort", text="sort in > sorted", inputs=["in"], outputs=["sorted"]),
        task(
            "use", ["sort"], text="cat sorted > used; echo run >> runs", inputs=["sorted"], outputs=["used"]
        ),
    ]
    bench.drive(*tasks)
    (bench.folder / "in").write_text("a\nb\n")
    result = bench.drive(*tasks)
    assert bench.to_run() == ["sort", "use"]
    assert result.counts == {"succeeded": 1, "unchanged": 1}
    assert bench.text("runs") == "run\n"
    assert bench.drive(*tasks).counts == {"up_to_date": 2}


def test_a_failure_leaves_its_log_its_script_and_its_outputs_aside(bench: Bench) -> None:
    result = bench.drive(task("a", text="echo half > x; echo problem >&2; exit 7", outputs=["x"]))
    (failure,) = result.failures
    assert failure.outcome is not None
    assert (failure.outcome.reason, failure.outcome.exit_code) == (EndReason.APP, 7)
    assert Path(failure.log).read_text() == "problem\n"
    assert bench.text("x.failed") == "half\n"
    script = Path(bench.run.attempt_text(1))
    assert os.spawnlp(os.P_WAIT, "sh", "sh", str(script)) == 7
    assert bench.text("x") == "half\n"


def test_a_failed_task_runs_again_and_what_it_broke_is_not_trusted(bench: Bench) -> None:
    flaky = task("a", text="echo x > x; test -e fixed", outputs=["x"])
    assert bench.drive(flaky).exit_code == 1
    assert not (bench.folder / "x").exists()
    (bench.folder / "fixed").touch()
    assert bench.drive(flaky).exit_code == 0
    assert bench.decision.answers["a"].verdict is Verdict.WILL_RUN


def test_hooks_run_inside_the_attempt(bench: Bench) -> None:
    command = Command(text="echo text", pre_exec="echo pre", on_success="echo good; exit 1")
    assert bench.drive(task("a", command=command)).exit_code == 0
    assert bench.log(1).splitlines()[:3] == ["pre", "text", "good"]


def test_a_strict_shell_fails_a_broken_pipe(bench: Bench) -> None:
    strict = Policy(shell=Shell(strict=True))
    text = "false | cat > x"
    assert bench.drive(task("a", text=text, outputs=["x"])).exit_code == 0
    assert bench.drive(task("b", text=text, outputs=["y"], policy=strict)).exit_code == 1


def test_a_long_text_runs_from_a_file(bench: Bench) -> None:
    text = "cat > x <<'END'\n" + "line\n" * 60_000 + "END"
    assert bench.drive(task("a", text=text, outputs=["x"])).exit_code == 0
    assert len(bench.text("x")) == 300_000


def test_time_limits_end_an_attempt_and_grow_after_that_alone(bench: Bench) -> None:
    policy = Policy(retries=3, retry_time=Growth(10.0))
    asked = Resources(time_limit=1)
    text = "test -e tried && exit; touch tried; sleep 600"
    assert bench.drive(task("a", text=text, resources=asked, policy=policy)).exit_code == 0
    tried = [event for event in read_journal(bench.run.events).events if isinstance(event, AttemptEnded)]
    assert {event.outcome.reason for event in tried} == {EndReason.TIME}
    assert bench.settled("a").attempt == len(tried) + 1


def test_the_rules_log_is_there_while_the_command_runs(bench: Bench) -> None:
    bench.drive(task("a", text="echo hi; until grep -q hi logs/a.log; do :; done", log="logs/a.log"))
    assert bench.text("logs/a.log") == "hi\n"


def test_a_secret_reaches_the_command_and_no_record(bench: Bench) -> None:
    secret = "s3cret-value"
    command = Command(
        text='echo "$TREADLE_SECRET_KEY" > x; echo "$TREADLE_SECRET_KEY"; exit 1',
        secrets=("TREADLE_SECRET_KEY",),
    )
    bench.drive(task("a", command=command, outputs=["x"]), secrets={"TREADLE_SECRET_KEY": secret})
    assert bench.text("x.failed") == f"{secret}\n"
    assert stat.S_IMODE(os.stat(bench.run.attempt_log(1)).st_mode) == 0o600
    for folder, _, names in os.walk(bench.state.root):
        for name in names:
            path = Path(folder, name)
            if str(path) != bench.run.attempt_log(1):
                assert secret not in path.read_text(), path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_whole_group_and_sets_aside(bench: Bench, number: int) -> None:
    text = "echo half > x; (sleep 600 & wait) & touch up; sleep 600"
    once_running(bench, "up", lambda: os.kill(os.getpid(), number))
    result = bench.drive(task("a", text=text, outputs=["x"]), task("b", ["a"]))
    assert result.exit_code == {signal.SIGINT: 130, signal.SIGTERM: 143}[signal.Signals(number)]
    assert result.counts == {"cancelled": 2}
    assert bench.text("x.failed") == "half\n"
    assert bench.settled("a").state is End.CANCELLED


def test_a_second_signal_does_not_wait_for_the_grace(bench: Bench) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    once_running(bench, "up", twice)
    began = time.monotonic()
    text = "trap '' TERM INT; touch up; while :; do sleep 0.1; done"
    assert bench.drive(task("a", text=text), grace=300).exit_code == 130
    assert time.monotonic() - began < 60


def test_fail_fast_ends_what_runs(bench: Bench) -> None:
    result = bench.drive(
        task("a", text="until test -e up; do :; done; exit 1"),
        task("b", text="echo half > x; touch up; sleep 600", outputs=["x"]),
        fail_fast=True,
    )
    assert (result.exit_code, result.counts) == (1, {"failed": 1, "cancelled": 1})
    assert bench.text("x.failed") == "half\n"


def test_a_shell_that_is_not_there_is_a_refusal_with_a_way_out(bench: Bench) -> None:
    policy = Policy(shell=Shell("no-such-shell"))
    result = bench.drive(task("a", policy=policy), task("b"), keep_going=True)
    assert result.counts == {"failed": 1, "succeeded": 1}
    outcome = result.failures[0].outcome
    assert outcome is not None
    assert outcome.reason is EndReason.NEVER_STARTED
    assert "no-such-shell" in outcome.message


def test_many_tasks_keep_to_the_budget(bench: Bench) -> None:
    """Each writes how many ran beside it."""
    text = "mkdir r$$; ls -d r* | wc -l >> seen; rmdir r$$"
    tasks = [task(f"t{at:03}", text=text) for at in range(60)]
    assert bench.drive(*tasks, jobs=3).counts == {"succeeded": 60}
    assert max(map(int, bench.text("seen").split())) <= 3


def test_work_in_a_folder_that_vanishes_fails_in_words(bench: Bench) -> None:
    result = bench.drive(task("a", text="rm -r out; exit 0", outputs=["out/x"]))
    assert result.failures[0].outcome is not None
    assert "did not make out/x" in result.failures[0].outcome.message


def test_events_come_to_the_listener_as_they_happen(bench: Bench) -> None:
    heard: list[Event] = []

    def listener(events: Sequence[Event]) -> None:
        heard.extend(events)
        if any(isinstance(event, AttemptStarted) for event in events):
            (bench.folder / "go").touch()

    bench.listener = listener
    bench.drive(task("a", text="until test -e go; do :; done"))
    assert not [event for event in heard if isinstance(event, Noticed)]

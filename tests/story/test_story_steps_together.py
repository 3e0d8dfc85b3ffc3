"""Several runs of steps at once: in one process, in several, on one graph and in one folder."""

from __future__ import annotations

import contextlib
import pathlib
import threading

import pytest
from story_steps import Calls, put, start_script

from treadle import StepRunError, StepRunner, StepSpec
from treadle.cli.words import notice
from treadle.records.event import Noticed
from treadle.records.journal import read_journal
from waiting import until


def test_two_runners_in_one_process_make_each_artifact_once(tmp_path: pathlib.Path) -> None:
    calls = Calls()

    def graph() -> list[StepSpec]:
        base = StepSpec("base", fn=calls.put("base"))
        return [StepSpec(f"s{i}", fn=calls.put(f"s{i}"), deps=[base]) for i in range(20)]

    reports = []

    def run() -> None:
        reports.append(StepRunner(workdir=tmp_path).run(graph(), max_concurrent=4))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(reports) == 3
    assert all(report.ok for report in reports)
    assert sorted(calls.names) == sorted(["base", *(f"s{i}" for i in range(20))])


def test_two_scripts_make_each_artifact_once(tmp_path: pathlib.Path) -> None:
    text = """
        def work(name):
            def make(out):
                with open("calls", "a") as log: log.write(name + "\\n")
                time.sleep(0.02)
                open(out, "w").write(name)
            return make
        base = StepSpec("base", fn=work("base"))
        steps = [StepSpec(f"s{i}", fn=work(f"s{i}"), deps=[base]) for i in range(12)]
        print(StepRunner().run(steps, max_concurrent=3).ok)
    """
    scripts = [start_script(tmp_path, text) for _ in range(3)]
    told = [script.communicate(timeout=120) for script in scripts]
    assert [out for out, _ in told] == ["True\n"] * 3, told
    calls = (tmp_path / "calls").read_text().split()
    assert sorted(calls) == sorted(["base", *(f"s{i}" for i in range(12))])


def test_waiting_for_another_run_holds_no_slot(tmp_path: pathlib.Path) -> None:
    """With one slot, a step that someone else makes does not keep the others from running."""
    began, gate, calls = threading.Event(), threading.Event(), Calls()

    def shared(out: str) -> None:
        began.set()
        gate.wait(60)
        calls.put("shared")(out)

    def first() -> None:
        StepRunner(workdir=tmp_path).run([StepSpec("shared", fn=shared)])

    other = threading.Thread(target=first)
    other.start()
    began.wait(60)
    opener = threading.Thread(target=lambda: (until(lambda: len(calls.names) == 3), gate.set()))
    opener.start()
    steps = [StepSpec("shared", fn=shared), *(StepSpec(f"own{i}", fn=calls.put(f"own{i}")) for i in range(3))]
    report = StepRunner(workdir=tmp_path).run(steps, max_concurrent=1)
    other.join(60)
    opener.join(60)
    assert report.ok
    assert calls.names.count("shared") == 1
    assert calls.names[-1] == "shared"


def test_who_waited_and_took_what_another_run_made_says_so(tmp_path: pathlib.Path) -> None:
    """In the report, in the journal, and in the words of the command."""
    began, gate = threading.Event(), threading.Event()

    def shared(out: str) -> None:
        began.set()
        gate.wait(60)
        pathlib.Path(out).write_text("x")

    reports = []
    step = StepSpec("shared", fn=shared)
    first = threading.Thread(target=lambda: reports.append(StepRunner(workdir=tmp_path).run([step])))
    first.start()
    began.wait(60)
    opener = threading.Thread(target=lambda: (until(lambda: noted(tmp_path, "lease_held")), gate.set()))
    opener.start()
    report = StepRunner(workdir=tmp_path).run([step])
    first.join(60)
    opener.join(60)
    assert report[step].state == "succeeded"
    assert report[step].reason == "taken"
    assert reports[0][step].reason == "never_ran"
    (told,) = noted(tmp_path, "result_taken")
    assert told.task == step.task_id
    assert told.values["maker"].endswith(f", {reports[0].run}.1")
    assert "was made meanwhile by" in notice(told)


def test_who_waited_and_made_it_after_all_says_nothing(tmp_path: pathlib.Path) -> None:
    began, gate, calls = threading.Event(), threading.Event(), Calls()

    def shared(out: str) -> None:
        if not began.is_set():
            began.set()
            gate.wait(60)
            raise ValueError("not this time")
        calls.put("shared")(out)

    def fail() -> None:
        with contextlib.suppress(StepRunError):
            StepRunner(workdir=tmp_path).run([step])

    step = StepSpec("shared", fn=shared)
    first = threading.Thread(target=fail)
    first.start()
    began.wait(60)
    opener = threading.Thread(target=lambda: (until(lambda: noted(tmp_path, "lease_held")), gate.set()))
    opener.start()
    report = StepRunner(workdir=tmp_path).run([step])
    first.join(60)
    opener.join(60)
    assert calls.names == ["shared"]
    assert report[step].reason == "never_ran"
    assert not noted(tmp_path, "result_taken")


def noted(folder: pathlib.Path, code: str) -> list[Noticed]:
    """What was noted in the journals of all runs."""
    journals = sorted((folder / ".treadle" / "runs").glob("2*/events.jsonl"))
    events = [event for journal in journals for event in read_journal(str(journal)).events]
    return [event for event in events if isinstance(event, Noticed) and event.code == code]


def test_a_run_of_steps_goes_on_beside_one_that_holds_the_folder(tmp_path: pathlib.Path) -> None:
    """Steps with inputs lock the folder; those without do not mind."""
    (tmp_path / "in.txt").write_text("x")
    began, gate = threading.Event(), threading.Event()

    def slow(out: str) -> None:
        began.set()
        gate.wait(60)

    locked = StepSpec("locked", fn=slow, inputs=["in.txt"])
    holder = threading.Thread(target=lambda: StepRunner(workdir=tmp_path).run([locked]))
    holder.start()
    began.wait(60)
    assert (tmp_path / ".treadle" / "lock").exists()
    assert StepRunner(workdir=tmp_path).run([StepSpec("free", fn=put("x"))]).ok
    from treadle.base.errors import LockError

    with pytest.raises(LockError):
        StepRunner(workdir=tmp_path).run([locked])
    gate.set()
    holder.join(60)
    assert not (tmp_path / ".treadle" / "lock").exists()


def test_a_runner_that_was_told_to_waits_for_the_run_that_holds_the_folder(tmp_path: pathlib.Path) -> None:
    (tmp_path / "in.txt").write_text("x")
    began, gate = threading.Event(), threading.Event()

    def slow(out: str) -> None:
        began.set()
        gate.wait(60)

    def steps() -> list[StepSpec]:
        return [StepSpec("locked", fn=slow, inputs=["in.txt"])]

    holder = threading.Thread(target=lambda: StepRunner(workdir=tmp_path).run(steps()))
    holder.start()
    began.wait(60)
    free = threading.Timer(0.3, gate.set)
    free.start()
    report = StepRunner(workdir=tmp_path, wait=True).run(steps())
    holder.join(60)
    assert report.ok
    assert report.counts == {"up_to_date": 1}


def test_old_runs_are_removed_when_there_are_many(tmp_path: pathlib.Path) -> None:
    for i in range(45):
        StepRunner(workdir=tmp_path).run([StepSpec("s", hash_attrs={"i": i}, fn=put("x"))])
    runs = [path for path in (tmp_path / ".treadle" / "runs").iterdir() if path.name != "latest"]
    assert 20 <= len(runs) <= 41

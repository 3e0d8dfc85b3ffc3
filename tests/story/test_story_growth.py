"""Steps that grow: alike in the first run, in the preview and after a restart, whatever changed."""

from __future__ import annotations

import pathlib
import threading
from collections.abc import Iterable
from typing import Any

from story_steps import Calls

from treadle import StepRunner, StepSpec
from waiting import until


def states(report: Iterable[Any]) -> dict[str, str]:
    return {line.step.rpartition("_")[0]: line.state for line in report}


def lister(calls: Calls, tmp_path: pathlib.Path, **options: Any) -> StepSpec:
    """A step that reads names from a file, and grows a step for each and one that gathers them."""

    def names(out: str) -> list[str]:
        calls.names.append("list")
        return (tmp_path / "names.txt").read_text().split()

    def grow(found: list[str]) -> list[StepSpec]:
        parts = [StepSpec(name, fn=calls.put(name)) for name in found]
        return [*parts, StepSpec("all", deps=parts, fn=calls.put("all"))]

    return StepSpec("list", fn=names, grow=grow, inputs=["names.txt"], **options)


# What belongs to the run


def test_what_a_step_below_a_complete_one_has_grown_belongs_to_the_run(runner: StepRunner) -> None:
    calls = Calls()

    def steps() -> list[StepSpec]:
        low = StepSpec("low", fn=lambda out: 2, grow=lambda n: [StepSpec("late", fn=calls.put("late"))])
        middle = StepSpec("middle", deps=[low], fn=calls.put("middle"))
        return [StepSpec("top", deps=[middle], fn=calls.put("top"))]

    report = runner.run(steps())
    assert sorted(calls.names) == ["late", "middle", "top"]
    pathlib.Path(report["late"].path).unlink()  # as if the run had been killed before it was made
    assert states(runner.run(steps(), dry_run=True)) == {
        "top": "up_to_date",
        "low": "up_to_date",
        "late": "will_run",
    }
    runner.run(steps())
    assert calls.names.count("late") == 2
    assert calls.names.count("middle") == 1


def test_a_step_that_grew_and_is_gone_is_not_made_again_below_a_complete_one(runner: StepRunner) -> None:
    calls = Calls()
    low = StepSpec("low", fn=calls.put("low"), grow=lambda n: [StepSpec("late", fn=calls.put("late"))])
    top = StepSpec("top", deps=[low], fn=calls.put("top"))
    report = runner.run([top])
    pathlib.Path(report["low"].path).unlink()
    assert states(runner.run([top], dry_run=True)) == {"top": "up_to_date"}


def test_what_has_grown_runs_with_the_step_that_is_named_and_can_be_named_itself(runner: StepRunner) -> None:
    calls = Calls()

    def steps() -> list[StepSpec]:
        low = StepSpec("low", fn=lambda out: 2, grow=lambda n: [StepSpec("late", fn=calls.put("late"))])
        return [low, StepSpec("other", fn=calls.put("other"))]

    report = runner.run(steps(), targets=["low"])
    assert calls.names == ["late"]
    for _ in range(2):
        pathlib.Path(report["late"].path).unlink()
        assert states(runner.run(steps(), targets=["low"], dry_run=True)) == {
            "low": "up_to_date",
            "late": "will_run",
        }
        assert states(runner.run(steps(), targets=["late"])) == {"late": "succeeded"}
    assert calls.names == ["late"] * 3


# A result that changes


def test_a_result_with_one_more_runs_that_one_and_what_gathers(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    calls = Calls()
    (tmp_path / "names.txt").write_text("a b")
    runner.run([lister(calls, tmp_path)])
    assert sorted(calls.names) == ["a", "all", "b", "list"]
    assert states(runner.run([lister(calls, tmp_path)])) == dict.fromkeys(
        ["list", "a", "b", "all"], "up_to_date"
    )
    (tmp_path / "names.txt").write_text("a b c")
    assert states(runner.run([lister(calls, tmp_path)], dry_run=True)) == {"list": "will_run"}
    runner.run([lister(calls, tmp_path)])
    assert sorted(calls.names[4:]) == ["all", "c", "list"]


def test_a_result_with_one_fewer_withdraws_that_one_though_it_was_still_to_be_made(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    calls = Calls()
    (tmp_path / "names.txt").write_text("a b c")
    report = runner.run([lister(calls, tmp_path)])
    for name in ("c", "all"):
        pathlib.Path(report[name].path).unlink()  # as if the run had been killed before
    (tmp_path / "names.txt").write_text("a b")
    del calls.names[:]
    runner.run([lister(calls, tmp_path)])
    assert sorted(calls.names) == ["all", "list"]
    assert states(runner.run([lister(calls, tmp_path)], dry_run=True)) == dict.fromkeys(
        ["list", "a", "b", "all"], "up_to_date"
    )


def test_a_step_that_is_cut_off_grows_what_it_had_grown(runner: StepRunner, tmp_path: pathlib.Path) -> None:
    calls = Calls()
    (tmp_path / "raw.txt").write_text("a b\n")

    def read(out: str) -> None:
        calls.names.append("read")
        pathlib.Path(out).write_text((tmp_path / "raw.txt").read_text().strip())

    def names(out: str, ctx: Any) -> list[str]:
        calls.names.append("list")
        return pathlib.Path(ctx.path(source)).read_text().split()

    source = StepSpec("read", fn=read, inputs=["raw.txt"])

    def steps() -> list[StepSpec]:
        grow = lambda found: [StepSpec(name, fn=calls.put(name)) for name in found]  # noqa: E731
        return [StepSpec("list", fn=names, deps=[source], grow=grow)]

    report = runner.run(steps())
    assert sorted(calls.names) == ["a", "b", "list", "read"]
    pathlib.Path(report["b"].path).unlink()
    (tmp_path / "raw.txt").write_text("a b\n\n")
    report = runner.run(steps())
    assert calls.names[4:] == ["read", "b"]
    assert report["list"].state == "unchanged"


def test_what_grew_in_a_stream_can_be_named(runner: StepRunner) -> None:
    calls = Calls()
    grow = lambda names: [StepSpec(name, fn=calls.put(name)) for name in names]  # noqa: E731
    steps = [StepSpec("look", fn=lambda out: ["a", "b"], grow=grow), StepSpec("other", fn=calls.put("other"))]
    assert runner.run(iter(steps), targets=["look"]).counts == {"succeeded": 3}
    assert runner.run(iter(steps), targets=["b"]).counts == {"up_to_date": 1}
    assert calls.names.count("other") == 0


def test_a_forced_run_makes_what_grows_again(runner: StepRunner) -> None:
    calls = Calls()

    def grow(names: list[str]) -> list[StepSpec]:
        return [StepSpec(name, fn=calls.put(name)) for name in names]

    look = StepSpec("look", fn=lambda out: ["a", "b"], grow=grow)
    for _ in range(2):
        assert runner.run([look], force=True).counts == {"succeeded": 3}
    assert sorted(calls.names) == ["a", "a", "b", "b"]


def test_a_step_that_another_run_made_grows_here_too(tmp_path: pathlib.Path) -> None:
    began, gate, calls = threading.Event(), threading.Event(), Calls()

    def slow(out: str) -> list[str]:
        began.set()
        assert gate.wait(60)
        return ["a", "b"]

    def run() -> None:
        grow = lambda names: [StepSpec(name, fn=calls.put(name)) for name in names]  # noqa: E731
        reports.append(StepRunner(workdir=tmp_path).run([StepSpec("look", fn=slow, grow=grow)]))

    reports: list[Any] = []
    runs = [threading.Thread(target=run) for _ in range(2)]
    runs[0].start()
    assert began.wait(60)
    runs[1].start()
    journals = tmp_path / ".treadle" / "runs"
    until(lambda: sum("lease_held" in one.read_text() for one in journals.glob("2*/events.jsonl")))
    gate.set()
    for one in runs:
        one.join(60)
    assert [states(report).keys() for report in reports] == [{"look", "a", "b"}] * 2
    assert sorted(calls.names) == ["a", "b"]

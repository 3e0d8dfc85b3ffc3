"""Steps that grow: alike in the first run, in the preview and after a restart, whatever changed."""

from __future__ import annotations

import itertools
import pathlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from story_folder import Folder
from story_steps import Calls, put, until

from treadle import StepError, StepRunError, StepRunner, StepSpec
from treadle.steps.grow import DEEPEST


@pytest.fixture
def runner(tmp_path: pathlib.Path) -> StepRunner:
    return StepRunner(workdir=tmp_path)


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


# What cannot be


def test_a_step_whose_value_cannot_be_kept_has_failed_where_it_is_to_grow(runner: StepRunner) -> None:
    def odd(out: str) -> object:
        pathlib.Path(out).write_text("made")
        return object()

    with pytest.raises(StepRunError) as caught:
        runner.run([StepSpec("odd", fn=odd, grow=lambda value: [])])
    assert "its value cannot be kept" in str(caught.value.exceptions[0])
    assert caught.value.report.counts == {"failed": 1}


@pytest.mark.parametrize("chain", [False, True])
def test_growth_without_an_end_stops_with_an_error_and_the_preview_says_the_same(
    runner: StepRunner, chain: bool
) -> None:
    calls = Calls()

    def level(number: int) -> StepSpec:
        step = StepSpec(f"level{number}", fn=lambda out: number, grow=lambda n: [level(n + 1)])
        return StepSpec(f"top{number}", deps=[step], fn=calls.put("top")) if chain else step

    with pytest.raises(StepRunError) as caught:
        runner.run([level(0)])
    (error,) = caught.value.exceptions
    assert isinstance(error, StepError)
    assert f"more than {DEEPEST} deep" in str(error)
    assert caught.value.report.counts == {"succeeded": (DEEPEST + 1) * (1 + chain)}
    with pytest.raises(StepError, match=f"more than {DEEPEST} deep"):
        runner.run([level(0)], dry_run=True)


def test_a_grow_that_yields_without_an_end_is_an_error(
    runner: StepRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treadle.steps.grow.MOST", 1000)

    def grow(value: object) -> Iterator[StepSpec]:
        for number in itertools.count():
            yield StepSpec("s", hash_attrs={"n": number}, fn=put("s"))

    with pytest.raises(StepRunError) as caught:
        runner.run([StepSpec("one", fn=lambda out: 1, grow=grow)])
    assert "more than 1,000 steps" in str(caught.value.exceptions[0])


def test_steps_that_grow_in_a_circle_come_to_an_end(runner: StepRunner) -> None:
    steps: list[StepSpec] = []
    steps += [StepSpec("one", fn=lambda out: 1, grow=lambda n: steps)]
    steps += [StepSpec("two", fn=lambda out: 2, grow=lambda n: steps)]
    assert runner.run([steps[0]]).counts == {"succeeded": 2}
    assert runner.run([steps[0]], dry_run=True).counts == {"up_to_date": 2}


def test_where_one_step_cannot_grow_the_others_do_and_all_is_told(runner: StepRunner) -> None:
    calls = Calls()

    def wrong(value: object) -> list[Any]:
        raise ZeroDivisionError("no growth")

    steps = [
        StepSpec("bad", fn=lambda out: 1, grow=wrong),
        StepSpec("odd", fn=lambda out: 1, grow=lambda n: [3]),
        StepSpec("good", fn=lambda out: 1, grow=lambda n: StepSpec("late", fn=calls.put("late"))),
    ]
    with pytest.raises(StepRunError) as caught:
        runner.run(steps)
    told = sorted(str(error) for error in caught.value.exceptions)
    assert len(told) == 2
    assert "ZeroDivisionError: no growth" in told[0]
    assert "[0]: a step is wanted, not 3" in told[1]
    assert calls.names == ["late"]
    with pytest.raises(StepError, match="no growth"):
        runner.run(steps, dry_run=True)


def other(out: str) -> None:
    pathlib.Path(out).write_text("other")


COLLISIONS: list[tuple[str, Callable[[], list[StepSpec]], str]] = [
    ("one identity", lambda: [StepSpec("held", fn=other)], "different code"),
    ("one path", lambda: [StepSpec("new", fn=other, override_output_path="place")], "output path"),
    (
        "one path among them",
        lambda: [StepSpec(name, fn=other, override_output_path="new") for name in ("new1", "new2")],
        "output path",
    ),
]


@pytest.mark.parametrize(
    ("grown", "told"), [one[1:] for one in COLLISIONS], ids=[one[0] for one in COLLISIONS]
)
def test_what_grows_and_collides_is_refused_alike_in_the_run_and_after_it(
    runner: StepRunner, grown: Callable[[], list[StepSpec]], told: str
) -> None:
    steps = [
        StepSpec("held", fn=put("held")),
        StepSpec("placed", fn=put("placed"), override_output_path="place"),
    ]
    steps += [StepSpec("list", fn=lambda out: 1, grow=lambda n: grown(), deps=steps)]
    with pytest.raises(StepRunError) as caught:
        runner.run(steps)
    assert told in str(caught.value.exceptions[0])
    assert caught.value.report.counts == {"succeeded": 3}
    with pytest.raises(StepError, match=told):
        runner.run(steps, dry_run=True)


def test_what_grows_is_pinned_as_any_step_is(runner: StepRunner) -> None:
    pinned = StepSpec("late", fn=put("late"), expected_identity="0" * 32)
    steps = [StepSpec("list", fn=lambda out: 1, grow=lambda n: [pinned])]
    with pytest.raises(StepRunError) as caught:
        runner.run(steps)
    assert "is pinned to" in str(caught.value.exceptions[0])
    with pytest.raises(StepError, match="is pinned to"):
        runner.run(steps, dry_run=True)


# In one plan with rules

MIXED = """
import pathlib
from treadle import StepSpec

def part(name):
    return StepSpec(f"part_{name}", fn=lambda out: pathlib.Path(out).write_text(name) and None)

def grow(names):
    return [part(name) for name in names]

look = StepSpec("look", fn=lambda out: pathlib.Path("names").read_text().split(), grow=grow, inputs=["names"])
steps = [look]
"""
FLOW = """
[[steps]]
module = "steps.py"

[[rules]]
name = "names"
input = ["raw"]
output = ["names"]
shell = "sort {input} > {output}"
"""


def rules_of(told: Iterable[dict[str, Any]], *, runs: bool) -> set[str]:
    return {task["rule"] for task in told if task["will_run"] or not runs}


def test_steps_grow_in_a_plan_of_rules_as_they_do_alone(folder: Folder) -> None:
    folder.write("steps.py", MIXED)
    folder.write("raw", "a\nb\n")
    folder.flow(FLOW)
    assert rules_of(folder.plan()["tasks"], runs=True) == {"names", "@look"}
    folder.treadle("run")
    everything = {"names", "@look", "@part_a", "@part_b"}
    for args in ((), ("look",)):
        told = folder.plan("main.oxoflow", *args)["tasks"]
        assert rules_of(told, runs=False) == everything
        assert rules_of(told, runs=True) == set()
        assert {task["verdict"] for task in told} == {"up_to_date"}
    assert "grown by @look" in folder.treadle("why", "part_a").stdout
    folder.write("raw", "b\nc\n")
    assert rules_of(folder.plan()["tasks"], runs=True) == {"names", "@look"}
    folder.treadle("run")
    told = folder.plan()["tasks"]
    assert rules_of(told, runs=False) == {"names", "@look", "@part_b", "@part_c"}
    assert rules_of(told, runs=True) == set()


def test_what_grows_stands_below_the_prefix_of_the_step_that_grew_it(folder: Folder) -> None:
    folder.write("steps.py", MIXED)
    folder.write("more.py", MIXED.replace("part_", "other_").replace('"look"', '"watch"'))
    folder.write("raw", "a\nb\n")
    more = '[[steps]]\nmodule = "more.py"\nprefix = "there"\n'
    folder.flow(FLOW.replace('module = "steps.py"\n', f'module = "steps.py"\nprefix = "here"\n\n{more}'))
    folder.treadle("run")
    for place, names in (("here", {"part_a", "part_b"}), ("there", {"other_a", "other_b"})):
        assert {one.name.rpartition("_")[0] for one in (folder / place).iterdir() if one.is_file()} == names
    assert rules_of(folder.plan()["tasks"], runs=True) == set()


def test_a_rule_may_read_what_has_grown_by_its_name(folder: Folder) -> None:
    folder.write("steps.py", MIXED)
    folder.write("raw", "a\nb\n")
    folder.flow(FLOW)
    folder.treadle("run")
    folder.flow(
        FLOW
        + """
[[rules]]
name = "use"
input = ["{step.part_a}", "{step.part_b}"]
output = ["out"]
shell = "cat {input} > {output}"
"""
    )
    folder.treadle("run")
    assert folder.read("out") == "ab"
    assert rules_of(folder.plan()["tasks"], runs=True) == set()


NAMED = """
def grow(names):
    parts = [part(name) for name in names]
    def gather(out, ctx):
        pathlib.Path(out).write_text(" ".join(pathlib.Path(ctx.path(one)).read_text() for one in parts))
    return [*parts, StepSpec("all", fn=gather, deps=parts)]
"""
READS = """
[[rules]]
name = "use"
input = ["{step.all}"]
output = ["out"]
shell = "cat {input} > {output}; cat {step.look} > /dev/null || true"

[[rules]]
name = "after"
input = ["out"]
output = ["after"]
shell = "cat {input} > {output}"
"""


def test_a_rule_reads_what_is_still_to_grow(folder: Folder) -> None:
    before, _, after = MIXED.partition("def grow(names):")
    folder.write("steps.py", before + NAMED + after.partition("\n\n")[2])
    folder.write("raw", "b\na\n")
    folder.flow(FLOW + READS)
    told = folder.plan()["tasks"]
    assert rules_of(told, runs=True) == {"names", "@look", "use", "after"}
    assert next(one["awaits"] for one in told if one["id"] == "use")[0].startswith("@look_")
    folder.treadle("run")
    assert folder.read("after") == "a b"
    assert rules_of(folder.plan()["tasks"], runs=True) == set()
    folder.write("raw", "a\nb\n")  # comes out the same: all is cut off
    assert rules_of(folder.plan()["tasks"], runs=True) >= {"names", "@look"}
    folder.treadle("run")
    assert folder.attempted() == {"names"}
    folder.write("raw", "a\nb\nc\n")
    assert rules_of(folder.plan()["tasks"], runs=True) == {"names", "@look", "use", "after"}
    folder.treadle("run")
    assert folder.read("after") == "a b c"
    assert {one.rpartition("_")[0] or one for one in folder.attempted()} == {
        "names", "@look", "@part_c", "@all", "use", "after",
    }  # fmt: skip
    assert rules_of(folder.plan()["tasks"], runs=True) == set()


def test_a_name_that_nothing_has_grown_is_an_error_when_that_is_known(folder: Folder) -> None:
    folder.write("steps.py", MIXED)
    folder.write("raw", "a\nb\n")
    folder.flow(FLOW + READS)
    assert "there is no step 'all'" in folder.treadle("run", exits=1).stderr
    assert not (folder / "out").exists()
    assert "there is no step 'all'" in folder.treadle("plan", exits=2).stderr


# In one plan with rules that find work themselves

FINDS = """
import pathlib
from treadle import StepSpec

def part(name):
    return StepSpec(f"part_{name}", fn=lambda out: pathlib.Path(out).write_text(name) and None)

def grow(names):
    parts = [part(name) for name in names]
    return [*parts, StepSpec("all", deps=parts, fn=lambda out: None, grow=lambda value: part("late"))]

low = StepSpec("low", fn=lambda out: 1)
look = StepSpec("look", deps=[low], fn=lambda out: ["a", "b"], grow=grow)
apart = StepSpec("apart", fn=lambda out: 1, isolation="process", grow=lambda value: part("apart"))
steps = [look, apart]
"""
CHECKPOINT = """
[[steps]]
module = "steps.py"

[[rules]]
name = "cut"
input = ["words"]
output = ["parts"]
checkpoint = true
checkpoint_manifest = "found.toml"
checkpoint_extends = ["values.part"]
shell = '''
mkdir {output}
split -l 1 {input} {output}/
{ echo "[reentry.values]"; echo "part = ["; (cd {output} && printf '"%s",\\n' *); echo "]"; } > found.toml
'''

[[rules]]
name = "shout"
input = ["parts/{part}"]
output = ["loud/{part}"]
shell = "cat {input} {step.low} > {output} || cat {input} > {output}"
"""
EVERYTHING = {"cut", "shout", "@look", "@apart", "@part_a", "@part_b", "@part_apart", "@all", "@part_late"}


def test_steps_grow_beside_rules_that_find_work(folder: Folder) -> None:
    folder.write("steps.py", FINDS)
    folder.write("words", "one\ntwo\n")
    folder.flow(CHECKPOINT)
    first = folder.plan()
    assert rules_of(first["tasks"], runs=True) == {"cut", "@low", "@look", "@apart"}
    assert len(first["discovered"]["growing"]) == 2
    folder.treadle("run")
    told = folder.plan()
    assert rules_of(told["tasks"], runs=True) == set()
    assert rules_of(told["tasks"], runs=False) >= EVERYTHING
    assert "nothing to do" in folder.treadle("run").stderr
    folder.write("words", "one\ntwo\nthree\n")
    assert rules_of(folder.plan()["tasks"], runs=True) == {"cut"}
    assert "2 done" in folder.treadle("run").stderr  # it and the one word more
    assert rules_of(folder.plan()["tasks"], runs=True) == set()


def test_a_step_that_cannot_grow_beside_such_rules_is_told(folder: Folder) -> None:
    folder.write("steps.py", FINDS.replace('part("apart")', "1 / 0"))
    folder.write("words", "one\n")
    folder.flow(CHECKPOINT)
    told = folder.treadle("run", "--keep-going", exits=1).stderr
    assert "grow of step apart_" in told
    assert "ZeroDivisionError" in told
    assert "1 failed" in told
    assert "grow of step apart_" in folder.treadle("plan", exits=2).stderr
    folder.write("steps.py", FINDS)
    folder.treadle("run")
    assert rules_of(folder.plan()["tasks"], runs=True) == set()

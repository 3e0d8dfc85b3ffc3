"""What changed between two runs of steps: values, code, inputs, other artifacts at a path, what is forced."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import warnings
from typing import Any

import pytest
from story_steps import Calls, put

from treadle import CycleError, StepError, StepRunError, StepRunner, StepSpec, StepWarning


def test_force_makes_what_is_asked_for_again_and_nothing_below(runner: StepRunner) -> None:
    calls = Calls()
    base = StepSpec("base", fn=calls.put("base"))
    top = StepSpec("top", fn=calls.put("top"), deps=[base])
    runner.run([top])
    for streamed in (False, True):
        steps = [top]
        report = runner.run(iter(steps) if streamed else steps, force=True)
        assert report.counts.get("succeeded") == 1
    assert calls.names == ["base", "top", "top", "top"]
    assert runner.run([top], force=True, dry_run=True)[top].reason == "forced"


def test_a_forced_step_that_fails_leaves_what_was_there(runner: StepRunner) -> None:
    fail = False

    def work(out: str) -> None:
        if fail:
            raise OSError("no")
        pathlib.Path(out).write_text("first")

    step = StepSpec("step", fn=work)
    path = pathlib.Path(runner.run([step])[step].path)
    fail = True
    with pytest.raises(StepRunError):
        runner.run([step], force=True)
    assert path.read_text() == "first"
    assert runner.run([step]).counts == {"up_to_date": 1}


def test_a_development_version_is_made_again_in_every_run_and_no_stale_file_stays(
    runner: StepRunner,
) -> None:
    names = ["a", "b"]

    def work(out: str) -> None:
        pathlib.Path(out).mkdir()
        for name in names:
            (pathlib.Path(out) / name).write_text(name)

    step = StepSpec("step", fn=work, version="dev")
    path = pathlib.Path(runner.run([step])[step].path)
    names.remove("b")
    assert runner.run([step])[step].reason == "mutable"
    assert [entry.name for entry in path.iterdir()] == ["a"]


def test_a_fixed_version_may_not_build_on_a_development_version(runner: StepRunner) -> None:
    dev = StepSpec("dev", fn=put("x"), version="v1-dev")
    with pytest.raises(StepError, match="v1-dev"):
        runner.run([StepSpec("fixed", fn=put("x"), deps=[dev])])
    assert runner.run([StepSpec("dev2", fn=put("x"), deps=[dev], version="dev")]).counts == {"succeeded": 2}


# Another identity at the path


def at(path: pathlib.Path, lr: float, **more: object) -> StepSpec:
    return StepSpec("train", fn=put(str(lr)), hash_attrs={"lr": lr}, override_output_path=path, **more)  # type: ignore[arg-type]


def test_another_step_at_the_path_refuses_the_run_and_shows_what_differs(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    calls = Calls()
    path = tmp_path / "model"
    runner.run([at(path, 3e-4)])
    with pytest.raises(StepError) as caught:
        runner.run([at(path, 1e-4), StepSpec("other", fn=calls.put("other"))])
    assert "lr: 0.0003 -> 0.0001" in str(caught.value)
    assert calls.names == []
    assert path.read_text() == "0.0003"


def test_another_step_at_the_path_can_be_served_and_that_is_said(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "model"
    runner.run([at(path, 3e-4)])
    with pytest.warns(StepWarning, match="lr: 0.0003 -> 0.0001"):
        report = runner.run([at(path, 1e-4, drift="warn")])
    assert report["train"].state == "up_to_date"
    assert report["train"].reason == "drifted"
    assert path.read_text() == "0.0003"


def test_two_steps_with_one_output_path_are_an_error(runner: StepRunner, tmp_path: pathlib.Path) -> None:
    with pytest.raises(StepError, match="model"):
        runner.run([at(tmp_path / "model", 1.0), at(tmp_path / "model", 2.0)])


def test_a_pinned_identity_that_is_another_by_now_refuses_the_run(runner: StepRunner) -> None:
    with pytest.raises(StepError, match="pinned"):
        runner.run([StepSpec("step", fn=put("x"), expected_identity="0" * 12)])


def test_a_cycle_is_an_error_that_draws_it(runner: StepRunner) -> None:
    one = StepSpec("one", fn=put("x"))
    two = StepSpec("two", fn=put("x"), deps=[one])
    object.__setattr__(one, "deps", (two,))  # it takes force to make one
    with pytest.raises(CycleError) as caught:
        runner.run([two])
    assert isinstance(caught.value, ValueError)
    assert one.name_with_hash in str(caught.value)


# Other code


def coded(text: str, policy: str = "warn") -> StepSpec:
    namespace: dict[str, object] = {}
    source = f"def work(out):\n    open(out, 'w').write({text!r})\n"
    import linecache

    name = f"<coded {text}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), namespace)
    return StepSpec("coded", fn=namespace["work"], code_policy=policy)  # type: ignore[arg-type]


def test_a_hit_on_other_code_is_told_loudly_with_the_way_to_rebuild(runner: StepRunner) -> None:
    runner.run([coded("old")])
    with pytest.warns(StepWarning, match="--force|version") as caught:
        report = runner.run([coded("new")])
    assert caught[0].filename == __file__
    assert report["coded"].reason == "code_changed"
    assert [one.code for one in report.warnings] == ["code-changed"]
    assert pathlib.Path(report["coded"].path).read_text() == "old"
    with pytest.warns(StepWarning):
        runner.run(iter([coded("new")]))
    runner.run([coded("new")], force=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pathlib.Path(runner.run([coded("new")])["coded"].path).read_text() == "new"


def test_a_hit_on_other_code_can_be_an_error_or_ignored(runner: StepRunner) -> None:
    runner.run([coded("old")])
    with pytest.raises(StepError, match="other code"):
        runner.run([coded("new", "error")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert runner.run([coded("new", "ignore")]).counts == {"up_to_date": 1}


# Inputs


EDITED = """
import pathlib, warnings
from treadle import StepRunner, StepSpec
warnings.simplefilter("ignore")
me = pathlib.Path(__file__)
def work(out):
    return "as it was"
def look(out):
    me.write_text(me.read_text().replace('"as it' + ' was"', '"edited meanwhile"'))
    return 1
grown = StepSpec("work", fn=work)
report = StepRunner().run([StepSpec("look", fn=look, grow=lambda found: [grown])])
print(grown.load(), len(report.warnings))
"""


def test_what_grew_after_its_file_was_edited_is_known_to_be_made_by_the_old_code(
    tmp_path: pathlib.Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(EDITED)
    told = [
        subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert "edited meanwhile" in script.read_text()
    assert told == ["as it was 0\n", "as it was 1\n"]


def reading(calls: Calls, tmp_path: pathlib.Path) -> StepSpec:
    """`top` builds on `middle`, which builds on `read`, which reads a file but for its second line."""

    def read(out: str) -> None:
        calls.names.append("read")
        pathlib.Path(out).write_text((tmp_path / "in.txt").read_text().splitlines()[0])

    first = StepSpec("read", fn=read, inputs=["in.txt"])
    middle = StepSpec("middle", fn=calls.put("middle"), deps=[first])
    return StepSpec("top", fn=calls.put("top"), deps=[middle])


def test_a_step_runs_again_when_its_input_changed_and_all_below_is_cut_off_by_content(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    calls = Calls()
    file = tmp_path / "in.txt"
    file.write_text("one\nnoise\n")
    top = reading(calls, tmp_path)
    assert runner.run([top]).counts == {"succeeded": 3}
    assert runner.run([top]).counts == {"up_to_date": 3}
    file.write_text("one\nother noise, of no effect\n")
    assert runner.run([top]).counts == {"succeeded": 1, "unchanged": 2}
    assert calls.names == ["read", "middle", "top", "read"]
    file.write_text("two\n")
    runner.run([top])
    assert calls.names[4:6] == ["read", "middle"]
    assert runner.run([top]).counts == {"up_to_date": 3}


def test_artifacts_below_each_prefix_are_judged_by_the_inputs_that_they_were_made_of(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls = Calls()
    text = tmp_path / "in.txt"

    def read(out: str) -> str:
        calls.put("read")(out)
        return text.read_text()

    def build(out: str, ctx: Any) -> str:
        calls.put("build")(out)
        return f"of {ctx.load(first)}"

    first = StepSpec("read", fn=read, inputs=["in.txt"])
    last = StepSpec("build", fn=build, deps=[first])

    def values() -> list[str]:
        found = []
        for prefix in (None, "near", "memory://far"):
            StepRunner(prefix=prefix).run([last])
            found.append(last.load(prefix=prefix) if prefix else last.load())
        return found

    text.write_text("one")
    assert values() == ["of one"] * 3
    assert values() == ["of one"] * 3
    assert calls.names == ["read", "build"] * 3
    text.write_text("another")
    assert values() == ["of another"] * 3
    assert calls.names == ["read", "build"] * 6


def test_an_input_that_is_not_there_refuses_the_run(runner: StepRunner, tmp_path: pathlib.Path) -> None:
    from treadle import PlanError

    with pytest.raises(PlanError, match=r"in\.txt"):
        runner.run([reading(Calls(), tmp_path)])


def test_an_input_that_is_a_pattern_is_told_to_be_none(runner: StepRunner, tmp_path: pathlib.Path) -> None:
    from treadle import PlanError

    (tmp_path / "a.csv").touch()
    with pytest.raises(PlanError, match=r"the input \*\.csv does not exist") as caught:
        runner.run([StepSpec("read", fn=put("x"), inputs=["*.csv"])])
    assert "no patterns" in caught.value.diagnostics[0].hint


def test_an_artifact_that_was_cut_short_is_made_again(runner: StepRunner) -> None:
    step = StepSpec("step", fn=put("whole"))
    path = pathlib.Path(runner.run([step])[step].path)
    path.write_text("wh")
    assert runner.run([step], dry_run=True)[step].reason == "artifact_torn"
    runner.run([step])
    assert path.read_text() == "whole"

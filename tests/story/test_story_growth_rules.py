"""Steps that grow in one plan with rules, and beside rules that find work themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from story_folder import Folder

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

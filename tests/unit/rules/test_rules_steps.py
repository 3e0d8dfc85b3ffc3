"""`[[steps]]` and `{step.NAME}`: what a workflow may say of Python steps, and where their paths may stand."""

from __future__ import annotations

import subprocess

import pytest
from msgspec.structs import replace
from rules_world import HEAD

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.plan.task import Draft
from treadle.rules.expand.expand import expand
from treadle.rules.file.read import ReadOptions, read_text
from treadle.rules.pattern.listing import PathListing
from treadle.rules.schema import StepModule, StepPath

STEPS: dict[str, StepPath] = {
    "train": "art/train_0123456789ab",
    "train_0123456789ab": "art/train_0123456789ab",
    "data/raw": "art/data/raw_1",
    "odd": "art/o d*{x}'s_1",
    "-dash": "-dash_1",
    "twice": ("twice_1", "twice_2"),
    "far": "s3://bucket/far_1",
}
MODULE = '[[steps]]\nmodule = "pipeline.py"\n'


def draft(*lines: str, steps: dict[str, StepPath] = STEPS) -> Draft:
    """The one task of a workflow with one rule."""
    text = HEAD + MODULE + '[[rules]]\nname = "r"\n' + "\n".join(lines) + "\n"
    workflow = replace(read_text(text, folder="/flow"), steps=steps)
    (found,) = expand(workflow, PathListing([])).drafts
    return found


def wrong(*lines: str) -> list[Diagnostic]:
    with pytest.raises(WorkflowError) as caught:
        draft(*lines)
    return list(caught.value.diagnostics)


def read_codes(text: str, **options: object) -> list[str]:
    with pytest.raises(WorkflowError) as caught:
        read_text(HEAD + text, options=ReadOptions(**options))  # type: ignore[arg-type]
    return [one.code for one in caught.value.diagnostics]


def test_an_input_may_be_an_artifact_or_something_in_it() -> None:
    found = draft(
        'input = ["{step.train}/model.bin", "{step.data/raw}"]', 'output = ["o"]', 'shell = "x {input} > o"'
    )
    assert found.inputs == ("art/train_0123456789ab/model.bin", "art/data/raw_1")
    assert found.command.text == "x art/train_0123456789ab/model.bin art/data/raw_1 > o"


def test_a_name_with_its_hash_names_the_same() -> None:
    assert draft('input = ["{step.train_0123456789ab}"]', 'output = ["o"]', 'shell = "x"').inputs == (
        "art/train_0123456789ab",
    )


@pytest.mark.parametrize(
    "text",
    [
        "x {step.odd}",
        'x "{step.odd}"',
        "x '{step.odd}'",
        "x {step.-dash}",
        "x {step.train}/a",
        "x={step.odd}",
    ],
)
def test_in_shell_text_a_path_is_quoted_for_its_place(text: str) -> None:
    name = text.partition("step.")[2].partition("}")[0]
    command = draft("output = ['o']", f"shell = '''printf %s\\\\n {text}'''").command.text
    printed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    assert str(STEPS[name]) in printed
    assert len(printed.splitlines()) == len(text.split(" "))


def test_double_braces_stay_text() -> None:
    assert draft("output = ['o']", "shell = '''x '{{step.train}}''''").command.text == "x '{step.train}'"


def test_what_only_a_text_names_is_an_input_too() -> None:
    lines = ('input = ["a"]', 'output = ["o"]', 'params = { model = "{step.train}" }')
    found = draft(*lines, 'shell = "x {params.model}/m {input} {step.data/raw}"')
    assert found.inputs == ("a", "art/train_0123456789ab", "art/data/raw_1")
    assert found.command.text == "x art/train_0123456789ab/m a art/data/raw_1"


def test_what_an_input_names_a_part_of_is_not_named_again() -> None:
    lines = ('input = ["{step.train}/m"]', 'output = ["o"]', 'shell = "x {step.train}/m"')
    assert draft(*lines).inputs == ("art/train_0123456789ab/m",)


def test_variables_name_artifacts() -> None:
    found = draft('output = ["o"]', 'shell = "x"', 'envvars = { M = "{step.data/raw}" }')
    assert found.command.env == (("M", "art/data/raw_1"),)
    assert found.inputs == ("art/data/raw_1",)


def test_signs_in_a_path_are_no_globs_and_no_wildcards() -> None:
    found = draft('input = ["{step.odd}/*.txt"]', 'output = ["o"]', 'shell = "x"')
    assert found.inputs == ("art/o d*{x}'s_1/*.txt",)


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ('input = ["{step.trian}"]', "unknown-step", "did you mean 'train'"),
        ('input = ["{step.twice}"]', "several-steps", "{step.twice_1}, {step.twice_2}"),
        ('input = ["{step.far}"]', "step-not-local", "s3://bucket/far_1"),
        ('shell = "x {step.trian}"', "unknown-step", "did you mean 'train'"),
        ('shell = "x {step.twice}"', "several-steps", "{step.twice_1}, {step.twice_2}"),
        ('params = { m = "{step.nothing_like_it}" }', "unknown-step", "there are: "),
        ('log = "{step.train}.log"', "not-in-path", "{step.train}"),
    ],
)
def test_a_name_that_cannot_be_filled_is_told_with_a_way_out(line: str, code: str, says: str) -> None:
    lines = [line, 'output = ["o"]'] + (['shell = "x"'] if not line.startswith("shell") else [])
    (found,) = wrong(*lines)
    assert found.code == code
    assert says in f"{found.message} {found.hint}"


def test_an_output_cannot_stand_in_an_artifact() -> None:
    assert [one.code for one in wrong('output = ["{step.train}/more"]', 'shell = "x"')] == ["not-in-path"]


def test_a_module_is_read_with_its_place() -> None:
    text = HEAD + '[config]\nwhere = "s3://b"\n' + (
        '[[steps]]\nmodule = "py/pipeline.py"\nname = "work"\nprefix = "{config.where}/x"\n'
        "[steps.params]\nn = 3\nbig = true\n"
    )  # fmt: skip
    (found,) = read_text(text).modules
    assert (found.module, found.name, found.prefix) == ("py/pipeline.py", "work", "s3://b/x")
    assert found.params == (("n", "3"), ("big", "true"))
    assert found.place.line > 1
    assert isinstance(found, StepModule)


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ('[[steps]]\nname = "x"', "missing-key"),
        ('[[steps]]\nmodule = "pipeline"', "bad-value"),
        ('[[steps]]\nmodule = "pipeline.py:x"', "bad-value"),
        ('[[steps]]\nmodule = "p.py"\nmodul = 1', "unknown-key"),
        ('[[steps]]\nmodule = "{config.nope}.py"', "unknown-config"),
        ('[[steps]]\nmodule = "p.py"\nparams = { a = [1] }', "wrong-type"),
        ('[steps]\nmodule = "p.py"', "wrong-type"),
    ],
)
def test_what_is_wrong_with_the_table_is_told(table: str, code: str) -> None:
    assert code in read_codes(table)


def test_a_workflow_of_steps_alone_is_one() -> None:
    assert read_text(HEAD + MODULE).rules == ()

"""A step: what is refused when it is made, and where that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.base.errors import StepError
from treadle.steps.remote import remote
from treadle.steps.spec import StepSpec


def refused(**options) -> dict[str, str]:
    """What is refused of a step, by the place inside it: code and message."""
    options = {"name": "s", **options}
    with pytest.raises(StepError) as caught:
        StepSpec(**options)
    told = {}
    for one in caught.value.diagnostics:
        where, what = one.message.split(": ", 2)[1:]
        told[where] = f"{one.code}: {what}"
    return told


def test_all_that_is_wrong_with_a_step_is_told_at_once_with_the_place_inside():
    told = refused(
        name="a/../b",
        hash_attrs={"lr": [1, 2, float("nan")], "deep": {"a b": {1, 2}}, 3: 1, "f": print},
        deps=[StepSpec("ok"), "no"],
        retries=-1,
        timeout="10",
        drift="maybe",
        expected_identity="xyz",
    )
    assert told["hash_attrs.lr[2]"].startswith("not-a-number: NaN")
    assert told["hash_attrs.deep['a b']"].startswith("not-json: a value of type set")
    assert told["hash_attrs"].startswith("key-not-text")
    assert told["hash_attrs.f"].startswith("not-json")
    assert told["deps[1]"].startswith("dep-not-step")
    assert {"name", "retries", "timeout", "drift", "expected_identity"} <= told.keys()


def test_an_error_points_at_the_line_that_makes_the_step():
    with pytest.raises(StepError) as caught:
        StepSpec("")
    place = caught.value.diagnostics[0].place
    assert place.file == __file__
    assert 'StepSpec("")' in Path(__file__).read_text().splitlines()[place.line - 1]


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "/a",
        "a/",
        "..",
        "a/../b",
        "a..b",
        "s3://b/a",
        "a//b",
        "./a",
        "a\0b",
        "a\nb",
        "x" * 300,
        "\ud800",
        ".treadle-artifacts",
        "a/.treadle-artifacts/b",
        None,
        3,
    ],
)
def test_names_that_cannot_be_paths_are_refused(name):
    assert "name" in refused(name=name)


@pytest.mark.parametrize(
    "name", ["a", "a/b", "a b", "ä", "a.b", "a-b_c", ".hidden", "x" * 180, "50%", "a=b,c"]
)
def test_other_names_are_fine(name):
    assert StepSpec(name).name == name


def test_values_that_hold_themselves_are_refused():
    loop: list = []
    loop.append(loop)
    assert any("too-deep" in what for what in refused(hash_attrs={"x": loop}).values())


@pytest.mark.parametrize(
    "value", [float("inf"), float("-inf"), b"x", {1}, object(), Path("x"), 1j, "\udc80", 1 << 5000]
)
def test_values_that_are_not_json_are_refused(value):
    assert "hash_attrs.x[0].y" in refused(hash_attrs={"x": [{"y": value}]})


def test_a_step_among_the_values_is_pointed_at_deps():
    with pytest.raises(StepError, match="belongs into deps"):
        StepSpec("s", hash_attrs={"x": StepSpec("d")})


async def in_time(out): ...


def in_parts(out):
    yield 1


class Method:
    def good(self, out, ctx): ...


@pytest.mark.parametrize(
    "fn",
    [
        3,
        "x",
        in_time,
        in_parts,
        lambda: 1,
        lambda out, lr: 1,
        lambda *, out: 1,
        lambda ctx: 1,
        lambda out, *, k: 1,
        remote(in_time),
        remote(lambda: 1),
    ],
)
def test_functions_that_cannot_be_called_as_steps_are_refused(fn):
    assert "fn" in refused(fn=fn)


@pytest.mark.parametrize(
    "fn",
    [
        None,
        lambda out: 1,
        lambda out, ctx: 1,
        lambda out, *, ctx=None: 1,
        lambda out, i=1: 1,
        lambda *a, **k: 1,
        print,
        Method().good,
        remote(lambda out: 1),
    ],
)
def test_functions_that_take_the_path_are_fine(fn):
    assert StepSpec("s", fn=fn).fn is fn


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"deps": StepSpec("d")}, "deps"),
        ({"deps": "d"}, "deps"),
        ({"deps": 0}, "deps"),
        ({"inputs": "a.txt"}, "inputs"),
        ({"inputs": [""]}, "inputs[0]"),
        ({"inputs": ["a", 1]}, "inputs[1]"),
        ({"inputs": ["s3://bucket/a"]}, "inputs[0]"),
        ({"hash_attrs": [1]}, "hash_attrs"),
        ({"env_vars": {"A": 1}}, "env_vars.A"),
        ({"env_vars": {"A=": "1"}}, "env_vars"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"retries": True}, "retries"),
        ({"retries": 1.5}, "retries"),
        ({"isolation": "thread"}, "isolation"),
        ({"code_policy": "loud"}, "code_policy"),
        ({"version": 2}, "version"),
        ({"resources": {"cpu": 1}}, "resources"),
        ({"override_output_path": "../x"}, "override_output_path"),
        ({"override_output_path": ""}, "override_output_path"),
        ({"override_output_path": "s3://bucket"}, "override_output_path"),
        ({"output_path_prefix": ""}, "output_path_prefix"),
        ({"output_path_prefix": 3}, "output_path_prefix"),
        ({"grow": 3}, "grow"),
    ],
)
def test_options_are_checked(options, where):
    assert where in refused(**options)


def test_durations_are_seconds_or_texts():
    assert StepSpec("s", timeout="1h30m").timeout == 5400
    assert StepSpec("s", timeout=2.5).timeout == 2.5


def test_an_argument_that_there_is_not_is_told_with_the_nearest_that_there_is():
    with pytest.raises(StepError) as caught:
        StepSpec("a", hash_attr={"lr": 1}, retries=-1)
    first, second = caught.value.diagnostics
    assert first.code == "unknown-option"
    assert first.message == "step 'a': hash_attr: there is no such argument"
    assert first.hint == "did you mean 'hash_attrs'?"
    assert first.place.file == __file__
    assert second.code == "not-a-count"

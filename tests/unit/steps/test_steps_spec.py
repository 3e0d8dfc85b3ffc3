"""A step: what names it, where its artifact stands, what travels of it."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys

import pytest

from treadle.steps.spec import StepRef, StepSpec

GOLDEN = {
    "a": "6ffcb9917795fc01c66142f36b1ee7d9",
    "tokenize": "8c7a402d08749d9832a70f9819ca7d6a",
    "corpus/clean": "e1d1f65880f7a3b861273bc52454a448",
    "train": "4db57c46c8fd87598542481d44dc0a08",
}
MAKE = """
from treadle.steps.spec import StepSpec
a = StepSpec("a")
tokenize = StepSpec("tokenize", hash_attrs={"vocab": "v1"})
values = {"lr": 3e-4, "layers": 12, "big": 2**70, "on": True, "none": None, "t": [1, 1.0, "1", {"ü": -0.0}]}
clean = StepSpec("corpus/clean", hash_attrs=values, version="2",
                 inputs=["data/b.txt", "./data//a.txt"], deps=[tokenize])
train = StepSpec("train", deps=[clean, tokenize])
made = {step.name: step.identity for step in (a, tokenize, clean, train)}
"""


def made_here() -> dict[str, str]:
    space: dict[str, dict[str, str]] = {}
    exec(MAKE, space)
    return space["made"]


def test_identities_are_what_they_have_always_been():
    assert made_here() == GOLDEN


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_identities_are_the_same_in_every_process(seed):
    text = f"{MAKE}\nimport json\nprint(json.dumps(made))"
    ran = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout) == GOLDEN


def test_the_short_hash_and_the_names_are_made_of_the_identity():
    step = StepSpec("a/b c")
    assert step.hash_id == step.identity[:12]
    assert step.name_with_hash == step.name_hash == f"a/b c_{step.hash_id}"
    assert step.task_id == f"@a%2Fb%20c_{step.hash_id}"
    assert step.name_with_hash in repr(step)
    assert len(step.identity) == 32


def test_what_bears_no_identity_changes_none():
    plain = StepSpec("s")
    for options in (
        {"fn": lambda out: None},
        {"output_path_prefix": "s3://bucket/x"},
        {"override_output_path": "here"},
        {"retries": 3, "timeout": 5, "env_vars": {"A": "b"}, "isolation": "process"},
        {"resumable": True, "writes_record": True, "drift": "warn", "code_policy": "ignore"},
        {"version": None, "hash_attrs": None, "deps": None, "inputs": None, "expected_identity": None},
    ):
        assert StepSpec("s", **options).identity == plain.identity


def test_everything_that_bears_identity_changes_it():
    dep = StepSpec("dep")
    steps = [
        StepSpec("s"),
        StepSpec("t"),
        StepSpec("s", version="1"),
        StepSpec("s", hash_attrs={"version": "1"}),
        StepSpec("s", inputs=["1"]),
        StepSpec("s", deps=[dep]),
        StepSpec("s", deps=[StepSpec("dep", version="2")]),
        *(
            StepSpec("s", hash_attrs={"x": x})
            for x in (1, 1.0, True, "1", None, [], {}, [1], "true", "null", 0.0, -0.0)
        ),
    ]
    assert len({step.identity for step in steps}) == len(steps)


def test_order_bears_no_identity_but_in_lists():
    a, b = StepSpec("a"), StepSpec("b")
    assert StepSpec("s", deps=[a, b]) == StepSpec("s", deps=[b, a, b])
    assert StepSpec("s", inputs=["x", "y"]) == StepSpec("s", inputs=["y", "./x", "x"])
    assert StepSpec("s", hash_attrs={"x": 1, "y": 2}) == StepSpec("s", hash_attrs={"y": 2, "x": 1})
    assert StepSpec("s", hash_attrs={"x": (1, 2)}) == StepSpec("s", hash_attrs={"x": [1, 2]})
    assert StepSpec("s", hash_attrs={"x": [1, 2]}) != StepSpec("s", hash_attrs={"x": [2, 1]})


def test_a_step_is_equal_and_hashes_by_its_identity():
    one, two = StepSpec("s", fn=lambda out: 1), StepSpec("s", fn=lambda out: 2)
    assert one == two
    assert len({one, two, StepSpec("t")}) == 2
    assert one != "s"


def test_a_step_cannot_be_changed():
    attrs, deps = {"list": [1, {"x": 1}], "n": 1}, [StepSpec("d")]
    step = StepSpec("s", hash_attrs=attrs, deps=deps)
    attrs["list"].append(2)
    attrs["n"] = 2
    deps.clear()
    assert step.hash_attrs == {"list": [1, {"x": 1}], "n": 1}
    assert step.deps == (StepSpec("d"),)
    for change in (
        lambda: setattr(step, "name", "t"),
        lambda: setattr(step, "other", 1),
        lambda: delattr(step, "name"),
    ):
        with pytest.raises(AttributeError, match="frozen"):
            change()
    for change in (
        lambda: step.hash_attrs.update(n=2),
        lambda: step.hash_attrs.__setitem__("n", 2),
        lambda: step.hash_attrs["list"].append(1),
        lambda: step.hash_attrs["list"][1].pop("x"),
        lambda: step.hash_attrs["list"].sort(),
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()


def test_the_values_of_a_step_are_plain_to_their_readers():
    step = StepSpec("s", hash_attrs={"list": (1, 2), "map": {"x": 1}})
    assert isinstance(step.hash_attrs, dict)
    assert isinstance(step.hash_attrs["list"], list)
    assert json.loads(json.dumps(step.hash_attrs)) == {"list": [1, 2], "map": {"x": 1}}
    for taken in (copy.deepcopy(step.hash_attrs), pickle.loads(pickle.dumps(step.hash_attrs))):
        taken["list"].append(3)
        assert type(taken) is dict
        assert taken["list"] == [1, 2, 3]


def test_subclasses_of_plain_types_become_plain():
    from enum import IntEnum, StrEnum

    class Size(IntEnum):
        BIG = 2

    class Colour(StrEnum):
        RED = "red"

    step = StepSpec("s", hash_attrs={"size": Size.BIG, "colour": Colour.RED, Colour.RED: 1})
    assert [type(one) for one in step.hash_attrs.values()] == [int, str, int]
    assert step == StepSpec("s", hash_attrs={"size": 2, "colour": "red", "red": 1})


@pytest.mark.parametrize(
    ("prefix", "joined"),
    [
        ("/data", "/data/"),
        ("/data//", "/data/"),
        ("out", "out/"),
        ("s3://b/k/", "s3://b/k/"),
        ("memory://", "memory://"),
        ("/", "/"),
    ],
)
def test_exactly_one_slash_joins_prefix_and_name(prefix, joined):
    step = StepSpec("a/b")
    assert step.path_under(prefix) == joined + step.name_with_hash
    assert StepSpec("a/b", output_path_prefix=prefix).output_path == joined + step.name_with_hash
    assert StepSpec("a/b", override_output_path="x/y/").path_under(prefix) == joined + "x/y"


@pytest.mark.parametrize("override", ["/abs/x", "s3://bucket/x", "memory://x"])
def test_an_absolute_override_stands_as_it_is(override):
    assert StepSpec("s", override_output_path=override).path_under("/data") == override


def test_the_prefix_of_the_step_beats_the_one_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREADLE_PREFIX", raising=False)
    step, own = StepSpec("s"), StepSpec("s", output_path_prefix="/own")
    assert step.output_path == f"{tmp_path}/.treadle/artifacts/{step.name_with_hash}"
    monkeypatch.setenv("TREADLE_PREFIX", "gs://bucket/a/")
    assert step.output_path == f"gs://bucket/a/{step.name_with_hash}"
    assert own.output_path == f"/own/{step.name_with_hash}"
    assert own.path_under("/other") == f"/own/{step.name_with_hash}"


def test_development_versions_are_mutable():
    mutable = [
        StepSpec("s", version=version).mutable for version in ("dev", "2-dev", "", "1", "developer", "dev-1")
    ]
    assert mutable == [True, True, False, False, False, False]


def test_a_step_bears_the_inputs_of_all_that_it_builds_on():
    source = StepSpec("source", inputs=["a.txt"])
    middle = StepSpec("middle", deps=[StepSpec("other"), source])
    top, apart = StepSpec("top", deps=[middle]), StepSpec("apart")
    assert [step.bears_inputs for step in (source, middle, top, apart)] == [True, True, True, False]


def test_a_step_travels_as_a_reference_without_function_and_deps():
    step = StepSpec("s", fn=lambda out: 1, deps=[StepSpec("d")], version="3", output_path_prefix="/p")
    other = pickle.loads(pickle.dumps(step))
    assert isinstance(other, StepRef)
    assert (other.identity, other.name, other.version) == (step.identity, "s", "3")
    assert other.output_path == step.output_path
    assert other == step
    assert hash(other) == hash(step)
    assert (other.task_id, other.name_with_hash) == (step.task_id, step.name_with_hash)
    assert pickle.loads(pickle.dumps(other)) == step
    with pytest.raises(AttributeError):
        other.name = "x"


def test_a_copy_of_a_step_is_the_step():
    step = StepSpec("s", fn=lambda out: 1)
    assert copy.copy(step) is copy.deepcopy(step) is step

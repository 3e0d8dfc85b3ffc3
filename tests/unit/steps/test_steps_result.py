"""Values of steps: what is kept, what is not, and what comes back."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import sys
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.base.errors import StepError
from treadle.steps.record import ArtifactRecord, Result
from treadle.steps.record_file import decode_record, encode_record
from treadle.steps.result import from_result, kept, returned, to_result, value_of


@dataclasses.dataclass
class Layer:
    size: int
    drop: float | None = None


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    layers: list[Layer]
    shape: tuple[int, ...] = ()


class Point(NamedTuple):
    x: int
    y: int


class Color(enum.StrEnum):
    RED = "red"


def round_trip(value: object) -> Any:
    result = to_result(value)
    assert result is not None
    assert not result.lost
    record = ArtifactRecord(identity="a" * 32, name="s", path="/s", result=result)
    return value_of(decode_record(encode_record(record), "there"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_what_json_has_comes_back_as_it_was(value: object) -> None:
    if value is not None:
        assert round_trip(value) == value
        assert json.dumps(round_trip(value)) == json.dumps(value)


def test_nothing_returned_is_nothing_kept() -> None:
    assert to_result(None) is None
    assert returned(None, name="s", made=lambda: False) is None


def test_integers_of_any_size_are_kept() -> None:
    assert round_trip([2**64, -(2**200), 0]) == [2**64, -(2**200), 0]


def test_tuples_come_back_as_lists_and_subclasses_as_what_they_are_of() -> None:
    class Score(float):
        pass

    back = round_trip({"t": (1, (2,)), "p": Point(1, 2), "c": Color.RED, "s": Score(0.5), "b": True})
    assert back == {"t": [1, [2]], "p": [1, 2], "c": "red", "s": 0.5, "b": True}
    assert [type(one) for one in back.values()] == [list, list, str, float, bool]


def test_a_dataclass_comes_back_with_those_inside_it() -> None:
    model = Model("m", [Layer(1), Layer(2, 0.5)], (3, 4))
    assert round_trip(model) == model
    result = to_result(model)
    assert result is not None
    assert result.type == f"{__name__}:Model"
    assert result.value == {
        "name": "m",
        "layers": [{"size": 1, "drop": None}, {"size": 2, "drop": 0.5}],
        "shape": [3, 4],
    }


def test_the_type_that_the_reader_names_is_built() -> None:
    result = Result({"size": 3, "drop": None})
    assert from_result(result, Layer) == Layer(3)
    assert from_result(Result([[1, 2], [3, 4]]), list[Point]) == [Point(1, 2), Point(3, 4)]
    assert from_result(to_result(Layer(3)) or Result(), object) == {"size": 3, "drop": None}


def test_a_type_that_is_not_imported_is_not_imported_for_a_record() -> None:
    assert "tabnanny" not in sys.modules
    with pytest.raises(StepError, match="not imported here"):
        from_result(Result({}, "tabnanny:NannyNag"))
    assert "tabnanny" not in sys.modules


@pytest.mark.parametrize(
    "named", ["os:system", "builtins:eval", "os:path.join", "sys:modules", "os:", ":", "x"]
)
def test_a_record_cannot_name_what_is_no_dataclass(named: str) -> None:
    with pytest.raises(StepError, match="not imported here"):
        from_result(Result("true", named))


def test_a_value_that_does_not_fit_its_type_is_said() -> None:
    with pytest.raises(StepError, match=r"step 'train': its value does not fit Layer: .*size"):
        from_result(Result({"drop": 1.5}, f"{__name__}:Layer"), name="train")
    with pytest.raises(StepError, match="does not fit"):
        from_result(Result([1]), int)


@dataclasses.dataclass
class Unresolved:
    array: nowhere.array  # type: ignore[name-defined]  # noqa: F821 (as from `if TYPE_CHECKING`)


@dataclasses.dataclass
class Picky:
    size: int

    def __post_init__(self) -> None:
        raise RuntimeError("not today")


@pytest.mark.parametrize(("kind", "told"), [(Unresolved, "NameError: .*nowhere"), (Picky, "not today")])
def test_what_goes_wrong_in_a_type_is_said_with_the_way_to_the_plain_value(kind: type, told: str) -> None:
    result = Result({"array": 1, "size": 1}, f"{__name__}:{kind.__name__}")
    with pytest.raises(StepError, match=f"does not fit {kind.__name__}: .*{told}") as caught:
        from_result(result)
    assert "type=object" in caught.value.diagnostics[0].hint
    assert from_result(result, object) == {"array": 1, "size": 1}


class Loop(list[Any]):
    pass


LOOP = Loop()
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (math.nan, "nan is no number"),
        ({"a": [0, math.inf]}, "inf at .a[1] is no number"),
        (b"bytes", "a value of type bytes is not JSON"),
        ({"a": {1, 2}}, "a value of type set at .a is not JSON"),
        ({"a": {1: 2}}, "a key at .a is not a text but of type int: 1"),
        ([object()], "a value of type object at [0] is not JSON"),
        (Layer(1, math.nan), "nan at .drop"),
        (Model("m", [Layer(1, b"")]), "a value of type bytes at .layers[0].drop"),  # type: ignore[arg-type]
        (LOOP, "deeper than 200 levels"),
        ("\ud800", "lone surrogate"),
        ({"\ud800": 1}, "lone surrogate"),
        (Layer, "a value of type type is not JSON"),
        (print, "is not JSON"),
    ],
)
def test_what_cannot_be_kept_is_told_with_its_place(value: object, told: str) -> None:
    result = to_result(value)
    assert result is not None
    assert told in result.lost
    assert (result.value, result.type) == (None, "")
    with pytest.raises(StepError) as raised:
        returned(value, name="train", made=lambda: False)
    assert told in str(raised.value)
    assert raised.value.diagnostics[0].code == "value-not-kept"
    with pytest.raises(StepError):
        kept(value, name="train")
    assert returned(value, name="train", made=lambda: True) == result
    with pytest.raises(StepError, match="was not kept"):
        from_result(result)


def test_what_is_kept_on_request_may_be_none() -> None:
    assert kept(None, name="train") == Result()
    assert from_result(Result()) is None

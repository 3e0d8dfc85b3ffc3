"""The canonical encoding of values: one text for each value, the same for equal ones."""

from __future__ import annotations

import itertools
import json
import random

from hypothesis import given
from hypothesis import strategies as st

from treadle.steps.canon import canonical, freeze
from treadle.steps.spec import StepSpec

numbers = st.integers() | st.integers(-(2**200), 2**200) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
few = st.sampled_from([0, 1, 0.0, 1.0, -0.0, True, False, None, "", "0", "1", "true", "null", "[]", "{}"])
leaves = few | numbers | texts
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def typed(value):
    """A value that is equal to another only when the types are, too; written without our encoding."""
    if isinstance(value, dict):
        return "map", frozenset((key, typed(one)) for key, one in value.items())
    if isinstance(value, list | tuple):
        return "list", tuple(typed(one) for one in value)
    if isinstance(value, float):
        return "float", value.hex()
    return type(value).__name__, value


def shuffled(value, random_: random.Random):
    if isinstance(value, dict):
        items = [(key, shuffled(one, random_)) for key, one in value.items()]
        random_.shuffle(items)
        return dict(items)
    return [shuffled(one, random_) for one in value] if isinstance(value, list) else value


def text_of(value) -> str:
    faults: list = []
    frozen = freeze(value, "x", faults)
    assert not faults
    return canonical(frozen)


@given(values, values)
def test_two_values_have_one_text_exactly_when_they_are_equal_in_type_and_value(one, other):
    assert (text_of(one) == text_of(other)) == (typed(one) == typed(other))


@given(values, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value, random_):
    assert text_of(value) == text_of(shuffled(value, random_))


@given(values)
def test_the_text_reads_back_as_the_value(value):
    assert typed(json.loads(text_of(value))) == typed(value)


@given(st.dictionaries(texts, values, max_size=3), st.dictionaries(texts, values, max_size=3))
def test_two_steps_are_equal_exactly_when_their_values_are(one, other):
    same = StepSpec("s", hash_attrs=one) == StepSpec("s", hash_attrs=other)
    assert same == (typed(one) == typed(other))


@given(st.lists(values.map(json.dumps), min_size=3, max_size=3, unique=True))
def test_what_stands_in_one_field_never_reads_as_another(parts):
    """Not even texts that look like the encoding itself."""
    seen = {
        StepSpec("s", hash_attrs={"a": one}, version=two, inputs=["x" + three.replace("/", "_")]).identity
        for one, two, three in itertools.permutations(parts)
    }
    assert len(seen) == 6

"""The line of every key is right in documents of any shape."""

from __future__ import annotations

from typing import Any

import tomli
from hypothesis import given, settings
from hypothesis import strategies as st
from toml_documents import documents

from treadle.rules.toml.lines import Spot, locate


@given(documents())
@settings(max_examples=150, deadline=None)
def test_lines_are_right_in_documents_of_any_shape(document: tuple[str, dict[tuple[Any, ...], int]]) -> None:
    text, lines = document
    spots = locate(text)
    for path, line in lines.items():
        assert spots.at(*path).line == line, (path, text)
    assert known(spots, tomli.loads(text))


def known(spot: Spot, value: object) -> bool:
    inside = spot.inside or {}
    if isinstance(value, dict):
        return set(inside) == set(value) and all(known(inside[key], value[key]) for key in value)
    if isinstance(value, list):
        return set(inside) == set(range(len(value))) and all(
            known(inside[n], one) for n, one in enumerate(value)
        )
    return not inside


@given(st.text(alphabet="ab=.[]{}\"'#\\\n ,1-é", max_size=60))
@settings(max_examples=300, deadline=None)
def test_a_text_that_is_no_toml_never_breaks_the_walk(text: str) -> None:
    lines = range(text.count("\n") + 2)
    below = [locate(text)]
    while below:
        spot = below.pop()
        assert spot.line in lines
        below += (spot.inside or {}).values()

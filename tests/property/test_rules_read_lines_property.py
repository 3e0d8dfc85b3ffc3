"""The line of every key is right in documents of any shape."""

from __future__ import annotations

from typing import Any

import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.rules.toml.lines import Spot, locate

WORDS = st.sampled_from(["a", "b", "name", "x-1", "7", "rules", "in put", 'q"', "é", "tab\t"])
BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def quoted(key: str) -> str:
    if key and set(key) <= BARE:
        return key
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'


SCALARS = st.sampled_from(
    [
        "1",
        "1e-5",
        "true",
        "1979-05-27 07:32:00",
        "''",
        '""',
        '"# [x]"',
        "'a\"b'",
        '"a\\"b"',
        '"\\\\"',
        '"""\n[t]\nk = 1\n"""',
        "'''\nit''s\n'''",
        '""" ""x"""""',
        '"""a\\\n  b"""',
    ]
)
GAPS = st.sampled_from(["", " ", "\n", " # [c] = {\n", "\n\n  "])


@st.composite
def values(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.integers(0, 3 if depth else 1))
    if kind < 2:
        return draw(SCALARS)
    count = draw(st.integers(0, 3))
    gaps = st.lists(GAPS, min_size=3, max_size=3)
    if kind == 2:
        inner = [draw(values(depth=depth - 1)) for _ in range(count)]
    else:
        keys = draw(st.lists(WORDS, min_size=count, max_size=count, unique=True))
        inner = [f"{quoted(key)} = {draw(values(depth=depth - 1))}" for key in keys]
    parts = []
    for item in inner:
        before, after, _ = draw(gaps)
        parts.append(f"{before}{item}{after}")
    sides = "[]" if kind == 2 else "{}"
    trailing = "," if inner and draw(st.booleans()) else ""
    return sides[0] + ",".join(parts) + trailing + draw(GAPS) + sides[1]


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[tuple[Any, ...], int]]:
    """A text of TOML, and the line of each of its tables and top keys as it was put together."""
    text = ""
    lines: dict[tuple[Any, ...], int] = {}
    counts: dict[str, int] = {}
    here: tuple[Any, ...] = ()
    taken: set[str] = set()
    tables: set[str] = set()
    for _ in range(draw(st.integers(0, 8))):
        text += draw(st.sampled_from(["", "\n", "# c\n", "  \n\n", "\t"]))
        line = text.count("\n") + 1
        kind = draw(st.integers(0, 4))
        name = draw(WORDS)
        if kind == 0 and f"T{name}" not in tables:
            tables.add(f"T{name}")
            here, taken = (f"T{name}",), set()
            text += f"[ {quoted('T' + name)} ] # t\n"
        elif kind == 1:
            at = counts[name] = counts.get(name, -1) + 1
            here, taken = (f"A{name}", at), set()
            text += f"[[{quoted('A' + name)}]]\n"
        elif name not in taken:
            taken.add(name)
            text += f"{quoted(name)}{draw(st.sampled_from([' = ', '=']))}{draw(values())}\n"
            lines[(*here, name)] = line
            continue
        else:
            continue
        lines[here] = line
    return text, lines


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
    locate(text)

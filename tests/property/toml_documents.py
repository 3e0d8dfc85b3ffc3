"""Texts of TOML of any shape, and the line on which each of their tables and keys stands."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

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

"""Here-documents: reading the delimiter after `<<`, and the lines up to it (POSIX 2.7.4)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

# A shell text as the lexer sees it: runs of letters and digits, single other characters, and the
# numbers of the holes between them.
Unit = str | int


class Here(Struct):
    """A here-document that has been announced: its body begins at the next line.

    `strip` leading tabs (`<<-`); `quoted`: the body is literal; `hole`: the delimiter is not fixed.
    """

    delimiter: str
    strip: bool
    quoted: bool
    hole: bool


class Body(Struct):
    """The units of a body; `risky` are positions of holes whose value could make the line the delimiter."""

    units: list[Unit]
    risky: set[int]


def announced(units: Sequence[Unit], at: int) -> tuple[Here, int]:
    """Read the delimiter, `at` behind `<<`; also returns where to go on."""
    strip = units[at : at + 1] == ["-"]
    at += strip
    while at < len(units) and units[at] in (" ", "\t"):
        at += 1
    word, quote, quoted, hole = "", "", False, False
    while at < len(units):
        unit = units[at]
        if isinstance(unit, int):
            hole = True
        elif quote:
            word, quote = (word, "") if unit == quote else (word + unit, quote)
        elif unit in ("'", '"'):
            quote, quoted = unit, True
        elif unit == "\\":
            at, quoted = at + 1, True
            word += str(units[at]) if at < len(units) else ""
        elif unit in " \t\n;&|<>()":
            break
        else:
            word += unit
        at += 1
    return Here(word, strip, quoted, hole), at


def body(units: Sequence[Unit], at: int, here: Here) -> tuple[Body, int]:
    """Read the lines up to the delimiter, `at` the first of them; also returns what comes behind."""
    found = Body([], set())
    joined = False
    while at < len(units):
        end = at
        while end < len(units) and units[end] != "\n":
            end += 1
        line = list(units[at:end])
        while here.strip and line and line[0] == "\t":
            del line[0]
        at = end + 1
        holes = [n for n, unit in enumerate(line) if isinstance(unit, int)]
        if not holes and not joined and "".join(map(str, line)) == here.delimiter:
            break
        if holes and _could_be(line, holes, here.delimiter):
            found.risky.update(len(found.units) + n for n in holes)
        found.units += [*line, "\n"]
        # A backslash joins lines before the delimiter is looked for, unless the body is literal.
        joined = not here.quoted and _ends_with_backslash(line)
    return found, min(at, len(units))


def _could_be(line: Sequence[Unit], holes: Sequence[int], delimiter: str) -> bool:
    before = "".join(str(unit) for unit in line[: holes[0]])
    after = "".join(str(unit) for unit in line[holes[-1] + 1 :])
    return delimiter.startswith(before) and delimiter.endswith(after)


def _ends_with_backslash(line: Sequence[Unit]) -> bool:
    count = 0
    for unit in reversed(line):
        if unit != "\\":
            break
        count += 1
    return count % 2 == 1

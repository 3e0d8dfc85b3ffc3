"""Where each table, key and list item of a TOML text stands: a lexical pass beside the parser.

The parser gives values without places. This pass walks over a text that the parser has accepted, so it
may assume that the text is well formed; should the two ever disagree it gives fewer places, no error.
"""

from __future__ import annotations

import re

from msgspec import Struct

_SKIP = re.compile(r"(?:[ \t]*+(?:#[^\n]*+)?+\n)*+[ \t]*+")
_SKIP_INSIDE = re.compile(r"(?:[ \t\n]++|#[^\n]*+)*+")
_BASIC = r'"(?:[^"\\\n]++|\\.)*+"'
_LITERAL = r"'[^'\n]*+'"
SHORT_TEXTS = rf"{_BASIC}|{_LITERAL}"
LONG_BASIC = r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}'
LONG_LITERAL = r"'''(?:[^']++|'(?!''))*+'{3,5}"
_BARE = r"[A-Za-z0-9_-]++"
# The common statement: a bare key and a value that ends on its line.
_PLAIN = re.compile(rf"({_BARE})[ \t]*+=[ \t]*+({_BASIC}(?!\")|{_LITERAL}(?!')|[^\s\"'\[{{#][^\n#]*+)")
_KEY_PART = re.compile(rf"[ \t]*+({_BARE}|{_BASIC}|{_LITERAL})[ \t]*+(\.?)")
_EQUALS = re.compile(r"[ \t]*+=[ \t]*+")
_LONG_BASIC = re.compile(LONG_BASIC, re.DOTALL)
_LONG_LITERAL = re.compile(LONG_LITERAL)
_SHORT = re.compile(rf"{SHORT_TEXTS}|[^\s,\[\]{{}}#]++(?: [0-9][^\s,\[\]{{}}#]*+)?+")


class Spot(Struct):
    """A table, key or item: its line (from 1), its value's text as [start:end], and what is inside.

    `header`: a table that a line in brackets opened, so that all keys after that line are its own.
    """

    line: int = 0
    start: int = 0
    end: int = 0
    header: bool = False
    inside: dict[str | int, Spot] | None = None

    def at(self, *path: str | int) -> Spot:
        """The spot under `path`, or the nearest one above it that is known."""
        spot = self
        for part in path:
            if spot.inside is None or part not in spot.inside:
                return spot
            spot = spot.inside[part]
        return spot

    def put(self, part: str | int, line: int) -> Spot:
        """The spot of `part` in here, made when it is new."""
        if self.inside is None:
            self.inside = {}
        spot = self.inside.get(part)
        if spot is None:
            spot = self.inside[part] = Spot(line)
        return spot


def locate(text: str) -> Spot:
    """The root of all spots of a text that TOML's parser accepts, with `\\n` line ends."""
    return _Pass(text).all()


class _Pass:
    """One walk over the text; `pos` and `line` move together."""

    __slots__ = ("counted", "line", "lists", "pos", "root", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.line = 1
        self.counted = 0
        self.root = Spot(1)
        self.lists: set[int] = set()  # ids of spots that are arrays of tables

    def all(self) -> Spot:
        table = self.root
        text, size = self.text, len(self.text)
        while True:
            self._skip(_SKIP)
            if self.pos >= size:
                return self.root
            found = _PLAIN.match(text, self.pos)
            if found is not None:
                spot = table.put(found[1], self.line_here())
                spot.start, spot.end = found.span(2)
                self.pos = found.end()
            elif text[self.pos] == "[":
                table = self._header()
            elif not self._statement(table):
                return self.root
            self._skip(_SKIP)

    def line_here(self) -> int:
        """The line of `pos`, counted on from the last time it was asked for."""
        self.line += self.text.count("\n", self.counted, self.pos)
        self.counted = self.pos
        return self.line

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.pos)
        if found is not None:
            self.pos = found.end()

    def _header(self) -> Spot:
        line = self.line_here()
        double = self.text.startswith("[[", self.pos)
        self.pos += 2 if double else 1
        *above, last = self._key() or ["?"]
        spot = self.root
        for part in above:
            spot = self._newest(spot.put(part, line))
        if double:
            array = spot.put(last, line)
            self.lists.add(id(array))
            spot = array.put(len(array.inside or ()), line)
        else:
            spot = self._newest(spot.put(last, line))
            spot.line = line
        spot.header = True
        while self.text.startswith("]", self.pos):
            self.pos += 1
        return spot

    def _newest(self, spot: Spot) -> Spot:
        """The last table of an array of tables; any other spot as it is."""
        if id(spot) in self.lists and spot.inside:
            return spot.inside[len(spot.inside) - 1]
        return spot

    def _key(self) -> list[str]:
        parts = []
        while found := _KEY_PART.match(self.text, self.pos):
            self.pos = found.end()
            parts.append(_unquoted(found[1]))
            if not found[2]:
                break
        return parts

    def _statement(self, table: Spot) -> bool:
        """Take one `key = value` in `table`, with all that stands inside the value."""
        spot = self._assigned(table)
        if spot is None:
            return False
        # What is open: (spot of a list or inline table, next index or -1 for a table), innermost last.
        opened: list[tuple[Spot, int]] = []
        if not self._value(spot, opened):
            return False
        while opened:
            self._skip(_SKIP_INSIDE)
            sign = self.text[self.pos : self.pos + 1]
            around, index = opened[-1]
            if sign in ("]", "}"):
                self.pos += 1
                around.end = self.pos
                opened.pop()
            elif sign == ",":
                self.pos += 1
            elif not self._inside(around, index, opened):
                return False
        return True

    def _inside(self, around: Spot, index: int, opened: list[tuple[Spot, int]]) -> bool:
        if index < 0:
            spot = self._assigned(around)
            return spot is not None and self._value(spot, opened)
        opened[-1] = (around, index + 1)
        return self._value(around.put(index, self.line_here()), opened)

    def _assigned(self, table: Spot) -> Spot | None:
        """The spot of the key that stands here, with the `=` after it taken."""
        line = self.line_here()
        parts = self._key()
        found = _EQUALS.match(self.text, self.pos)
        if not parts or found is None:
            return None
        self.pos = found.end()
        spot = table
        for part in parts:
            spot = spot.put(part, line)
        return spot

    def _value(self, spot: Spot, opened: list[tuple[Spot, int]]) -> bool:
        text = self.text
        spot.start = self.pos
        sign = text[self.pos : self.pos + 1]
        if sign in ("[", "{"):
            opened.append((spot, 0 if sign == "[" else -1))
            self.pos += 1
            return True
        if text.startswith('"""', self.pos):
            found = _LONG_BASIC.match(text, self.pos)
        elif text.startswith("'''", self.pos):
            found = _LONG_LITERAL.match(text, self.pos)
        else:
            found = _SHORT.match(text, self.pos)
        if found is None:
            return False
        self.pos = spot.end = found.end()
        return True


def _unquoted(part: str) -> str:
    if part[0] == "'":
        return part[1:-1]
    if part[0] != '"':
        return part
    if "\\" not in part:
        return part[1:-1]
    import tomli

    try:
        return str(tomli.loads(f"k = {part}")["k"])
    except ValueError:  # the text is no TOML after all
        return part

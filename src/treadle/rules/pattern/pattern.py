"""Path patterns: text with wildcards and globs, parsed once per rule and filled once per task.

    data/{sample}/reads_*.fq  ->  Text(data/) Wild(sample) Text(/reads_) Star Text(.fq)

How the text is read stands in `pattern_text`, how a path is matched in `matching`, and whether two
patterns can meet in `language`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct

from treadle.base.place import Place
from treadle.rules.pattern.constraint import Constraint

Row = tuple[str, ...]

_NOWHERE = Place()


class Text(Struct, frozen=True, gc=False):
    """Text that stands for itself."""

    text: str


class Wild(Struct, frozen=True):
    """A wildcard: one character or more, none of them `/` unless its constraint matches that."""

    name: str
    constraint: Constraint | None = None

    @property
    def crosses(self) -> bool:
        """Whether its value may hold a `/`."""
        return self.constraint is not None and self.constraint.crosses


class Star(Struct, frozen=True, gc=False):
    """`*`: any characters but `/`, also none."""


class One(Struct, frozen=True, gc=False):
    """`?`: one character that is no `/`."""


class OneOf(Struct, frozen=True):
    """`[abc]`, `[!a-z]`: one character of a set."""

    text: str
    regex: re.Pattern[str]


class Deep(Struct, frozen=True, gc=False):
    """`**/`: any number of folders, also none."""


Part = Text | Wild | Star | One | OneOf | Deep
Parts = tuple[Part, ...]


class Pattern(Struct, frozen=True):
    """A path with holes, in its one spelling.

    `text` as the author wrote it, with config filled in; `names` its wildcards as they appear, each once.
    `segments` are the parts between slashes; `deep`: the last of them may reach over slashes.
    """

    text: str
    parts: Parts
    names: tuple[str, ...] = ()
    glob: bool = False
    segments: tuple[Parts, ...] = ()
    deep: bool = False
    place: Place = Place()

    @classmethod
    def of(cls, text: str, parts: Parts, place: Place = _NOWHERE) -> Pattern:
        """The pattern of these parts, which are spelled in the one way already."""
        names = dict.fromkeys(part.name for part in parts if isinstance(part, Wild))
        glob = any(isinstance(part, Star | One | OneOf | Deep) for part in parts)
        deep = any(map(_reaches, parts))
        return cls(text, parts, tuple(names), glob, _segments(parts), deep, place)

    @property
    def alone(self) -> str:
        """The wildcard that is the whole pattern, or an empty text."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only.name if isinstance(only, Wild) else ""

    @property
    def spelled(self) -> str:
        """The pattern as text, holes and all."""
        return "".join(map(spell, self.parts))

    def fill(self, values: Mapping[str, str]) -> str:
        """The path for these values; a glob stays as it is written."""
        return "".join(values[part.name] if isinstance(part, Wild) else spell(part) for part in self.parts)

    def bind(self, known: Mapping[str, str]) -> Pattern:
        """The pattern with these wildcards filled in; their values are no globs."""
        parts = [
            Text(known[part.name]) if isinstance(part, Wild) and part.name in known else part
            for part in self.parts
        ]
        return Pattern.of(self.text, tuple(parts), self.place)

    def stem(self, known: Mapping[str, str]) -> str:
        """The folder that all matches lie in, as far as it is known (empty: the work folder)."""
        texts: list[str] = []
        for segment in self.segments[:-1]:
            pieces = [part.text if isinstance(part, Text) else _value(part, known) for part in segment]
            if None in pieces:
                break
            texts.append("".join(piece or "" for piece in pieces))
        return "/".join(texts)

    def filler(self, columns: Sequence[str]) -> Callable[[Row], str]:
        """A function from a row with these columns to the path: `fill`, made ready for many rows."""
        places = [columns.index(part.name) for part in self.parts if isinstance(part, Wild)]
        if not places:
            whole = self.spelled
            return lambda row: whole
        if len(self.parts) == 1:
            return itemgetter(places[0])
        mould = "".join(
            "%s" if isinstance(part, Wild) else spell(part).replace("%", "%%") for part in self.parts
        )
        if len(places) == 1:
            place = places[0]
            return lambda row: mould % row[place]
        pick = itemgetter(*places)
        return lambda row: mould % pick(row)


def _value(part: Part, known: Mapping[str, str]) -> str | None:
    return known.get(part.name) if isinstance(part, Wild) else None


def spell(part: Part) -> str:
    """A part as its author would write it."""
    match part:
        case Text(text) | OneOf(text):
            return text
        case Wild(name):
            return f"{{{name}}}"
        case Star():
            return "*"
        case One():
            return "?"
        case Deep():
            return "**/"


def _reaches(part: Part) -> bool:
    """Whether a part may reach over a `/`: `**`, or a wildcard whose constraint allows it."""
    return isinstance(part, Deep) or (isinstance(part, Wild) and part.crosses)


def _segments(parts: Parts) -> tuple[Parts, ...]:
    """The parts between slashes; from the first that may reach over one, the rest is one segment."""
    segments: list[Parts] = []
    now: list[Part] = []
    for at, part in enumerate(parts):
        if _reaches(part):
            return (*segments, (*now, *parts[at:]))
        if not isinstance(part, Text):
            now.append(part)
            continue
        first, *others = part.text.split("/")
        for piece in others:
            segments.append((*now, Text(first)) if first else tuple(now))
            now, first = [], piece
        if first:
            now.append(Text(first))
    return (*segments, tuple(now))

"""Matching: in which ways a text is a pattern, and which names of a folder are one segment of it.

Rules of the shell hold for hidden files: what begins with a dot is matched by a dot that is written, or by
a value that is known beforehand, never by a wildcard or a glob.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from treadle.rules.pattern.pattern import Deep, One, OneOf, Part, Parts, Star, Text, Wild

Values = Mapping[str, str]


def ways(parts: Parts, text: str, known: Values, most: int = 2) -> list[Values]:
    """The different values of the wildcards with which `parts` are `text`, at most `most` of them.

    `known` values are held fast (and are in the answer); the same wildcard twice takes the same text.
    """
    found: list[Values] = []
    _follow(parts, 0, text, 0, known, found, most)
    return found


class Names:
    """The names in one folder, sorted, and quick ways to those with a certain beginning or end."""

    __slots__ = ("_backwards", "sorted")

    def __init__(self, names: Iterable[str]) -> None:
        self.sorted = sorted(names)
        self._backwards: list[str] | None = None

    def between(self, before: str, after: str) -> list[str]:
        """The names that begin with `before` and end with `after`, sorted; the two may overlap."""
        if before:
            names = _beginning(self.sorted, before)
            return [name for name in names if name.endswith(after)] if after else names
        if after:
            if self._backwards is None:
                self._backwards = sorted(name[::-1] for name in self.sorted)
            return sorted(name[::-1] for name in _beginning(self._backwards, after[::-1]))
        return self.sorted


def _beginning(names: list[str], text: str) -> list[str]:
    start = bisect_left(names, text)
    return names[start : bisect_left(names, text + "\U0010ffff", start)]


def matching(parts: Parts, names: Names, known: Values, most: int = 2) -> Iterator[tuple[str, Values]]:
    """The names that are `parts`, sorted, with the values: a name once for each way, `most` at most."""
    before, middle, after = divided(parts, known)
    candidates = names.between(before, after)
    if len(middle) == 1:
        only, shortest = middle[0], len(before) + len(after)
        if isinstance(only, Wild):
            yield from _one_wildcard(only, candidates, before, after, known)
            return
        if isinstance(only, Star):
            yield from (
                (name, known) for name in candidates if len(name) >= shortest and (before or name[0] != ".")
            )
            return
    inside = max((_fixed(part, known) or "" for part in middle), key=len, default="")
    for name in candidates:
        if inside in name:
            for values in ways(parts, name, known, most):
                yield name, values


def divided(parts: Parts, known: Values) -> tuple[str, Parts, str]:
    """The known text at the beginning, the parts from the first to the last open one, the known text behind.

    Nothing in the middle: all of it is known, and stands in the first text.
    """
    start, end, before, after = 0, len(parts), "", ""
    while start < end and (fixed := _fixed(parts[start], known)) is not None:
        before, start = before + fixed, start + 1
    while end > start and (fixed := _fixed(parts[end - 1], known)) is not None:
        after, end = fixed + after, end - 1
    return before, parts[start:end], after


def literal(parts: Parts, known: Values) -> str | None:
    """The text of `parts` when nothing in them is open, else None."""
    before, middle, _ = divided(parts, known)
    return None if middle else before


def _one_wildcard(
    wild: Wild, names: Iterable[str], before: str, after: str, known: Values
) -> Iterator[tuple[str, Values]]:
    start, cut, shortest = len(before), len(after), len(before) + len(after)
    for name in names:
        value = name[start : len(name) - cut]
        if len(name) <= shortest or (not start and value[0] == "."):
            continue
        if wild.constraint is None or wild.constraint.fits(value):
            yield name, {**known, wild.name: value}


def _fixed(part: Part, known: Values) -> str | None:
    if isinstance(part, Text):
        return part.text
    return known.get(part.name) if isinstance(part, Wild) else None


def _follow(
    parts: Parts, at: int, text: str, here: int, known: Values, found: list[Values], most: int
) -> None:
    """Add to `found` the ways in which `parts[at:]` are `text[here:]`."""
    while at < len(parts):
        part = parts[at]
        fixed = _fixed(part, known)
        if fixed is None:
            break
        if not text.startswith(fixed, here):
            return
        here, at = here + len(fixed), at + 1
    else:
        if here == len(text) and known not in found:
            found.append(known)
        return
    for end in _stops(parts, at, text, here):
        values = known
        if isinstance(part, Wild):
            value = text[here:end]
            if (part.constraint is not None and not part.constraint.fits(value)) or "/." in value:
                continue
            values = {**known, part.name: value}
        _follow(parts, at + 1, text, end, values, found, most)
        if len(found) >= most:
            return


def _stops(parts: Parts, at: int, text: str, here: int) -> Iterable[int]:
    """Where the open part `parts[at]`, which begins at `here`, may end."""
    part, length = parts[at], len(text)
    hidden = here < length and text[here] == "." and (here == 0 or text[here - 1] == "/")
    if isinstance(part, Deep):
        return _folder_stops(text, here)
    if hidden:
        return ()
    slash = text.find("/", here)
    reach = length if slash < 0 or (isinstance(part, Wild) and part.crosses) else slash
    match part:
        case Star():
            return _runs(parts, at, text, here, reach)
        case Wild():
            return _runs(parts, at, text, here + 1, reach)
        case One():
            return (here + 1,) if here < reach else ()
        case OneOf():
            return (here + 1,) if here < reach and part.regex.match(text[here]) else ()
        case Text():
            return ()  # it is never open
        case _:
            assert_never(part)


def _runs(parts: Parts, at: int, text: str, first: int, reach: int) -> Iterable[int]:
    """The ends from `first` to `reach` behind which the next part can go on."""
    if first > reach:
        return ()
    if at + 1 == len(parts):
        return (reach,) if reach == len(text) else ()
    follower = parts[at + 1]
    if not isinstance(follower, Text):
        return range(first, reach + 1)
    return _finds(text, follower.text, first, reach)


def _finds(text: str, wanted: str, first: int, reach: int) -> Iterator[int]:
    end = text.find(wanted, first)
    while 0 <= end <= reach:
        yield end
        end = text.find(wanted, end + 1)


def _folder_stops(text: str, here: int) -> Iterator[int]:
    """`here` itself, and behind each folder below that is not hidden."""
    yield here
    while text[here : here + 1] != "." and (slash := text.find("/", here)) >= 0:
        here = slash + 1
        yield here

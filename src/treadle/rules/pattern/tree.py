"""Walking down folders after a pattern: the search that every listing shares.

What Treadle keeps for itself (`.treadle`) and what it set aside (`.failed`) is never found.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from treadle.base.layout import STATE
from treadle.rules.pattern.matching import Names, Values, literal, matching, ways
from treadle.rules.pattern.pattern import Parts, Pattern

# A path that matched, and the values of the pattern's names in their order.
Match = tuple[str, tuple[str, ...]]

_ASIDE = re.compile(r"\.failed(?:\.[0-9]+)?\Z")
_MOST_WAYS = 10_000  # to split the name of a folder: what stands behind it may decide which is right
NOTHING: Values = {}


class Entries:
    """What one folder holds: all names, and those of folders (links followed; `real`: not followed)."""

    __slots__ = ("folders", "names", "real")

    def __init__(self, names: Iterable[str], folders: Iterable[str], real: Iterable[str]) -> None:
        self.names = Names(names)
        self.folders = Names(folders)
        self.real = sorted(real)


class Tree(ABC):
    """The search that all listings share: segment by segment down, reading only folders that it must."""

    def match(self, pattern: Pattern, known: Values = NOTHING) -> list[Match]:
        """See `Listing.match`."""
        *upper, last = pattern.segments
        places: list[tuple[str, Values]] = [("", known)]
        if upper and not upper[0]:
            places, upper = [("/", known)], upper[1:]
        for segment in upper:
            places = [down for place in places for down in self._down(segment, *place)]
        search = self._anywhere if pattern.deep else self._at_end
        return sorted(
            {
                (path, tuple([values[name] for name in pattern.names]))
                for place in places
                for path, values in search(last, *place)
            }
        )

    @abstractmethod
    def exists(self, path: str) -> bool:
        """See `Listing.exists`."""

    @abstractmethod
    def entries(self, folder: str) -> Entries:
        """What stands in `folder` (empty text: the work folder)."""

    def _down(self, segment: Parts, folder: str, known: Values) -> Iterator[tuple[str, Values]]:
        text = literal(segment, known)
        if text is not None:
            if text != STATE:
                yield join(folder, text), known
            return
        for name, values in matching(segment, self.entries(folder).folders, known, _MOST_WAYS):
            yield join(folder, name), values

    def _at_end(self, segment: Parts, folder: str, known: Values) -> Iterator[tuple[str, Values]]:
        text = literal(segment, known)
        if text is None:
            for name, values in matching(segment, self.entries(folder).names, known):
                yield join(folder, name), values
        elif not _hidden_from_all(text) and self.exists(join(folder, text)):
            yield join(folder, text), known

    def _anywhere(self, rest: Parts, root: str, known: Values) -> Iterator[tuple[str, Values]]:
        """Among all paths below `root`; links to folders are not followed down, as in the shell."""
        into_hidden = any("." in text for text in (literal((part,), known) for part in rest) if text)
        pending = [""]
        while pending:
            folder = pending.pop()
            entries = self.entries(join(root, folder) if folder else root)
            for name in entries.names.sorted:
                path = join(folder, name)
                for values in ways(rest, path, known):
                    yield join(root, path), values
            pending += [join(folder, name) for name in entries.real if name[0] != "." or into_hidden]


def seen(name: str) -> bool:
    """Whether a name may be found at all."""
    return name != STATE and not (".failed" in name and _ASIDE.search(name))


def _hidden_from_all(path: str) -> bool:
    """Whether the last part of a path that is literal to its end is ours, or was set aside."""
    return not seen(path) or path.startswith(STATE + "/")


def join(folder: str, name: str) -> str:
    """A path from a folder (empty: the work folder) and what stands in it."""
    if not folder or not name:
        return folder or name
    return folder + name if folder == "/" else f"{folder}/{name}"

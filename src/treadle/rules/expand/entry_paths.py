"""The paths of one input entry for the rows of a task."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from treadle.plan.paths import normal
from treadle.rules.expand.entries import Entry
from treadle.rules.expand.finder import Finder
from treadle.rules.expand.join import picker
from treadle.rules.expand.rows import Paths
from treadle.rules.pattern.pattern import Row


class EntryPaths:
    """Fills one entry; what it looks up, it looks up once for each set of values.

    `shared` counts files that a glob found for more than one set of values: `{sample}*` of S1 finds S10's.
    """

    def __init__(self, entry: Entry, columns: Sequence[str], found: Paths | None, finder: Finder) -> None:
        self.entry = entry
        self._finder = finder
        self._found: Paths = found if found is not None else {}
        self._combos = entry.combos
        names = [*entry.variables, *("" if name in entry.variables else name for name in columns)]
        self._fill = entry.pattern.filler(names)
        self._values = picker(names, entry.pattern.names)
        self._constant = not entry.names
        self._odd = bool(entry.pattern.alone) or bool(entry.variables)
        self._memory: tuple[str, ...] | None = None
        self.owners: dict[str, Row] = {}
        self.shared: tuple[str, Row, Row] | None = None

    @property
    def may_be_empty(self) -> bool:
        """Whether nothing need be found: a selection narrows it, or tasks that are to come may make it."""
        return self.entry.narrowed or self.entry.pattern in self._finder.awaited

    def of(self, rows: Sequence[Row]) -> tuple[str, ...]:
        """The paths for these rows, in their order, each once."""
        if self._constant:
            if self._memory is None:
                self._memory = self._all(rows[:1])
            return self._memory
        if len(rows) == 1 and len(self._combos) == 1 and not self.entry.searches:
            path = self._fill(self._combos[0] + rows[0])
            return (normal(path),) if self._odd else (path,)
        return self._all(rows)

    def _all(self, rows: Sequence[Row]) -> tuple[str, ...]:
        wide = [combo + row for row in rows for combo in self._combos]
        if not self.entry.searches:
            paths = dict.fromkeys(map(self._fill, wide))
            return tuple(dict.fromkeys(map(normal, paths))) if self._odd else tuple(paths)
        keys = dict.fromkeys(map(self._values, wide))
        return tuple(dict.fromkeys(path for key in keys for path in self._look_up(key)))

    def _look_up(self, values: Row) -> tuple[str, ...]:
        """What a glob finds; where it finds nothing it stands for itself, as in the shell, unless tasks that
        are to come may make what it looks for."""
        known = self._found.get(values)
        if known is not None:
            return known
        entry, finder = self.entry, self._finder
        look = partial(finder.find_in, entry.folder) if entry.folder else finder.find
        named = dict(zip(entry.pattern.names, values))
        if entry.folder and entry.folder.alone:  # a column of paths: any spelling may stand there
            named[entry.folder.alone] = normal(named[entry.folder.alone])
        paths = tuple(path for path, _ in look(entry.pattern, named).matches)
        self._claim(paths, values)
        if not paths and entry.pattern not in finder.awaited:
            paths = (entry.pattern.fill(named),)
        self._found[values] = paths
        return self._found[values]

    def _claim(self, paths: Sequence[str], values: Row) -> None:
        """Remember for whom a file was found, to notice one that is found for two."""
        if not self.entry.names:
            return
        for path in paths:
            owner = self.owners.setdefault(path, values)
            if owner != values and self.shared is None:
                self.shared = (path, owner, values)

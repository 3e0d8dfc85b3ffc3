"""Plans on top of each other: what was there before some checkpoint tasks found more, and what comes by that.

A value exists only for tasks that are no ancestors of the checkpoint task that found it. So those stay as
they were before, and all others are as they come out with everything that is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.names import task_id
from treadle.plan.discovered import Found
from treadle.plan.task import Draft
from treadle.rules.expand.found import rows_of

Births = dict[str, tuple[str, ...]]


class Stratum(Struct, frozen=True):
    """Drafts by the id of their task; `births` has, by id, the checkpoint tasks that found its values, and
    `kept` are those on which some checkpoint task builds that has ended: they stay as they are."""

    drafts: dict[str, Draft]
    births: Births
    kept: frozenset[str] = frozenset()


def ground(drafts: Iterable[Draft]) -> Stratum:
    """The drafts as they are before anything was found."""
    return Stratum({_id(draft): draft for draft in drafts}, {})


def on_top(
    below: Stratum, above: Collection[str], drafts: Iterable[Draft], found: Sequence[Found]
) -> Stratum:
    """The drafts that come with all that is known, `found` last; `above` are the ids of the tasks on which
    those build that found it, and of themselves."""
    kept = below.kept.union(above)
    births, finders = dict(below.births), _Finders(found)
    joined: dict[str, Draft] = {}
    for draft in drafts:
        task = _id(draft)
        before = below.drafts.get(task)
        if before is None and (finder := finders.of(draft)):
            births[task] = (finder,)
        if before is not None and task in kept:
            joined[task] = replace(before, awaits=(), born=births.get(task, ()))
        elif task in births:
            joined[task] = replace(draft, born=tuple(sorted({*draft.born, *births[task]})))
        else:
            joined[task] = draft
    return Stratum(joined, births, kept)


def _id(draft: Draft) -> str:
    return task_id(draft.rule, draft.wildcards)


class _Finders:
    """Who found the values of a task: of several, the first by its id."""

    def __init__(self, found: Sequence[Found]) -> None:
        self._found = sorted(found, key=lambda one: one.task)
        self._rows: dict[tuple[str, ...], list[tuple[Mapping[str, str | None], str]]] = {}
        for one in self._found:
            for row in rows_of(one):
                columns = tuple(sorted(name for name, value in row.items() if value is not None))
                self._rows.setdefault(columns, []).append((row, one.task))
        self._own = {name for one in found for name, _ in one.wildcards}
        self._index: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[tuple[str | None, ...], str]] = {}

    def of(self, draft: Draft) -> str:
        """The checkpoint task; where the values do not tell, the first of all."""
        values = dict(draft.wildcards)
        best = ""
        for columns, rows in self._rows.items():
            names = tuple(name for name in columns if name in values)
            if self._own.issuperset(names):
                continue
            index = self._index.get((columns, names))
            if index is None:
                index = self._index[columns, names] = {}
                for row, task in rows:
                    index.setdefault(tuple([row[name] for name in names]), task)
            finder = index.get(tuple([values[name] for name in names]), "")
            best = min(best, finder) if best and finder else best or finder
        return best or next((one.task for one in self._found if one.values.size), "")

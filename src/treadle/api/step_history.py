"""What stands beside a step: artifacts of the same name from before, and how they differ from it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from treadle.api.pipe import View
from treadle.base.errors import WorldError
from treadle.decide.drift import FieldChange, field_changes
from treadle.plan.task import Call
from treadle.steps.book import Entry
from treadle.steps.paths import is_url
from treadle.steps.record import ArtifactRecord, Dep
from treadle.steps.stores import store_for

_LOOKED_AT = 10_000  # records that are read for one answer


class Older(Struct, frozen=True):
    """The nearest artifact from before: with the fewest changes, the latest of these.

    `changes` are those of its own fields, `deps` those of what it builds on. `ended` in seconds since the
    epoch.
    """

    step: str
    path: str
    changes: tuple[FieldChange, ...]
    deps: tuple[FieldChange, ...]
    ended: float


def nearest(view: View, task: str) -> Older | None:
    """The nearest older artifact of a step that has none of its own identity; None: there is none like it."""
    call = view.plan.tasks[task].call
    if call is None or view.book is None or task not in view.book:
        return None
    entry = view.book[task]
    found: Older | None = None
    for record in _records(entry):
        if record.name == call.step and record.identity != call.identity:
            older = _older(record, call, entry)
            if found is None or _rank(older) < _rank(found):
                found = older
    return found


def _rank(one: Older) -> tuple[int, float]:
    return len(one.changes) + len(one.deps), -one.ended


def _records(entry: Entry) -> Iterator[ArtifactRecord]:
    """The records of the folder that the artifact stands in. What cannot be read is left out."""
    folder = entry.path.rpartition("/")[0]
    try:
        for number, record in enumerate(store_for(entry.path).records(folder)):
            if number >= _LOOKED_AT:
                return
            yield record
    except WorldError:
        return


def _older(record: ArtifactRecord, call: Call, entry: Entry) -> Older:
    deps = tuple(_deps(record.deps, entry.deps))
    return Older(
        step=f"{record.name}_{record.identity[:12]}",
        path=record.at if record.at and is_url(record.at) else record.path,
        changes=tuple(one for one in field_changes(record, call) if not _is_told(one, deps)),
        deps=deps,
        ended=record.provenance.ended,
    )


def _deps(old: tuple[Dep, ...], new: tuple[Dep, ...]) -> Iterator[FieldChange]:
    """Which of the steps below are others, by name; several of one name are told together."""
    before, now = _by_name(old), _by_name(new)
    for name in sorted({*before, *now}):
        was, is_ = before.get(name, set()), now.get(name, set())
        if was != is_:
            yield FieldChange(f"built on {name}", ", ".join(sorted(was - is_)), ", ".join(sorted(is_ - was)))


def _is_told(change: FieldChange, deps: tuple[FieldChange, ...]) -> bool:
    """Whether a change of an argument that is a step is the same as one of what it is built on."""
    if not change.steps:
        return False
    told = {name for dep in deps for text in (dep.old, dep.new) for name in text.split(", ")}
    values = [value.strip('"').rpartition("_")[2] for value in (change.old, change.new) if value]
    return all(value in told for value in values)


def _by_name(deps: tuple[Dep, ...]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for dep in deps:
        found.setdefault(dep.name, set()).add(dep.identity[:12])
    return found

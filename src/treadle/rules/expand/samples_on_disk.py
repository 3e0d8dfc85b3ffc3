"""`sample_pattern` and `pairs_pattern`: samples and pairs that are found rather than listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.base.place import Place
from treadle.rules.expand.finder import Finder
from treadle.rules.expand.values import fitting
from treadle.rules.pattern.pattern import Pattern, Row
from treadle.rules.pattern.text import PathText
from treadle.rules.schema import Source, Workflow
from treadle.rules.toml.section import Findings

GROUP = "auto-discovered"


class Hunt(Struct, frozen=True):
    """A pattern of `[workflow]` that gives rows to a source."""

    kind: str
    key: str
    pattern: Pattern
    columns: tuple[str, ...]


_COLUMNS = {
    "samples": ("sample", "group"),
    "pairs": ("pair_id", "experiment", "control", "tumor", "normal"),
}
_WANTED = {"samples": ("sample",), "pairs": ("pair_id", "experiment", "control")}
_SOURCE_OF: Mapping[str, str] = {"tumor": "experiment", "normal": "control"}


def hunts(workflow: Workflow, paths: PathText, findings: Findings) -> list[Hunt]:
    """The patterns of a workflow that find samples or pairs; what is wrong with them is reported."""
    found = []
    texts = {"samples": workflow.sample_pattern, "pairs": workflow.pairs_pattern}
    for kind, text in texts.items():
        if not text:
            continue
        key = "sample_pattern" if kind == "samples" else "pairs_pattern"
        place = workflow.places.get(f"workflow.{key}", Place(workflow.file, 0, "workflow", key))
        pattern = paths.pattern(text, place, globs=True)
        if pattern is None:
            continue
        missing = [name for name in _WANTED[kind] if name not in pattern.names]
        if missing:
            names = ", ".join(f"{{{name}}}" for name in missing)
            findings.error("bad-value", f"{key} '{text}' does not hold {names}", place)
            continue
        more = tuple(name for name in pattern.names if name not in _COLUMNS[kind])
        found.append(Hunt(kind, key, pattern, (*_COLUMNS[kind], *more)))
    return found


def empty_source(hunt: Hunt) -> Source:
    """The source that a hunt will fill, without rows."""
    return Source(kind=hunt.kind, label=hunt.key, columns=hunt.columns, rows=(), place=hunt.pattern.place)


def bag(hunt: Hunt, finder: Finder, findings: Findings) -> Source:
    """The source with a row for each set of values that was found, in order."""
    names = hunt.pattern.names
    seen: dict[str, Row] = {}
    rows: dict[Row, None] = {}
    for path, values in finder.find(hunt.pattern).matches:
        if seen.setdefault(path, values) != values:
            message = f"'{path}' can be {hunt.pattern.text} in two ways"
            hint = "say in [wildcard_constraints] what the wildcards may be"
            findings.error("ambiguous-match", message, hunt.pattern.place, hint)
            break
        rows[values] = None
    given: list[Any] = [_row(hunt, dict(zip(names, values))) for values in rows if all(map(_sound, values))]
    return Source(
        kind=hunt.kind,
        label=hunt.key,
        columns=hunt.columns,
        rows=tuple(dict.fromkeys(given)),
        place=hunt.pattern.place,
    )


def _sound(value: str) -> bool:
    return fitting(None, value)


def _row(hunt: Hunt, values: Mapping[str, str]) -> tuple[str | None, ...]:
    named = {"group": GROUP, **values}
    return tuple(named.get(_SOURCE_OF.get(column, column)) for column in hunt.columns)

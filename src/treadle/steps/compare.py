"""The nearest older artifact of a step, and in which fields that bear its identity it differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from treadle.steps.record import ArtifactRecord, Dep
from treadle.steps.store import ArtifactStore

Difference = tuple[str, str, str]
"""(field, old, new), such as `("optimizer.lr", "0.0003", "0.0001")`: values as JSON, empty where absent."""


def older(store: ArtifactStore, path: str, name: str, *, identity: str = "") -> ArtifactRecord | None:
    """The artifact of step `name` that was made last, among those that stand where `path` does.

    `identity` is that of the step now: its own artifact is not an older one. Raises `DiskError`.
    """
    folder = path.rpartition("/")[0] or "/"
    nearest: ArtifactRecord | None = None
    for record in store.records(folder):
        if record.name != name or record.identity == identity:
            continue
        if nearest is None or record.provenance.ended >= nearest.provenance.ended:
            nearest = record
    return nearest


def difference(
    old: ArtifactRecord, *, version: str, hash_attrs: Mapping[str, Any], deps: Iterable[Dep], name: str = ""
) -> tuple[Difference, ...]:
    """In which fields a step differs from the record of an older artifact, sorted by field.

    Fields of hash_attrs go by their own names (`optimizer.lr`, `layers[2]`), then `version`, `name` and
    `deps.<name>`, whose values are the first 12 digits of identities.
    """
    found: list[Difference] = []
    _compare("", msgspec.to_builtins(old.hash_attrs), msgspec.to_builtins(dict(hash_attrs)), found)
    found.sort()
    if old.version != version:
        found.append(("version", old.version, version))
    if name and old.name != name:
        found.append(("name", old.name, name))
    return (*found, *_deps(old.deps, tuple(deps)))


def _compare(field: str, old: Any, new: Any, found: list[Difference]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            inner = f"{field}.{key}" if field else key
            _compare(inner, old.get(key, _ABSENT), new.get(key, _ABSENT), found)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            _compare(f"{field}[{at}]", one, other, found)
    elif _shown(old) != _shown(new):
        found.append((field, _shown(old), _shown(new)))


class _Absent:
    pass


_ABSENT = _Absent()


def _shown(value: Any) -> str:
    return "" if value is _ABSENT else msgspec.json.encode(value, order="sorted").decode()


def _deps(old: tuple[Dep, ...], new: tuple[Dep, ...]) -> list[Difference]:
    """Deps by name; several of one name (a step with other parameters) by what only one side has."""
    gone = sorted({(dep.name, dep.identity) for dep in old} - {(dep.name, dep.identity) for dep in new})
    come = sorted({(dep.name, dep.identity) for dep in new} - {(dep.name, dep.identity) for dep in old})
    found: list[Difference] = []
    for name in sorted({name for name, _ in gone + come}):
        before = [identity[:12] for one, identity in gone if one == name]
        after = [identity[:12] for one, identity in come if one == name]
        for at in range(max(len(before), len(after))):
            pair = (before[at] if at < len(before) else "", after[at] if at < len(after) else "")
            found.append((f"deps.{name}", *pair))
    return found

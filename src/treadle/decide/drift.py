"""How a step differs from the one whose artifact stands in its place, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from treadle.plan.task import Call
from treadle.steps.record import STEP_MARK, ArtifactRecord

_ABSENT = object()
_LONGEST = 60  # characters of a value that are shown


class FieldChange(Struct, frozen=True, omit_defaults=True):
    """One field of two steps: `lr`, `0.0003`, `0.0001`. Values are JSON; empty: there is no such field.

    `steps`: the values are names with hash of steps that are arguments of the step.
    """

    field: str
    old: str
    new: str
    steps: bool = False

    def __str__(self) -> str:
        return f"{self.field}: {_short(self.old) or '(none)'} -> {_short(self.new) or '(none)'}"


def field_changes(record: ArtifactRecord, call: Call) -> tuple[FieldChange, ...]:
    """What is another now than the record says, sorted by field within hash_attrs.

    None at all: the two were built on other steps.
    """
    attrs = msgspec.json.decode(call.attrs)
    found = list(_attrs(record.hash_attrs, attrs, ""))
    for field, old, new in (("name", record.name, call.step), ("version", record.version, call.version)):
        if old != new:
            found.append(FieldChange(field, old, new))
    return tuple(found)


def told(record: ArtifactRecord, call: Call) -> str:
    """The changes as one text: `lr: 3e-4 -> 1e-4, layers: 6 -> 12`."""
    changes = field_changes(record, call)
    return ", ".join(map(str, changes)) if changes else "it was built on other steps"


def _attrs(old: Any, new: Any, at: str) -> Iterator[FieldChange]:
    """Differences below one value; objects are gone into, other values are shown whole."""
    pending = [(old, new, at)]
    while pending:
        old, new, at = pending.pop()
        if isinstance(old, dict) and isinstance(new, dict) and not (_step(old) or _step(new)):
            names = sorted({*old, *new}, reverse=True)
            stem = f"{at}." if at else ""
            pending += [(old.get(name, _ABSENT), new.get(name, _ABSENT), stem + name) for name in names]
        elif (before := _json(old)) != (now := _json(new)):
            yield FieldChange(at, before, now, steps=bool(_step(old) or _step(new)))


def _step(value: Any) -> Any:
    """The name with hash of a step that the value stands for (None: it is a plain one)."""
    return value.get(STEP_MARK) if isinstance(value, dict) and len(value) == 1 else None


def _json(value: Any) -> str:
    value = _step(value) or value
    return "" if value is _ABSENT else msgspec.json.encode(value).decode()


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

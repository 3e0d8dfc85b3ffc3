"""How records become lines of JSON; every free text in them passes the mask on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from treadle.base.mask import Mask
from treadle.records.event import Event, Evidence

_ENCODER = msgspec.json.Encoder()

# What records are found and compared by must come back as it was: blotted out, a task would run for
# ever. None of it can hold a secret: a sensitive value in a path or in an identity is refused at plan time.
_NAMES = ("event", "task", "key", "state", "reason", "cause", "name", "backend", "run", "by", "code")
_CONTENT = ("digest", "identity", "inputs", "outputs", "before", "record", "script", "stale", "foreign")
_FOUND_BY = frozenset({*_NAMES, *_CONTENT})
_PARTS = frozenset({"evidence", "outcome"})


def encode_events(events: Sequence[Event], mask: Mask | None = None) -> bytes:
    """One line of JSON for each event, each with its newline."""
    if not mask:
        return _ENCODER.encode_lines(events)
    return _ENCODER.encode_lines([_masked(msgspec.to_builtins(event), mask) for event in events])


def encode_evidence(evidence: Evidence, mask: Mask | None = None) -> msgspec.Raw:
    """The evidence as JSON that is decoded only when somebody asks for it."""
    if not mask:
        return msgspec.Raw(_ENCODER.encode(evidence))
    return msgspec.Raw(_ENCODER.encode(_masked(msgspec.to_builtins(evidence), mask)))


def _masked(fields: dict[str, Any], mask: Mask) -> dict[str, Any]:
    return {name: value if name in _FOUND_BY else _value(name, value, mask) for name, value in fields.items()}


def _value(name: str, value: Any, mask: Mask) -> Any:
    return _masked(value, mask) if name in _PARTS and value else mask.within(value)

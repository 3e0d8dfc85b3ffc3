"""Fields that hold a size, a duration or a growth: read by `base.units`, reported with their place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from treadle.base.units import parse_duration, parse_size
from treadle.plan.task import Growth
from treadle.rules.toml.fields import Kind
from treadle.rules.toml.section import Section, clip, found

NO_LIMIT = -1
_FACTOR = re.compile(r"x\s*([0-9]+(?:\.[0-9]+)?)\Z")
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%\Z")
_LONGEST = 64  # characters of a size or duration; longer ones are not worth printing
_MOST = 2**63
_MOST_GROWTH = 1000.0

Path = tuple[str | int, ...]


def size(section: Section, value: object, kind: Kind, path: Path) -> int | None:
    """Bytes, more than 0."""
    return _whole(measured(section, value, kind, path, parse_size))


def size_or_none(section: Section, value: object, kind: Kind, path: Path) -> int | None:
    """Bytes, or `NO_LIMIT` for the word `none`."""
    if value == "none":
        return NO_LIMIT
    return _whole(measured(section, value, kind, path, lambda given: parse_size(given, zero=True)))


def duration(section: Section, value: object, kind: Kind, path: Path) -> int | None:
    """Seconds, more than 0, rounded up to whole ones."""
    return _whole(measured(section, value, kind, path, parse_duration))


def delay(section: Section, value: object, kind: Kind, path: Path) -> float | None:
    """Seconds, 0 or more: a duration, or a bare number."""
    return measured(section, value, kind, path, _seconds)


def interval(section: Section, value: object, kind: Kind, path: Path) -> float | None:
    """Seconds, more than 0: a duration, or a bare number."""
    found = measured(section, value, kind, path, _seconds)
    if found == 0:
        section.error("out-of-range", f"0 stands where {kind} is wanted", *path)
        return None
    return found


def pack(section: Section, value: object, kind: Kind, path: Path) -> tuple[int, int] | None:
    """A number of tasks and 0, or 0 and a number of seconds."""
    if isinstance(value, int) and not isinstance(value, bool):
        if 1 <= value < _MOST:
            return value, 0
        section.error("out-of-range", f"{found(value)} stands where {kind} is wanted", *path)
        return None
    seconds = _whole(measured(section, value, kind, path, parse_duration))
    return None if seconds is None else (0, seconds)


def missing(section: Section, value: object, kind: Kind, path: Path) -> tuple[int, float] | None:
    """A number of tasks and 0, or 0 and a part of them (0 to 1)."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST:
        return value, 0.0
    if isinstance(value, str) and (part := _PERCENT.match(value.strip()[:_LONGEST])):
        if float(part[1]) <= 100:
            return 0, float(part[1]) / 100
        section.error("out-of-range", f"{found(value)} stands where {kind} is wanted", *path)
        return None
    section.error("wrong-type", f"{found(value)} stands where {kind} is wanted", *path)
    return None


def size_growth(section: Section, value: object, kind: Kind, path: Path) -> Growth | None:
    """`x2` or `+8G`; what is added in bytes."""
    return _growth(section, value, kind, path, parse_size)


def time_growth(section: Section, value: object, kind: Kind, path: Path) -> Growth | None:
    """`x2` or `+2h`; what is added in seconds."""
    return _growth(section, value, kind, path, parse_duration)


def measured(
    section: Section, value: object, kind: Kind, path: Path, parse: Callable[[object], float]
) -> float | None:
    """What `parse` makes of a text or a number; its ValueError becomes a finding."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        section.error("wrong-type", f"{found(value)} stands where {kind} is wanted", *path)
        return None
    if (isinstance(value, str) and len(value) > _LONGEST) or not _sane(value):
        section.error("bad-measure", f"{found(value)} is not {kind}", *path)
        return None
    try:
        result = parse(value)
    except ValueError as error:
        message, _, hint = str(error).partition(": ")
        section.error("bad-measure", message, *path, hint=hint)
        return None
    if result < _MOST:
        return result
    section.error("bad-measure", f"{found(value)} is more than any machine has", *path)
    return None


def _sane(value: object) -> bool:
    return not isinstance(value, int | float) or -_MOST < value < _MOST  # False for nan, too


def _whole(measure: float | None) -> int | None:
    return None if measure is None else math.ceil(measure)


def _seconds(given: object) -> float:
    if isinstance(given, int | float):
        if given >= 0:
            return float(given)
        raise ValueError(f"{given} is a negative delay: write 0 or more seconds")
    return parse_duration(given, zero=True)


def _growth(
    section: Section, value: object, kind: Kind, path: Path, parse: Callable[[object], float]
) -> Growth | None:
    given = value.strip() if isinstance(value, str) else ""
    if factor := _FACTOR.match(given[:_LONGEST]):
        if 1 < float(factor[1]) <= _MOST_GROWTH:
            return Growth(factor=float(factor[1]))
        message = f"'{clip(given)}' is not a growth"
        section.error("bad-growth", message, *path, hint="write a factor above 1, and at most 1000")
        return None
    if not given.startswith("+"):
        section.error("bad-growth", f"{found(value)} stands where {kind} is wanted", *path)
        return None
    more = _whole(measured(section, given[1:].strip(), kind, path, parse))
    return None if more is None else Growth(add=more)

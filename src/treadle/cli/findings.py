"""Warnings as people read them: one that is the same at many places is told once, with all its places."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from treadle.base.place import Diagnostic, Severity

_FROM = 3  # as many of one kind are told together
_SHOWN = 12  # places that are named


def folded(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The findings in order; warnings that say the same of three places or more stand where the first did."""
    groups: dict[object, list[Diagnostic]] = {}
    for number, one in enumerate(found):
        alike = (one.code, one.message, one.hint) if one.severity is Severity.WARNING else number
        groups.setdefault(alike, []).append(one)
    told: list[Diagnostic] = []
    for group in groups.values():
        told += group if len(group) < _FROM else [_together(group)]
    return told


def _together(group: list[Diagnostic]) -> Diagnostic:
    first, *others = group
    places = [_short(one, first) for one in others[:_SHOWN]]
    more = len(others) - len(places)
    also = ", ".join(places) + (f" and {more} more" if more else "")
    return replace(first, message=f"{first.message} (also at {also})")


def _short(one: Diagnostic, first: Diagnostic) -> str:
    """Where a finding stands, without the file where that is the first one's."""
    place = one.place
    if not place.line:
        return str(place)
    return f"line {place.line}" if place.file == first.place.file else f"{place.file}:{place.line}"

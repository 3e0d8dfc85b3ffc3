"""Constraints on wildcards: a regular expression that must match the whole value."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from treadle.base.place import Diagnostic, Place

# Regular expressions that plainly cannot match a `/`: letters, digits, escapes, sets of these, repeats.
# Anything else is taken to be able to, which costs a deeper look at the disk but is never wrong.
_IN_SET = r"(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_.+ ]|\\[dw.+-])"
_STAYS = re.compile(
    rf"(?:[A-Za-z0-9_+*?|() -]|\(\?:|\\[dw.+-]|\{{[0-9,]+\}}|\[-?{_IN_SET}*-?\]|\[\^[^\]\\-]*/[^\]\\-]*\])*"
)


class Constraint(Struct, frozen=True):
    """One entry of `[wildcard_constraints]`; `crosses`: its values may hold a `/`."""

    text: str
    regex: re.Pattern[str]
    crosses: bool

    def fits(self, value: str) -> bool:
        """Whether the whole value matches."""
        return self.regex.fullmatch(value) is not None


def constraint(text: str) -> Constraint:
    """Compile one constraint. Raises `re.error`."""
    return Constraint(text, re.compile(text), not _STAYS.fullmatch(text))


def read_constraints(
    texts: Mapping[str, str], places: Mapping[str, Place], problems: list[Diagnostic]
) -> dict[str, Constraint]:
    """Compile all constraints of a workflow; what is no regular expression is reported."""
    found = {}
    for name, text in texts.items():
        try:
            found[name] = constraint(text)
        except re.error as error:
            where = places.get(f"wildcard_constraints.{name}", Place(table="wildcard_constraints", key=name))
            message = f"the constraint of {{{name}}} is not a regular expression: {error}"
            problems.append(Diagnostic("bad-constraint", message, where))
    return found

"""What a value of a wildcard may be: checked column by column, told with the place of each bad one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from treadle.base.place import Place
from treadle.rules.constraint import Constraint
from treadle.rules.kinds import VARIABLE
from treadle.rules.section import LONGEST_NAME, Findings, clip

LONGEST_VALUE = 4096  # characters: what a path may have at most (PATH_MAX)
_TOLD = 5  # bad values of one column that are told one by one
# What no value may hold; a quick look at a whole column, joined by line ends.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SUSPECT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff/]|^\\.\\.?$", re.MULTILINE)
_SUSPECT_IF_FREE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_PLAIN = re.compile(r"/|^\.\.?$", re.MULTILINE)

# What the texts of a rule call something else; a wildcard of that name could never be used.
PLACEHOLDERS = frozenset(
    {
        *("input", "output", "log", "threads", "memory", "effective_threads", "effective_memory_mb"),
        *("params", "config", "values", "step"),
    }
)

Row = Mapping[str, str | None]


def check_values(
    rows: Sequence[Row],
    place: Callable[[int], Place],
    columns: Iterable[str],
    constraints: Mapping[str, Constraint],
    findings: Findings,
    *,
    free: bool = False,
) -> None:
    """Report every value that could lead a path astray: `/`, `.` or `..`, control characters, huge ones.

    A `/` is allowed where the wildcard's constraint matches the whole value; where `free`, any path is.
    """
    for column in columns:
        values = [row.get(column) or "" for row in rows]
        joined = "\n".join(values)
        suspect = (_SUSPECT_IF_FREE if free else _SUSPECT).search(joined)
        longest = max(map(len, values), default=0)
        if not suspect and joined.count("\n") < max(len(values), 1) and longest <= LONGEST_VALUE:
            continue
        bad = 0
        for at, value in enumerate(values):
            if problem := value and _problem(value, free, constraints.get(column)):
                bad += 1
                if bad <= _TOLD:
                    findings.error(
                        "bad-value", f"the value '{clip(value)}' of '{clip(column)}' {problem}", place(at)
                    )
        if bad > _TOLD:
            findings.error("bad-value", f"and {bad - _TOLD:,} more values of '{clip(column)}'", place(0))


def _problem(value: str, free: bool, constraint: Constraint | None) -> str:
    if _CONTROL.search(value):
        return "holds a control character"
    if len(value) > LONGEST_VALUE:
        return "is longer than a path may be"
    if free:
        return ""
    parts = value.split("/")
    if ".." in parts or value == ".":
        return "would lead out of the folder that it stands for"
    if len(parts) > 1 and not (constraint and constraint.fits(value)):
        return "holds a '/': a constraint in [wildcard_constraints] that matches it would allow that"
    return ""


def paths_among(rows: Sequence[Row], columns: Iterable[str]) -> frozenset[str]:
    """The columns some value of which is a path: holds a `/`, or is `.` or `..`."""
    return frozenset(
        column for column in columns if _NOT_PLAIN.search("\n".join(row.get(column) or "" for row in rows))
    )


def usable(name: str, taken: Iterable[str] = ()) -> str:
    """Why `name` cannot name a wildcard, or an empty text."""
    if not VARIABLE.match(name):
        return "is not a name that {...} can hold (letters, digits and _, no digit first)"
    if len(name) > LONGEST_NAME:
        return "is too long a name"
    if name in PLACEHOLDERS or name in taken:
        return "is the name of something else"
    return ""

"""What a value of a wildcard may be: checked column by column, told with the place of each bad one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from treadle.base.place import Place
from treadle.rules.pattern.constraint import Constraint
from treadle.rules.toml.kinds import VARIABLE
from treadle.rules.toml.section import LONGEST_NAME, Findings, clip

LONGEST_VALUE = 4096  # characters: what a path may have at most (PATH_MAX)
_TOLD = 5  # bad values of one column that are told one by one
# What no value may hold; for a quick look at a whole column, joined by line ends.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SUSPECT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff/]|^\\.\\.?$|\\{config\\.", re.MULTILINE)
_SUSPECT_IF_FREE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]|\\{config\\.")
_NOT_PLAIN = re.compile(r"/|^\.\.?$", re.MULTILINE)

# What the texts of a rule call something else; a wildcard of that name could never be used.
PLACEHOLDERS = frozenset(
    {
        *("input", "output", "log", "threads", "memory", "effective_threads", "effective_memory_mb"),
        *("params", "config", "values", "step"),
    }
)

Columns = Mapping[str, Sequence[str | None]]


def check_values(
    columns: Columns,
    place: Callable[[int], Place],
    constraints: Mapping[str, Constraint],
    findings: Findings,
    *,
    free: bool = False,
) -> None:
    """Report every value that could lead a path astray: `/`, `.` or `..`, control characters, huge ones.

    A `/` is allowed where the wildcard's constraint matches the whole value; where `free`, any path is.
    `place` tells where a row stands.
    """
    suspect = _SUSPECT_IF_FREE if free else _SUSPECT
    for column, cells in columns.items():
        values = [cell or "" for cell in cells]
        joined = "\n".join(values)
        whole = joined.count("\n") < max(len(values), 1)  # no value holds a line end
        if whole and not suspect.search(joined) and max(map(len, values), default=0) <= LONGEST_VALUE:
            continue
        problems = (_problem(value, free, constraints.get(column)) for value in values)
        _tell(column, values, [(at, why) for at, why in enumerate(problems) if why], place, findings)


def _tell(
    column: str,
    values: Sequence[str],
    bad: Sequence[tuple[int, str]],
    place: Callable[[int], Place],
    findings: Findings,
) -> None:
    for at, why in bad[:_TOLD]:
        message = f"the value '{clip(values[at])}' of '{clip(column)}' {why}"
        findings.error("bad-value", message, place(at))
    if len(bad) > _TOLD:
        message = f"and {len(bad) - _TOLD:,} more values of '{clip(column)}'"
        findings.error("bad-value", message, place(bad[_TOLD][0]))


def _problem(value: str, free: bool, constraint: Constraint | None) -> str:
    if _CONTROL.search(value):
        return "holds a control character"
    if len(value) > LONGEST_VALUE:
        return "is longer than a path may be"
    if "{config." in value:
        return "holds {config...}, and values of wildcards are not filled: write what it stands for"
    if free:
        return ""
    parts = value.split("/")
    if ".." in parts or value == ".":
        return "would lead out of the folder that it stands for"
    if len(parts) > 1 and not (constraint and constraint.fits(value)):
        return "holds a '/': a constraint in [wildcard_constraints] that matches it would allow that"
    return ""


def paths_among(columns: Columns) -> frozenset[str]:
    """The columns some value of which is a path: holds a `/`, or is `.` or `..`."""
    return frozenset(
        column for column, cells in columns.items() if _NOT_PLAIN.search("\n".join(filter(None, cells)))
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

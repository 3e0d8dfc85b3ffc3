"""The tables of a rule whose keys are the author's own: `params`, `envvars`, `rule_metadata`."""

from __future__ import annotations

import re
from typing import Any

from treadle.rules.text.placeholder import spelled
from treadle.rules.toml.fields import RULE
from treadle.rules.toml.kinds import NAME, VARIABLE, scalar, wrong
from treadle.rules.toml.section import LONGEST_NAME, Section, clip

# Fields that, found below [rules.params] and missing above it, were surely meant for the rule.
_SURELY_A_FIELD = frozenset({"input", "output", "expand_inputs", "shell", "script", "depends_on", "when"})
# Fields whose names are good names for a parameter, too.
_GOOD_NAMES = frozenset({"name", "threads", "memory", "group", "tags", "priority", "target", "description"})


def params(section: Section, got: dict[str, Any]) -> dict[str, Any]:
    """`params`: texts, numbers, booleans and lists of these, typed as they are written."""
    inner = section.inner(got.get("params", {}), "params")
    wanted = "a text, number, boolean or list of them"
    taken: dict[str, Any] = {}
    for key, value in inner.table.items():
        if _stray(section, inner, key) or not _fits(inner, key, NAME.match(key), "a parameter"):
            continue
        if isinstance(value, list):
            each = [scalar(inner, item, (key, at), wanted) for at, item in enumerate(value)]
            taken[key] = tuple(item for item in each if item is not None)
        elif (one := scalar(inner, value, (key,), wanted)) is not None:
            taken[key] = one
    return taken


def envvars(section: Section, got: dict[str, Any]) -> dict[str, str]:
    """`envvars`: what the command finds in its environment, as texts."""
    inner = section.inner(got.get("envvars", {}), "envvars")
    wanted = "a text or a number"
    taken: dict[str, str] = {}
    for key, value in inner.table.items():
        if _stray(section, inner, key) or not _fits(inner, key, VARIABLE.match(key), "a variable"):
            continue
        if key.startswith("TREADLE_"):
            inner.error("reserved-name", f"'{clip(key)}' is a variable of the engine's own", key)
        elif isinstance(value, list | dict):
            wrong(inner, value, wanted, (key,))
        elif (one := scalar(inner, value, (key,), wanted)) is not None:
            taken[key] = spelled(one)
    return taken


def metadata(section: Section, got: dict[str, Any]) -> dict[str, Any]:
    """`rule_metadata` as it is, but for fields of the rule that landed there."""
    inner = section.inner(got.get("rule_metadata", {}), "rule_metadata")
    for key in inner.table:
        _stray(section, inner, key)
    return inner.table


def _fits(section: Section, key: str, match: re.Match[str] | None, what: str) -> bool:
    if match and len(key) <= LONGEST_NAME:
        return True
    section.error("bad-name", f"'{clip(key)}' cannot name {what}", key, hint="write letters, digits and _")
    return False


def _stray(section: Section, inner: Section, key: str) -> bool:
    """Whether a key of the author's own table is a field of the rule that landed there.

    An error where it surely is one; a warning where it may be; fine where the table is written in one
    piece, or the name is a good one for a parameter.
    """
    if key in section.table or not inner.spot.header or key not in RULE or key in _GOOD_NAMES:
        return False
    if key in _SURELY_A_FIELD:
        return inner.strayed(key)
    header = f"[rules.{inner.path[-1]}]"
    message = f"'{key}' stands below the line {header}, so it is no field of the rule"
    inner.warn("key-in-subtable", message, key, hint=f"if it was meant for the rule, move it above {header}")
    return False

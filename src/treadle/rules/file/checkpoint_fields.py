"""The fields of a checkpoint rule: what it writes, and what that may add to."""

from __future__ import annotations

from typing import Any

from treadle.rules.toml.kinds import VARIABLE
from treadle.rules.toml.section import Section, clip

_KINDS = ("sample", "pairs")
_PREFIX = "values."


def checkpoint(section: Section, got: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The manifest of the rule (empty: no checkpoint rule), and what it may add to (empty: anything)."""
    manifest, extends = (
        got.get("checkpoint_manifest", ""),
        tuple(dict.fromkeys(got.get("checkpoint_extends", ()))),
    )
    if not got.get("checkpoint", False):
        for key in ("checkpoint_manifest", "checkpoint_extends"):
            if got.get(key):
                section.warn("no-effect", f"'{key}' has no effect without checkpoint = true", key)
        return "", ()
    if not manifest and "checkpoint_manifest" not in section.table:
        hint = 'name the file that it writes: checkpoint_manifest = "found.toml"'
        section.error(
            "missing-key", "this checkpoint rule has no 'checkpoint_manifest'", "checkpoint", hint=hint
        )
    for at, entry in enumerate(extends):
        name = entry.removeprefix(_PREFIX)
        if entry not in _KINDS and not (entry.startswith(_PREFIX) and VARIABLE.match(name)):
            hint = "it may be 'sample', 'pairs' or 'values.NAME'"
            section.error(
                "bad-value",
                f"a checkpoint cannot add to '{clip(entry)}'",
                "checkpoint_extends",
                at,
                hint=hint,
            )
    return manifest, extends

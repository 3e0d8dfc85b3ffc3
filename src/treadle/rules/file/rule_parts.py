"""`scatter` and `transform` of a rule: the tables that say how one rule becomes several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.base.place import Place
from treadle.plan.task import Shell
from treadle.rules.schema import Combine, OwnValues, PathSpec, Scatter, Transform, Value
from treadle.rules.sources.cells import usable
from treadle.rules.text.placeholder import Mark, scan
from treadle.rules.toml.fields import COMBINE, SCATTER, SPLIT, TRANSFORM
from treadle.rules.toml.kinds import NAME, scalar, take
from treadle.rules.toml.section import Section, clip
from treadle.rules.toml.shell_traps import warn_hidden

_METHODS = ("concat", "json_merge")
_WAYS = ("values", "values_from", "n", "glob")  # those that count more first


def scatter(section: Section, got: dict[str, Any], outputs: Sequence[PathSpec]) -> Scatter | None:
    """The `scatter` of a rule with these outputs; None where it has none, or a wrong one."""
    if "scatter" not in got:
        return None
    inner = section.inner(got["scatter"], "scatter")
    said = take(inner, SCATTER, "scatter")
    if "transform" in section.table:
        section.error("said-twice", "a rule has either 'scatter' or 'transform'", "scatter")
    variable = _variable(inner, said, "variable")
    key = _way(inner, ("values", "values_from"), "scatter")
    values = _values(inner, said, key) if key else None
    if not variable or values is None:
        return None
    hold(section, outputs, variable, "so that each of them has its own file")
    place = inner.place(key)
    return Scatter(own=OwnValues(variable=variable, given=values, place=place), gather=said.get("gather", ""))


def hold(section: Section, outputs: Sequence[PathSpec], variable: str, why: str) -> None:
    """Report outputs that all values of a variable would write to."""
    for spec in outputs:
        if "{config." not in spec.text and variable not in wildcards(spec.text):
            message = (
                f"the output '{clip(spec.text)}' does not hold {{{variable}}}, and all would write to it"
            )
            section.findings.error(
                "piece-output", message, spec.place, f"write {{{variable}}} into it, {why}"
            )


def wildcards(text: str) -> list[str]:
    """The words that stand in a path as wildcards do, `{values.x}` as `x`."""
    marks = [piece for piece in scan(text) if isinstance(piece, Mark) and piece.braces % 2]
    return [mark.attr if mark.root == "values" and mark.attr else mark.root for mark in marks]


def transform(
    section: Section, got: dict[str, Any], outputs: Sequence[PathSpec], shell: Shell
) -> Transform | None:
    """The `transform` of a rule with these outputs; None where it has none, or a wrong one."""
    if "transform" not in got:
        return None
    inner = section.inner(got["transform"], "transform")
    said = take(inner, TRANSFORM, "transform")
    for key in ("shell", "script", "interpreter"):
        if key in got:
            section.warn("no-effect", f"'{key}' has no effect beside 'transform', whose 'map' runs", key)
    for key in ("split", "map"):
        if key not in inner.table:
            inner.error("missing-key", f"this transform has no '{key}'")
    warn_hidden(inner, said.get("map", ""), shell, "map")
    split = inner.inner(said.get("split", {}), "split")
    divided = take(split, SPLIT, "split")
    by = _variable(split, divided, "by") if "split" in said else ""
    key = _way(split, _WAYS, "split") if "split" in said else ""
    combine = _combine(inner.inner(said["combine"], "combine"), shell) if "combine" in said else None
    values = _values(split, divided, key) if key in ("values", "values_from") else ()
    if "combine" not in inner.table and by:
        hold(section, outputs, by, "or say how to 'combine' the pieces")
    lost = combine is None and "combine" in inner.table
    if lost or not by or key not in divided or values is None or not said.get("map", "").strip():
        return None
    if combine is not None and "output" not in {mark.root for mark in _marks(said["map"])}:
        hint = "write the piece to {output}: combine gets it as one of {chunks}"
        inner.error("piece-output", "'map' does not name {output}, where its piece belongs", "map", hint=hint)
    if "combine" not in inner.table and said.get("cleanup"):
        inner.warn("no-effect", "'cleanup' has no effect without 'combine'", "cleanup")
    return Transform(
        by=by,
        map=said["map"],
        values=values,
        count=divided["n"] if key == "n" else "",
        glob=divided["glob"] if key == "glob" else "",
        combine=combine,
        cleanup=said.get("cleanup", False),
        places=_places(inner, split),
    )


def _marks(text: str) -> list[Mark]:
    return [piece for piece in scan(text) if isinstance(piece, Mark) and piece.braces % 2]


def _places(section: Section, split: Section) -> dict[str, Place]:
    combine = section.inner(section.table["combine"], "combine") if "combine" in section.table else None
    inside = (("split", split), ("combine", combine))
    return {
        **{key: section.place(key) for key in section.table},
        **{f"{name}.{key}": one.place(key) for name, one in inside if one is not None for key in one.table},
    }


def _variable(section: Section, said: dict[str, Any], key: str) -> str:
    """The wildcard that `key` names; empty where it is missing or cannot be one."""
    if key not in section.table:
        section.error("missing-key", f"'{key}' is missing: the name of the wildcard that it makes")
    elif why := key in said and usable(said[key], ("chunks",)):
        section.error("bad-name", f"'{clip(said[key])}' cannot be a wildcard: it {why}", key)
    else:
        return str(said.get(key, ""))
    return ""


def _way(section: Section, ways: Sequence[str], what: str) -> str:
    """The key that says which pieces there are."""
    there = [key for key in ways if key in section.table]
    if not there:
        section.error("missing-key", f"this {what} has no values: give one of {', '.join(ways)}")
        return ""
    for other in there[1:]:
        section.warn("no-effect", f"'{other}' has no effect beside '{there[0]}'", other)
    return there[0]


def _values(section: Section, said: dict[str, Any], key: str) -> tuple[Value, ...] | str | None:
    """A list of values, or `config.key`; None where it is neither."""
    if key == "values_from":
        named = str(said.get(key, "")).removeprefix("config.")
        if not named or NAME.match(named):
            return f"config.{named}" if named else None
        section.error("bad-value", f"'{clip(said[key])}' names no config key", key, hint="write config.KEY")
        return None
    listed = said.get(key)
    if listed is None:
        return None
    if not listed:
        section.error("empty", "this list has no values", key)
        return None
    each = [scalar(section, value, (key, at), "a text or a number") for at, value in enumerate(listed)]
    return None if None in each else tuple(each)


def _combine(section: Section, shell: Shell) -> Combine | None:
    said = take(section, COMBINE, "combine")
    text, method = said.get("shell", ""), said.get("method", "concat")
    warn_hidden(section, text, shell, "shell")
    if method not in _METHODS:
        hint = section.findings.guess(method, _METHODS) or f"one of: {', '.join(_METHODS)}"
        section.error("bad-value", f"'{clip(method)}' is not a way to combine", "method", hint=hint)
        return None
    header = said.get("header", "").removesuffix("\n")
    if text.strip():
        for key in ("aggregate", "method", "header"):
            if section.table.get(key):
                section.warn("no-effect", f"'{key}' has no effect beside 'shell'", key)
        return Combine(shell=text)
    if not said.get("aggregate"):
        if "shell" not in section.table or "shell" in said:
            hint = 'write aggregate = true with a method ("concat", "json_merge"), or a command: shell'
            section.error("no-command", "nothing says how to combine the pieces", hint=hint)
        return None
    if header and method != "concat":
        section.warn("no-effect", f"'header' has no effect with method {method}", "header")
    elif "\n" in header or "\r" in header:
        section.error("bad-value", "a header is one line", "header")
    return Combine(method=method, header=header)

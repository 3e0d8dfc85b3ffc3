"""One reader per kind of field: the value as the schema wants it, or None after saying what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from treadle.base.names import did_you_mean
from treadle.rules.text.placeholder import spelled
from treadle.rules.toml import measures
from treadle.rules.toml.fields import Field, Fields, Kind, State
from treadle.rules.toml.section import LONGEST_NAME, Section, clip, found
from treadle.rules.toml.shell_traps import say_escape

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
SCRATCHES = ("minimal", "shallow", "full")
LARGEST = 2**63  # TOML: a whole number has 64 bits
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

Path = tuple[str | int, ...]
_TAKEN = (State.WORKS, State.REPORT, State.SCHEDULER)


def take(section: Section, fields: Fields, what: str) -> dict[str, Any]:
    """The values of all fields of a table that work or are kept; everything else is reported.

    `what` names the kind of table in messages (`a rule`). A field whose value is wrong is left out.
    """
    section.fields = fields
    got: dict[str, Any] = {}
    for key, value in section.table.items():
        field = fields.get(key)
        if field is None:
            section.unknown(key, fields, what)
        elif field.state in _TAKEN:
            if field.state is State.SCHEDULER and not section.findings.scheduler:
                section.warn_once("no-effect", f"'{key}' has no effect here: {field.why}", key)
            taken = READERS[field.kind](section, value, field.kind, (key,))
            if taken is not None:
                got[key] = taken
        else:
            refuse(section, field, key, value)
    return got


def refuse(section: Section, field: Field, key: str, value: object) -> None:
    """Report a field that has no effect, or to be written otherwise; `false` and empty say nothing."""
    if value is False or value in ([], {}, ""):
        return
    if field.state is State.INSTEAD:
        message = f"'{key}' says nothing certain, so nothing is done for it"
        section.error("write-instead", message, key, hint=field.why)
    else:
        section.warn("no-effect", f"'{key}' has no effect here: {field.why}", key)


def wrong(section: Section, value: object, kind: Kind | str, path: Path, hint: str = "") -> None:
    """Report a value of the wrong type: what was found, and what is wanted."""
    wanted = str(kind)
    if not hint and isinstance(value, str) and len(value) <= LONGEST_NAME:
        hint = _unquote_hint(value, wanted)
    elif not hint and wanted.endswith("in quotes") and isinstance(value, int | float):
        hint = f'put it in quotes: "{found(value).split()[-1]}"'
    section.error("wrong-type", f"{found(value)} stands where {wanted} is wanted", *path, hint=hint)


def _unquote_hint(value: str, wanted: str) -> str:
    if "whole number" in wanted and re.fullmatch(r"[+-]?[0-9]+", value):
        return f"write it without quotes: {value}"
    if wanted.startswith("true or false") and value.lower() in ("true", "false"):
        return f"write it without quotes: {value.lower()}"
    if wanted.startswith("a list") and value.isprintable() and '"' not in value and "\\" not in value:
        return f'write it as a list: ["{value}"]'
    return ""


def text(section: Section, value: object, kind: Kind, path: Path) -> str | None:
    """Any text but one with a NUL, which no file name and no process can take."""
    if not isinstance(value, str):
        wrong(section, value, kind, path)
        return None
    if "\0" in value:
        section.error("control-character", "a NUL character stands in this text", *path)
        return None
    return value


def command(section: Section, value: object, kind: Kind, path: Path) -> str | None:
    """Shell text; a TAB or newline that an escape made is said, for it is seldom what was meant."""
    taken = text(section, value, kind, path)
    if taken is not None and CONTROL.search(taken):
        say_escape(section, path)
    return taken


def line(section: Section, value: object, kind: Kind, path: Path) -> str | None:
    """A text without control characters that is not empty: a path, a pattern, a program."""
    if not isinstance(value, str):
        wrong(section, value, kind, path)
        return None
    if bad := CONTROL.search(value):
        section.error(
            "control-character",
            f"the control character {bad[0]!a} stands in '{clip(value)}'",
            *path,
            hint="paths and names may not hold one; in '...' a backslash stands for itself",
        )
        return None
    if not value.strip():
        section.error("empty", f"an empty text stands where {kind} is wanted", *path)
        return None
    return value


def name(section: Section, value: object, kind: Kind, path: Path) -> str | None:
    """A name of at most 255 bytes, without control characters."""
    taken = line(section, value, kind, path)
    if taken is not None and len(taken.encode()) > LONGEST_NAME:
        message = f"this name has {len(taken)} characters; {LONGEST_NAME} bytes are the most"
        section.error("too-long", message, *path)
        return None
    return taken


def flag(section: Section, value: object, kind: Kind, path: Path) -> bool | None:
    if isinstance(value, bool):
        return value
    hint = "true skips the task when any source input is missing" if path == ("optional",) else ""
    wrong(section, value, kind, path, hint)
    return None


def scratch(section: Section, value: object, kind: Kind, path: Path) -> str | None:
    """How much of the work folder a private one shows; empty: there is none."""
    if isinstance(value, bool):
        return "minimal" if value else ""
    if isinstance(value, str) and value in ("", *SCRATCHES):
        return value
    wrong(section, value, kind, path, did_you_mean(value, SCRATCHES) if isinstance(value, str) else "")
    return None


def whole(least: int) -> Callable[[Section, object, Kind, Path], int | None]:
    """A reader of whole numbers of at least `least`."""

    def reader(section: Section, value: object, kind: Kind, path: Path) -> int | None:
        if not isinstance(value, int) or isinstance(value, bool):
            wrong(section, value, kind, path)
            return None
        if not least <= value < LARGEST:
            section.error("out-of-range", f"{found(value)} stands where {kind} is wanted", *path)
            return None
        return value

    return reader


def items(section: Section, value: object, kind: Kind, path: Path) -> list[Any] | None:
    """A list as it is."""
    if isinstance(value, list):
        return value
    wrong(section, value, kind, path)
    return None


def table(section: Section, value: object, kind: Kind | str, path: Path) -> dict[str, Any] | None:
    """A table as it is."""
    if isinstance(value, dict):
        return value
    wrong(section, value, kind, path)
    return None


def scalar(section: Section, value: object, path: Path, wanted: str) -> Any | None:
    """A text, number or boolean as it is; anything else is reported."""
    match value:
        case bool() | float():
            return value
        case str():
            return text(section, value, Kind.TEXT, path)
        case int() if abs(value) < LARGEST:
            return value
        case _:
            wrong(section, value, wanted, path)
            return None


def value(section: Section, given: object, kind: Kind, path: Path) -> str | None:
    """A value of a wildcard, as text."""
    one = scalar(section, given, path, kind)
    return None if one is None else spelled(one)


def _list_of(
    reader: Callable[[Section, object, Kind, Path], str | None], each: Kind
) -> Callable[[Section, object, Kind, Path], tuple[str, ...] | None]:
    def readers(section: Section, value: object, kind: Kind, path: Path) -> tuple[str, ...] | None:
        listed = items(section, value, kind, path)
        if listed is None:
            return None
        taken = [reader(section, item, each, (*path, index)) for index, item in enumerate(listed)]
        return tuple(item for item in taken if item is not None)

    return readers


def names_or_name(section: Section, value: object, kind: Kind, path: Path) -> tuple[str, ...] | None:
    """A list of names, or one by itself."""
    if isinstance(value, list):
        return _list_of(name, Kind.NAME)(section, value, kind, path)
    one = name(section, value, kind, path)
    return None if one is None else (one,)


def _as_it_is(section: Section, value: Any, kind: Kind, path: Path) -> Any:
    return value


READERS: dict[Kind, Callable[[Section, Any, Kind, Path], Any]] = {
    Kind.ANY: _as_it_is,
    Kind.TEXT: text,
    Kind.NAME: name,
    Kind.VALUE: value,
    Kind.COMMAND: command,
    Kind.PATH: line,
    Kind.FLAG: flag,
    Kind.WHOLE: whole(-LARGEST),
    Kind.NATURAL: whole(0),
    Kind.COUNT: whole(1),
    Kind.SIZE: measures.size,
    Kind.SIZE_OR_NONE: measures.size_or_none,
    Kind.DURATION: measures.duration,
    Kind.DELAY: measures.delay,
    Kind.SIZE_GROWTH: measures.size_growth,
    Kind.TIME_GROWTH: measures.time_growth,
    Kind.PACK: measures.pack,
    Kind.SCRATCH: scratch,
    Kind.MISSING: measures.missing,
    Kind.INTERVAL: measures.interval,
    Kind.TEXTS: _list_of(text, Kind.TEXT),
    Kind.NAMES: _list_of(name, Kind.NAME),
    Kind.NAMES_OR_NAME: names_or_name,
    Kind.PATHS: _list_of(line, Kind.PATH),
    Kind.VALUES: table,
    Kind.VARIABLES: table,
    Kind.COUNTS: table,
    Kind.TABLE: table,
    Kind.FILES: _as_it_is,
    Kind.FAN_IN: _as_it_is,
    Kind.LIST: items,
}

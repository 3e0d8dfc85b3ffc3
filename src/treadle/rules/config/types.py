"""Values of config keys: texts of the command line read by type, declared limits held."""

from __future__ import annotations

import os
import re
from typing import Any

from treadle.rules.schema import Declared, Spelled, Value
from treadle.rules.text.placeholder import spelled
from treadle.rules.toml.kinds import CONTROL, LARGEST
from treadle.rules.toml.section import clip, found

TYPES = ("string", "int", "float", "bool", "path")
_INT = re.compile(r"[+-]?[0-9]{1,19}\Z")
_FLOAT = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|nan)\Z")
_WANTED = {
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "path": "a path",
}


class UnfitError(Exception):
    """A value does not fit its key: what is wrong, and the way out. Never leaves this room."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def type_of(value: Value) -> str:
    """The declared type that a plain value has; `list` for an array."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case tuple():
            return "list"
        case _:
            return "string"


def from_text(text: str, kind: str) -> Value:
    """A text of the command line as a value of type `kind`. Raises UnfitError.

    A list is written with commas between its texts, or as a TOML array.
    """
    match kind:
        case "int" if _INT.match(text) and abs(int(text)) < LARGEST:
            return int(text)
        case "float" if _FLOAT.match(text):
            return int(text) if _INT.match(text) else Spelled(text)
        case "bool" if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case "list":
            return _list(text)
        case "string" | "path" | "":
            return text
    raise UnfitError("config-type", f"'{clip(text)}' is not {_WANTED[kind]}")


def _list(text: str) -> tuple[Value, ...]:
    if not text.lstrip().startswith("["):
        return tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    import tomli

    try:
        listed = tomli.loads(f"list = {text}", parse_float=Spelled)
    except (ValueError, RecursionError):
        raise UnfitError("config-type", f"'{clip(text)}' is not a list", "write a,b,c") from None
    if set(listed) == {"list"} and all(isinstance(each, str | int | float) for each in listed["list"]):
        return tuple(listed["list"])
    raise UnfitError("config-type", f"'{clip(text)}' is not a list of texts and numbers", "write a,b,c")


def fitted(value: Value, declared: Declared, workdir: str, *, secret: bool) -> Value:
    """The value as its declaration wants it: of its type, among its choices, within its range.

    A text is read by the type, so that `default = "30"` is an int where `type = "int"` says so. Raises
    UnfitError; the message does not hold the value when it is `secret`, or made of one that is.
    """
    shown = "the value" if secret else found(value)
    fits: Value | None
    try:
        fits = _typed(value, declared.type)
    except UnfitError:
        fits = None
    if fits is None:
        wanted = _WANTED[declared.type]
        raise UnfitError("config-type", f"{shown} of '{declared.name}' is not {wanted}", _help(declared))
    shown = "the value" if secret else found(fits)
    if declared.choices and fits not in declared.choices:
        choices = ", ".join(clip(spelled(choice)) for choice in declared.choices[:20])
        raise UnfitError(
            "config-choice", f"{shown} of '{declared.name}' is not one of: {choices}", _help(declared)
        )
    if declared.range is not None:
        _in_range(fits, declared, shown)
    if declared.type == "path" and CONTROL.search(fits):
        raise UnfitError("control-character", f"a control character stands in the path '{declared.name}'")
    if declared.must_exist and not _exists(workdir, fits):
        message = f"{shown} of '{declared.name}' does not exist"
        raise UnfitError("config-path", message, f"it is looked for from the work folder, {workdir}")
    return fits


def _help(declared: Declared) -> str:
    return f"{declared.name}: {clip(declared.help, 200)}" if declared.help else ""


def _typed(value: Value, kind: str) -> Value | None:
    if not kind:
        return value
    if isinstance(value, str):
        return from_text(value, kind)
    return value if type_of(value) in ((kind, "int") if kind == "float" else (kind,)) else None


def _in_range(value: Value, declared: Declared, shown: str) -> None:
    assert declared.range is not None
    low, high = declared.range
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnfitError("config-range", f"'{declared.name}' has a range, but {shown} is not a number")
    if not low <= value <= high:
        message = f"{shown} of '{declared.name}' is not within {low:g}..{high:g}"
        raise UnfitError("config-range", message, _help(declared))


def _exists(workdir: str, path: Value) -> bool:
    try:
        return bool(path) and os.path.exists(os.path.join(workdir, str(path)))
    except ValueError:
        return False


def read_range(text: str) -> tuple[float, float]:
    """`min..max`, both inclusive; an end left out is open. Raises UnfitError."""
    low, dots, high = text.partition("..")
    ends = [end.strip() for end in (low, high)]
    if dots and any(ends) and all(not end or _FLOAT.match(end) for end in ends):
        least, most = float(ends[0] or "-inf"), float(ends[1] or "inf")
        if least <= most:
            return least, most
    raise UnfitError(
        "config-range", f"'{clip(text)}' is not a range", "write it as min..max, such as '1..100'"
    )


def as_value(value: Any) -> Value | None:
    """What a TOML value is as a config value; None for what a key cannot hold."""
    if isinstance(value, list):
        each = [as_value(item) for item in value]
        return None if any(item is None or isinstance(item, tuple) for item in each) else tuple(each)
    if isinstance(value, str):
        return None if "\0" in value else value
    if isinstance(value, bool | float):
        return value
    return value if isinstance(value, int) and abs(value) < LARGEST else None


def listed(value: Value) -> tuple[Value, ...]:
    """An array as it is; a text split at commas, blanks taken off; anything else by itself."""
    if isinstance(value, tuple | list):
        return tuple(value)
    if isinstance(value, str):
        return tuple(part for piece in value.split(",") if (part := piece.strip()))
    return (value,)

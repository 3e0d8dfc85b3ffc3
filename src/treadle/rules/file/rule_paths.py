"""The files of a rule: `input`, `output` and `expand_inputs`, in each form in which they may be written."""

from __future__ import annotations

from typing import Any

from treadle.rules.schema import FanIn, PathSpec
from treadle.rules.toml.fields import FAN_IN, FOLDER, Kind
from treadle.rules.toml.kinds import VARIABLE, Path, line, scalar, table, take, wrong
from treadle.rules.toml.section import Section, clip

_ENTRY = "a path in quotes, or { path, pattern },"


def files(section: Section, key: str) -> tuple[PathSpec, ...]:
    """The entries of `input` or `output`: a path, a list, a table name -> paths, or { path, pattern }."""
    value = section.table.get(key)
    if value is None:
        return ()
    if not isinstance(value, dict) or "pattern" in value:
        return _entries(section, value, (key,), "")
    specs: list[PathSpec] = []
    for name, entry in value.items():
        if _named_well(section, key, name):
            specs += _entries(section, entry, (key, name), name)
    return tuple(specs)


def _named_well(section: Section, key: str, name: str) -> bool:
    if not VARIABLE.match(name):
        message = f"'{clip(name)}' cannot name an {key}"
        section.error("bad-name", message, key, name, hint="write letters, digits and _, not a digit first")
    elif name == "list" and key == "input":
        message = "an input may not be named 'list'"
        hint = "{input.list} stands for a file that lists all inputs: choose another name"
        section.error("reserved-name", message, key, name, hint=hint)
    else:
        return True
    return False


def _entries(section: Section, value: Any, path: Path, name: str) -> tuple[PathSpec, ...]:
    """One entry, or a list of them, under one name."""
    if not isinstance(value, list):
        spec = _entry(section, value, path, name)
        return () if spec is None else (spec,)
    found = [_entry(section, entry, (*path, index), name) for index, entry in enumerate(value)]
    return tuple(spec for spec in found if spec is not None)


def _entry(section: Section, value: Any, path: Path, name: str) -> PathSpec | None:
    if isinstance(value, str):
        text = line(section, value, Kind.PATH, path)
        return None if text is None else PathSpec(text=text, name=name, place=section.place(*path))
    if not isinstance(value, dict):
        wrong(section, value, _ENTRY, path)
        return None
    got = take(section.inner(value, *path), FOLDER, "{ path, pattern }")
    for key in FOLDER:
        if key not in value:
            section.error("missing-key", f"'{key}' is missing in this {{ path, pattern }}", *path)
    if len(got) < len(FOLDER):
        return None
    return PathSpec(text=got["path"], pattern=got["pattern"], name=name, place=section.place(*path))


def fan_in(section: Section) -> tuple[FanIn, ...]:
    """The entries of `expand_inputs`; a single table is taken as a list of one."""
    value = section.table.get("expand_inputs")
    if value is None:
        return ()
    if isinstance(value, dict):
        found = [_expansion(section, value, ("expand_inputs",))]
    elif isinstance(value, list):
        found = [_expansion(section, each, ("expand_inputs", at)) for at, each in enumerate(value)]
    else:
        wrong(section, value, Kind.FAN_IN, ("expand_inputs",))
        return ()
    return tuple(each for each in found if each is not None)


def _expansion(section: Section, value: Any, path: Path) -> FanIn | None:
    if table(section, value, "{ pattern, variables }", path) is None:
        return None
    inner = section.inner(value, *path)
    got = take(inner, FAN_IN, "expand_inputs")
    for key in ("pattern", "variables"):
        if key not in value:
            section.error("missing-key", f"'{key}' is missing in this entry of expand_inputs", *path)
    name = got.get("name", "")
    if "pattern" not in got or "variables" not in got or (name and not _named_well(inner, "input", name)):
        return None
    variables = [
        (variable, taken)
        for variable, given in got["variables"].items()
        if (taken := _variable(inner, got["pattern"], variable, given)) is not None
    ]
    return FanIn(pattern=got["pattern"], variables=tuple(variables), name=name, place=section.place(*path))


def _variable(section: Section, pattern: str, variable: str, given: Any) -> tuple[Any, ...] | str | None:
    """A text as it is (`config.key`, a key or a literal); one other literal as a list of one."""
    path = ("variables", variable)
    if not VARIABLE.match(variable):
        section.error("bad-name", f"'{clip(variable)}' cannot name a variable", *path)
        return None
    if f"{{{variable}}}" not in pattern and "{config." not in pattern:
        message = f"the pattern does not hold {{{clip(variable)}}}, so this variable has no effect"
        section.warn("no-effect", message, *path)
        return None
    wanted = "a text, a number or a list of them"
    if not isinstance(given, list):
        taken = scalar(section, given, path, wanted)
        return taken if taken is None or isinstance(taken, str) else (taken,)
    each = [scalar(section, item, (*path, at), wanted) for at, item in enumerate(given)]
    return tuple(item for item in each if item is not None)

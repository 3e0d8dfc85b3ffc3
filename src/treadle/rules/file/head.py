"""What stands above the rules: `[workflow]` and `[defaults]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from treadle.base.place import Place
from treadle.plan.task import Shell
from treadle.rules.file.rule_table import House
from treadle.rules.profile.layers import Layered, Layers, layered
from treadle.rules.toml.fields import DEFAULTS, INCLUDED_WORKFLOW, WORKFLOW, Kind, State
from treadle.rules.toml.kinds import line, take
from treadle.rules.toml.measures import NO_LIMIT
from treadle.rules.toml.resource_table import Defaults
from treadle.rules.toml.section import Section, clip
from treadle.rules.toml.tables import Tables

_FORMAT = "1.0"
_NAMELESS = 'give it one: [workflow] name = "..."; a file that another one includes is checked with that one'
_KEPT = ("report", "citation", "reference_db", "metadata")
# Wildcards that a pattern of discovery must hold.
_MUST_HOLD = {"sample_pattern": ("sample",), "pairs_pattern": ("pair_id", "experiment", "control")}


class Head(Struct, frozen=True, kw_only=True):
    """The head of a workflow.

    `sheets` are (what it holds, path, place); `about` is what only the report shows. `defaults` are those of
    the workflow and of its profiles.
    """

    name: str
    house: House
    defaults: Layered
    interpreters: dict[str, str]
    on_end: str
    sample_pattern: str
    pairs_pattern: str
    sheets: tuple[tuple[str, str, Place], ...]
    about: dict[str, Any]


def read_head(tables: Tables, layers: Layers) -> Head:
    """The head of a workflow; everything wrong with it is reported."""
    section = tables.one("workflow")
    got = take(section, WORKFLOW, "[workflow]")
    if "name" not in section.table:
        section.error("missing-key", "the workflow has no name", hint=_NAMELESS)
    defaults = layered(layers.of("defaults", tables.one("defaults")), DEFAULTS, "[defaults]")
    return _head(tables, section, got, defaults, None)


def read_included_head(way: Sequence[Tables], layers: Layers, above: Head) -> Head:
    """The head of an included file; `way` leads to it from the main file, `above` is the head of the file
    that includes it, and holds where it says nothing."""
    section = way[-1].one("workflow")
    got = take(section, INCLUDED_WORKFLOW, "[workflow]")
    own = [tables.one("defaults") for tables in way]
    defaults = layered(layers.of("defaults", *own), DEFAULTS, "[defaults]")
    return _head(way[-1], section, got, defaults, above)


def _head(
    tables: Tables, section: Section, got: dict[str, Any], defaults: Layered, above: Head | None
) -> Head:
    _check_words(section, got)
    for key, needed in _MUST_HOLD.items():
        _check_pattern(section, got, key, needed)
    sheets = (("pairs", "pairs_file"), ("samples", "sample_groups_file"))
    return Head(
        name=got.get("name", ""),
        house=_house(section, got, defaults, tables.one("defaults"), above),
        defaults=defaults,
        interpreters={**(above.interpreters if above else {}), **_interpreters(section, got)},
        on_end=got.get("on_end", ""),
        sample_pattern=got.get("sample_pattern", ""),
        pairs_pattern=got.get("pairs_pattern", ""),
        sheets=tuple((holds, got[key], section.place(key)) for holds, key in sheets if key in got),
        about=_about(tables, got),
    )


def _about(tables: Tables, got: dict[str, Any]) -> dict[str, Any]:
    about = {key: value for key, value in got.items() if WORKFLOW[key].state is State.REPORT}
    for name in _KEPT:
        if name in tables.document.values:
            about[name] = tables.document.values[name]
    return about


def _check_words(section: Section, got: dict[str, Any]) -> None:
    if got.get("format_version", _FORMAT) != _FORMAT:
        message = f"this Treadle reads format {_FORMAT}, not '{clip(got['format_version'])}'"
        section.error("format-version", message, "format_version")
    mode = got.get("profile_mode", "fill")
    if mode not in ("fill", "override"):
        message = f'\'{clip(mode)}\' is not a profile mode: write "fill" or "override"'
        section.error("bad-value", message, "profile_mode")


def _check_pattern(section: Section, got: dict[str, Any], key: str, needed: tuple[str, ...]) -> None:
    for name in needed if key in got else ():
        if f"{{{name}}}" not in got[key] and "{config." not in got[key]:
            section.error("bad-value", f"this pattern does not hold {{{name}}}", key)


def _house(
    section: Section, got: dict[str, Any], defaults: Layered, own: Section, above: Head | None
) -> House:
    """What holds for the rules of a file; `own` are its own defaults."""
    said = defaults.values
    shell = above.house.shell if above else Shell()
    executable = said.get("shell_executable", got.get("shell_executable", shell.executable))
    if above and "shell_executable" in got and "shell_executable" not in own.table:
        executable = got["shell_executable"]  # what the file says itself is nearer than what holds around it
    if got.get("shell_executable", executable) != executable:
        message = "[workflow] and [defaults] name different shells"
        defaults.origins["shell_executable"].error(
            "said-twice", message, "shell_executable", hint="name it once"
        )
    limit = said.get("digest_limit", House().digest_limit)
    memory = str(defaults.origins["memory"].table["memory"]).strip() if "memory" in said else ""
    return House(
        defaults=Defaults(said.get("threads", 1), said.get("memory"), memory, said.get("time_limit")),
        shell=Shell(executable, got.get("strict_shell", shell.strict), said.get("shell_prelude", "")),
        digest_limit=None if limit == NO_LIMIT else limit,
    )


def _interpreters(section: Section, got: dict[str, Any]) -> dict[str, str]:
    """`interpreter_map`: what a script file ends in -> what runs it."""
    inner = section.inner(got.get("interpreter_map", {}), "interpreter_map")
    found: dict[str, str] = {}
    for ending, value in inner.table.items():
        if inner.strayed(ending):
            continue
        if not ending.startswith(".") or len(ending) > 64:
            message = f"'{clip(ending)}' is not what a file name ends in"
            inner.error("bad-name", message, ending, hint='begin it with a dot: ".m" = "octave"')
        elif (program := line(inner, value, Kind.TEXT, (ending,))) is not None:
            found[ending] = program
    return found

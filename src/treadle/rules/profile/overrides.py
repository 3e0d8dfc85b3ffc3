"""Resources that stand above those of the rules: of profiles, and of `--set` for one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.place import Place
from treadle.plan.task import Resources
from treadle.rules.profile.layers import Profile
from treadle.rules.toml.fields import OVERRIDE, RESOURCES, Kind
from treadle.rules.toml.kinds import take, wrong
from treadle.rules.toml.lines import Spot
from treadle.rules.toml.resource_table import resource_values
from treadle.rules.toml.section import Findings, Section, clip

COMMAND_LINE = "the command line"
_TABLES = (Kind.TABLE, Kind.COUNTS)


class Override(Struct, frozen=True, kw_only=True):
    """Resources of the rules whose names match `pattern`, by the names that `Resources` has for them.

    `memory_text` is the memory as written. `asked`: that no rule matches is an error; `near`: it is odd.
    """

    pattern: str
    values: dict[str, Any]
    memory_text: str = ""
    place: Place = Place()
    asked: bool = False
    near: bool = False

    @property
    def is_exact(self) -> bool:
        return not any(letter in self.pattern for letter in "*?[")


def overridden(
    rule: str, asked: Resources, memory_text: str, overrides: Sequence[Override]
) -> tuple[Resources, str]:
    """What a rule asks for, and its memory as written, once all that stands above it was heard."""
    for one in overrides:
        if one.values and fnmatchcase(rule, one.pattern):
            asked = replace(asked, **one.values)
            memory_text = one.memory_text or memory_text
    return asked, memory_text


def read_overrides(
    profiles: Iterable[Profile], settings: Iterable[tuple[str, str, str]], flowdir: str, findings: Findings
) -> tuple[Override, ...]:
    """All overrides, those that count least first; `settings` are (rule, field, text) of the command line.

    In one profile a name counts more than a pattern.
    """
    found: list[Override] = []
    for profile in profiles:
        found += sorted(_of_profile(profile, flowdir), key=lambda one: one.is_exact)
    return (*found, *(_of_setting(*one, findings) for one in settings))


def check_overrides(overrides: Iterable[Override], rules: Sequence[str], findings: Findings) -> None:
    """Report overrides that no rule matches, where that is sure to be a mistake."""
    for one in overrides:
        if not (one.asked or one.near) or any(fnmatchcase(rule, one.pattern) for rule in rules):
            continue
        message = f"there is no rule '{clip(one.pattern)}'"
        hint = findings.guess(one.pattern, rules)
        if one.asked:
            findings.error("unknown-rule", message, one.place, hint)
        else:
            findings.warn("unknown-rule", f"{message}, so this has no effect", one.place, hint)


def _of_profile(profile: Profile, flowdir: str) -> Iterator[Override]:
    section = profile.tables.one("rules")
    near = profile.file.startswith(f"{flowdir}/")
    for pattern, value in section.table.items():
        if not isinstance(value, dict):
            wrong(section, value, "a table [rules.NAME.resources]", (pattern,))
            continue
        rule = section.inner(value, pattern)
        got = take(rule, OVERRIDE, f"[rules.{clip(pattern)}] in a profile")
        inner = rule.inner(got.get("resources", {}), "resources")
        yield Override(
            pattern=pattern,
            values=resource_values(inner, take(inner, RESOURCES, "resources")),
            memory_text=str(inner.table.get("memory", "")).strip(),
            place=rule.place(),
            near=near,
        )


def _of_setting(rule: str, key: str, text: str, findings: Findings) -> Override:
    """`--set RULE.KEY=TEXT`: the text is read by the kind of the field."""
    section = Section({}, Spot(), f"--set {rule}", COMMAND_LINE, findings)
    field = RESOURCES.get(key)
    if field is not None and field.kind in _TABLES:
        section.error("bad-value", f"'{key}' is a table and cannot be set here", key, hint="use a profile")
        return Override(pattern=rule, values={}, place=section.place(), asked=True)
    section.table[key] = _typed(text, field.kind if field is not None else Kind.TEXT)
    values = resource_values(section, take(section, RESOURCES, "resources"))
    return Override(
        pattern=rule,
        values=values,
        memory_text=text.strip() if key == "memory" else "",
        place=section.place(),
        asked=True,
    )


def _typed(text: str, kind: Kind) -> Any:
    if kind in (Kind.COUNT, Kind.NATURAL) and text.isascii() and text.isdecimal() and len(text) < 19:
        return int(text)
    return [text] if kind is Kind.TEXTS else text

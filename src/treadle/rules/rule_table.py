"""One `[[rules]]` table as a Rule: its fields typed, what it cannot mean refused."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from treadle.base.names import RULE_NAME
from treadle.plan.task import Policy, Shell
from treadle.rules.fields import RULE
from treadle.rules.kinds import NAME, VARIABLE, scalar, take, wrong
from treadle.rules.rule_paths import fan_in, files
from treadle.rules.rule_resources import Defaults, resources
from treadle.rules.schema import PathSpec, Rule
from treadle.rules.section import Section, clip, found
from treadle.rules.shell_traps import hidden_failure

_TEXTS = (
    "shell",
    "script",
    "interpreter",
    "when",
    "log",
    "benchmark",
    "pre_exec",
    "on_success",
    "on_failure",
)
_POLICY = (
    *("retries", "retry_delay", "retry_memory", "retry_time", "priority", "required", "optional", "target"),
    *("resumable", "restartable", "signal_before_end", "oom_ok", "description", "tags"),
)
# Fields that, found below [rules.params] and missing above it, were surely meant for the rule.
_SURELY_A_FIELD = frozenset({"input", "output", "expand_inputs", "shell", "script", "depends_on", "when"})
# Fields whose names are good names for a parameter, too.
_GOOD_NAMES = frozenset({"name", "threads", "memory", "group", "tags", "priority", "target", "description"})
_HINTS = {
    "pipe": "this pipe hides the failure of all its commands but the last",
    "several": "of these commands only the failure of the last one counts",
}


class House(Struct, frozen=True, kw_only=True):
    """What holds for every rule of the file: defaults, the shell, the digest limit."""

    defaults: Defaults = Defaults()
    shell: Shell = Shell()
    digest_limit: int | None = 64 * 1024 * 1024


def rule(section: Section, house: House) -> Rule:
    """The rule that the table says; everything wrong with it is reported on the way."""
    got = take(section, RULE, "a rule")
    _check_name(section, got)
    inputs, outputs, gathered = files(section, "input"), files(section, "output"), fan_in(section)
    asked, memory_text = resources(section, got, house.defaults)
    params, envvars = _params(section, got), _envvars(section, got)
    _check_command(section, got, house.shell)
    _check_outputs(section, outputs)
    place = section.place()
    return Rule(
        name=got.get("name", ""),
        inputs=inputs,
        outputs=outputs,
        fan_in=gathered,
        params=params,
        envvars=envvars,
        depends_on=got.get("depends_on", ()),
        ancient=_meant(got.get("ancient", ()), inputs),
        temporary=got.get("temporary", False),
        temp_output=_temporary(section, got, outputs),
        resources=asked,
        memory_text=memory_text,
        policy=_policy(got, house),
        metadata=got.get("rule_metadata", {}),
        place=place,
        places=_places(section),
        **{key: got[key] for key in _TEXTS if key in got},
    )


def _check_name(section: Section, got: dict[str, Any]) -> None:
    if "name" not in section.table:
        section.error("missing-key", "this rule has no name", hint='give it one: name = "align"')
    elif "name" in got and not RULE_NAME.match(got["name"]):
        hint = "write letters, digits, _ and -, and no digit or - first"
        section.error("bad-name", f"'{clip(got['name'])}' cannot name a rule", "name", hint=hint)


def _check_command(section: Section, got: dict[str, Any], shell: Shell) -> None:
    """A rule with outputs needs a command; one with inputs alone is a target such as `all`."""
    table = section.table
    text = got.get("shell", "")
    if not text.strip() and not table.get("script") and not _lost(section, "shell", "script"):
        if table.get("output"):
            hint = "give it 'shell' or 'script'; a rule that only gathers has inputs and no outputs"
            section.error("no-command", "this rule has outputs, but no command makes them", hint=hint)
        elif not table.get("input") and not table.get("expand_inputs") and not _lost(section, "input"):
            section.error("empty-rule", "this rule has no inputs, no outputs and no command")
    if "interpreter" in got and "script" not in table:
        section.warn("no-effect", "'interpreter' has no effect without 'script'", "interpreter")
    if not shell.strict and text and (why := hidden_failure(text, shell.prelude)):
        hint = "set strict_shell = true in [workflow], or begin the text with: set -euo pipefail"
        section.warn("unguarded-pipe", _HINTS[why], "shell", hint=hint)


def _lost(section: Section, *keys: str) -> bool:
    """Whether one of the keys stands in a table of this rule by mistake, or is still to come.

    Both are reported where they stand; to say that the rule lacks them would be noise.
    """
    if "transform" in section.table or "extends" in section.table:
        return True
    inside = (table for table in section.table.values() if isinstance(table, dict))
    return any(key in table for table in inside for key in keys)


def _check_outputs(section: Section, outputs: tuple[PathSpec, ...]) -> None:
    seen: set[tuple[str, str]] = set()
    for spec in outputs:
        if (spec.text, spec.pattern) in seen:
            message = f"the output '{clip(spec.text)}' is named twice in this rule"
            section.findings.error("duplicate-output", message, spec.place)
        seen.add((spec.text, spec.pattern))


def _params(section: Section, got: dict[str, Any]) -> dict[str, Any]:
    inner = section.inner(got.get("params", {}), "params")
    taken: dict[str, Any] = {}
    for key, value in inner.table.items():
        if _stray(section, inner, key) or not _key_ok(inner, key, NAME.match(key), "a parameter"):
            continue
        wanted = "a text, number, boolean or list of them"
        if isinstance(value, list):
            each = [scalar(inner, item, (key, at), wanted) for at, item in enumerate(value)]
            taken[key] = tuple(item for item in each if item is not None)
        elif (one := scalar(inner, value, (key,), wanted)) is not None:
            taken[key] = one
    return taken


def _envvars(section: Section, got: dict[str, Any]) -> dict[str, str]:
    inner = section.inner(got.get("envvars", {}), "envvars")
    taken: dict[str, str] = {}
    for key, value in inner.table.items():
        if _stray(section, inner, key) or not _key_ok(inner, key, VARIABLE.match(key), "a variable"):
            continue
        if key.startswith("TREADLE_"):
            inner.error("reserved-name", f"'{clip(key)}' is a variable of the engine", key)
        elif isinstance(value, list | dict):
            wrong(inner, value, "a text or a number", (key,))
        elif (one := scalar(inner, value, (key,), "a text or a number")) is not None:
            taken[key] = found(one) if isinstance(one, bool) else str(one)
    return taken


def _key_ok(section: Section, key: str, fits: re.Match[str] | None, what: str) -> bool:
    if fits and len(key) <= 255:
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


def _meant(entries: tuple[str, ...], specs: tuple[PathSpec, ...]) -> tuple[str, ...]:
    """Entries that name an input or output by its name, as the paths they stand for."""
    named: dict[str, list[str]] = {}
    for spec in specs:
        if spec.name:
            named.setdefault(spec.name, []).append(spec.text)
    return tuple(text for entry in entries for text in named.get(entry, [entry]))


def _temporary(section: Section, got: dict[str, Any], outputs: tuple[PathSpec, ...]) -> tuple[str, ...]:
    entries = _meant(got.get("temp_output", ()), outputs)
    texts = {spec.text for spec in outputs}
    for entry in entries:
        # `{config.x}` may make two spellings one path: that is seen only when it is filled
        if entry not in texts and "{config." not in entry and not any("{config." in text for text in texts):
            message = f"'{clip(entry)}' is not an output of this rule, so it is never removed"
            section.warn(
                "no-effect", message, "temp_output", hint=section.findings.guess(entry, sorted(texts))
            )
    return entries


def _policy(got: dict[str, Any], house: House) -> Policy:
    return Policy(
        shell=house.shell,
        digest_limit=house.digest_limit,
        **{key: got[key] for key in _POLICY if key in got},
    )


def _places(section: Section) -> dict[str, Any]:
    """The place of each key of the rule, and of each key of its tables (`resources.memory`)."""
    places = {}
    for key, value in section.table.items():
        places[key] = section.place(key)
        if isinstance(value, dict):
            for inner in value:
                places[f"{key}.{inner}"] = section.place(key, inner)
    return places

"""One `[[rules]]` table as a Rule: its fields typed, what it cannot mean refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from treadle.base.names import RULE_NAME
from treadle.plan.environment import Environment
from treadle.plan.task import CHECKSUMS, Policy, Shell
from treadle.rules.environment.choose import Choice
from treadle.rules.file.checkpoint_fields import checkpoint
from treadle.rules.file.naming import joined
from treadle.rules.file.rule_paths import fan_in, files
from treadle.rules.file.rule_values import envvars, metadata, params
from treadle.rules.profile.overrides import Override, overridden
from treadle.rules.schema import PARTS, PathSpec, Rule
from treadle.rules.toml.fields import RULE
from treadle.rules.toml.kinds import take
from treadle.rules.toml.resource_table import Defaults, resources
from treadle.rules.toml.section import Section, clip
from treadle.rules.toml.shell_traps import warn_hidden

_TEXTS = (
    *("shell", "script", "interpreter", "when", "log", "benchmark"),
    *("pre_exec", "on_success", "on_failure"),
)
_POLICY = (
    *("retries", "retry_delay", "retry_memory", "retry_time", "priority", "required", "optional", "target"),
    *("resumable", "restartable", "signal_before_end", "oom_ok", "description", "tags"),
    *("localrule", "group"),
)
_OPEN = re.compile(r"\{config\.|[*?\[]|^\./|//|/\./|\.\./")  # texts that may be spelled in another way, too


class House(Struct, frozen=True, kw_only=True):
    """What holds for every rule of the file: defaults, the shell, the digest limit.

    `secrets` are the variables of sensitive values that the prelude reads. `overrides` are resources that
    stand above those of the rules. `module` is the number of the file, and `namespace` what the names of its
    rules begin with. `environments` are what rules may run in.
    """

    module: int = 0
    namespace: str = ""

    defaults: Defaults = Defaults()
    shell: Shell = Shell()
    secrets: tuple[str, ...] = ()
    digest_limit: int | None = 64 * 1024 * 1024
    overrides: tuple[Override, ...] = ()
    environments: Choice | None = None


def rule(section: Section, house: House, *, extends: str = "", template: bool = False) -> Rule:
    """The rule that the table says; everything wrong with it is reported on the way.

    `extends` is the full name of the rule that it takes fields of. A `template` needs no command.
    """
    got = take(section, RULE, "a rule")
    name = joined(house.namespace, got["name"]) if "name" in got else ""
    _check_name(section, got)
    inputs, outputs, gathered = files(section, "input"), files(section, "output"), fan_in(section)
    asked, memory_text = overridden(name, *resources(section, got, house.defaults), house.overrides)
    if not template:
        _check_command(section, got, house.shell)
    _check_outputs(section, outputs)
    _check_signal(section, got, asked.time_limit)
    _check_scratch(section, got)
    _check_checksum(section, got, outputs)
    choice = house.environments
    environment = choice.of_rule(section, got, asked.gpus) if choice is not None else None
    manifest, adds = checkpoint(section, got)
    return Rule(
        name=name,
        module=house.module,
        extends=extends,
        pin=section.home("script").findings.pin,
        inputs=inputs,
        outputs=outputs,
        fan_in=gathered,
        params=params(section, got),
        envvars=envvars(section, got),
        depends_on=got.get("depends_on", ()),
        ancient=_chosen(section, got, "ancient", inputs, [one.pattern for one in gathered]),
        temporary=got.get("temporary", False),
        temp_output=_chosen(section, got, "temp_output", outputs),
        protected=_protected(section, got, outputs),
        resources=asked,
        memory_text=memory_text,
        policy=_shared(_policy(got, house, environment)),
        secrets=house.secrets,
        manifest=manifest,
        adds=adds,
        metadata=metadata(section, got),
        part_resources={
            part: overridden(f"{name}.{part}", asked, memory_text, house.overrides)
            for part in (PARTS if "transform" in got and house.overrides else ())
        },
        **_divided(section, got, outputs, house),
        place=section.place(),
        places=_places(section),
        **{key: got[key] for key in _TEXTS if key in got},
    )


def _divided(
    section: Section, got: dict[str, Any], outputs: tuple[PathSpec, ...], house: House
) -> dict[str, Any]:
    """What makes several rules of one."""
    if "scatter" not in got and "transform" not in got:
        return {}
    from treadle.rules.file.rule_parts import scatter, transform  # most rules have neither

    return {
        "scatter": scatter(section, got, outputs),
        "transform": transform(section, got, outputs, house.shell),
    }


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
    said = text.strip() or table.get("script") or ("shell" in table and "shell" not in got)
    if not said and not _lost(section, "shell", "script"):
        if table.get("output"):
            hint = "give it 'shell' or 'script'; a rule that only gathers has inputs and no outputs"
            section.error("no-command", "this rule has outputs, but no command makes them", hint=hint)
        elif not table.get("input") and not table.get("expand_inputs") and not _lost(section, "input"):
            section.error("empty-rule", "this rule has no inputs, no outputs and no command")
    if "interpreter" in got and "script" not in table:
        section.warn("no-effect", "'interpreter' has no effect without 'script'", "interpreter")
    if "transform" not in table:
        warn_hidden(section, text, shell, "shell")


def _lost(section: Section, *keys: str) -> bool:
    """Whether one of the keys is mistyped, stands in a table of this rule by mistake, or is still to come.

    All are reported where they stand; to say that the rule lacks them would be noise.
    """
    if "transform" in section.table:
        return True
    guesses = [section.findings.guess(key, RULE) for key in section.table if key not in RULE]
    if any(f"'{key}'" in guess for guess in guesses for key in keys):
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


def _meant(entries: tuple[str, ...], specs: tuple[PathSpec, ...]) -> tuple[str, ...]:
    """Entries that name an input or output by its name, as the paths they stand for."""
    named: dict[str, list[str]] = {}
    for spec in specs:
        if spec.name:
            named.setdefault(spec.name, []).append(spec.text)
    return tuple(text for entry in entries for text in named.get(entry, [entry]))


def _chosen(
    section: Section, got: dict[str, Any], key: str, specs: tuple[PathSpec, ...], others: Sequence[str] = ()
) -> tuple[str, ...]:
    """The inputs or outputs that a field chooses, as paths; one that chooses nothing is named.

    `{config.x}` and globs may make one path of two spellings, which is seen only when they are filled.
    """
    entries = _meant(got.get(key, ()), specs)
    texts = sorted({*(spec.text for spec in specs), *others})
    if any(_OPEN.search(text) for text in (*texts, *entries)):
        return entries
    for entry in entries:
        if entry not in texts:
            what = "an input" if key == "ancient" else "an output"
            message = f"'{clip(entry)}' is not {what} of this rule, so it has no effect"
            section.warn("no-effect", message, key, hint=section.findings.guess(entry, texts))
    return tuple([entry for entry in entries if entry in texts])


def _check_checksum(section: Section, got: dict[str, Any], outputs: tuple[PathSpec, ...]) -> None:
    asked = got.get("checksum", "")
    if asked and asked not in CHECKSUMS:
        hint = section.findings.guess(asked, CHECKSUMS) or f"one of: {', '.join(CHECKSUMS)}"
        section.error(
            "bad-value", f"'{clip(asked)}' is no checksum that is known here", "checksum", hint=hint
        )
    elif asked and not outputs:
        section.warn("no-effect", "'checksum' has no effect without outputs", "checksum")


def _protected(section: Section, got: dict[str, Any], outputs: tuple[PathSpec, ...]) -> tuple[str, ...]:
    """The outputs that become read-only; one that is to be removed cannot be among them."""
    chosen = _chosen(section, got, "protected_output", outputs)
    going = _meant(got.get("temp_output", ()), outputs)
    if chosen and (got.get("temporary") or not set(chosen).isdisjoint(going)):
        message = "an output cannot be both protected and temporary"
        section.error("said-twice", message, "protected_output")
    return chosen


def _check_signal(section: Section, got: dict[str, Any], limit: int | None) -> None:
    before = got.get("signal_before_end")
    if before is not None and limit is None:
        message = "'signal_before_end' has no effect without a time_limit"
        section.warn("no-effect", message, "signal_before_end")
    elif before is not None and limit is not None and before >= limit:
        message = f"the signal would come {before} s before the end, but there are only {limit} s"
        section.error("out-of-range", message, "signal_before_end")


def _check_scratch(section: Section, got: dict[str, Any]) -> None:
    """`shadow` is another name of `scratch`; what goes on from earlier outputs does not find them there."""
    said = [key for key in ("scratch", "shadow") if got.get(key)]
    if len(said) == 2 and got["scratch"] != got["shadow"]:
        message = "'shadow' is another name of 'scratch', and they do not say the same"
        section.error("said-twice", message, "shadow", hint="keep one of them")
    if said and got.get("resumable"):
        message = f"'{said[0]}' and 'resumable' do not go together: each attempt begins in an empty folder"
        section.error("not-together", message, said[0], hint="take one of them out")


def _policy(got: dict[str, Any], house: House, environment: Environment | None) -> Policy:
    pack, pack_time = got.get("pack", (0, 0))
    missing, missing_part = got.get("allow_missing", (0, 0.0))
    return Policy(
        shell=house.shell,
        checksum=got.get("checksum", ""),
        environment=environment,
        digest_limit=house.digest_limit,
        pack=pack,
        pack_time=pack_time,
        allow_missing=missing,
        allow_missing_part=missing_part,
        scratch=got.get("scratch") or got.get("shadow") or "",
        **{key: got[key] for key in _POLICY if key in got},
    )


@lru_cache(maxsize=256)
def _shared(policy: Policy) -> Policy:
    """The first of policies that are equal: thousands of rules are treated alike."""
    return policy


def _places(section: Section) -> dict[str, Any]:
    """The place of each key of the rule, and of each key of its tables (`resources.memory`)."""
    places = {}
    for key, value in section.table.items():
        places[key] = section.place(key)
        if isinstance(value, dict):
            for inner in value:
                places[f"{key}.{inner}"] = section.place(key, inner)
    return places

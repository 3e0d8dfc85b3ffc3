"""What may run at a time: `[[execution_group]]`, rules one after the other, and `[resource_budget]`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from treadle.base.units import format_size
from treadle.plan.task import Ceilings, ExecutionGroup
from treadle.rules.file.naming import joined, meant
from treadle.rules.file.parts import Part
from treadle.rules.schema import Rule
from treadle.rules.toml.fields import BUDGET, EXECUTION_GROUP
from treadle.rules.toml.kinds import take
from treadle.rules.toml.section import Findings, Section, clip

_MODES = ("parallel", "sequential")
_LIMITS = ("threads", "memory", "jobs")


def execution_groups(parts: Iterable[Part], rules: Sequence[Rule]) -> tuple[ExecutionGroup, ...]:
    """The sequential groups of all files, with full names of them and of their rules.

    What is wrong with any is reported.
    """
    known = dict.fromkeys(rule.name for rule in rules)
    first: dict[str, Section] = {}
    found: list[ExecutionGroup] = []
    for part in parts:
        for section in part.tables.many("execution_group"):
            group = _group(section, part.namespace, known)
            if group is None:
                continue
            other = first.setdefault(group.name, section)
            if other is not section:
                message = f"two execution groups are named '{clip(group.name)}'"
                section.error(
                    "duplicate-name", message, "name", hint=f"the first is at {other.place('name')}"
                )
            elif section.table.get("mode") == "sequential":
                found.append(group)
    return tuple(found)


def _group(section: Section, namespace: str, known: Collection[str]) -> ExecutionGroup | None:
    got = take(section, EXECUTION_GROUP, "an execution group")
    for key in ("name", "rules"):
        if key not in section.table:
            section.error("missing-key", f"this execution group has no {key}")
    mode = got.get("mode", "parallel")
    if mode not in _MODES:
        hint = section.findings.guess(mode, _MODES) or 'write "parallel" or "sequential"'
        section.error("bad-value", f"'{clip(mode)}' is not a mode of an execution group", "mode", hint=hint)
    elif "mode" not in section.table:
        message = "this execution group has no effect: without a mode its rules run side by side"
        section.warn("no-effect", message, hint='for one after the other: mode = "sequential"')
    rules = tuple([meant(name, namespace, known) for name in got.get("rules", ())])
    for at, name in enumerate(rules):
        if name not in known:
            hint = section.findings.guess(name, known)
            section.error("unknown-rule", f"there is no rule '{clip(name)}'", "rules", at, hint=hint)
        elif name in rules[:at]:
            section.error("said-twice", f"rule '{clip(name)}' stands here twice", "rules", at)
    if "name" not in got or "rules" not in got or len(set(rules)) < len(rules):
        return None
    return ExecutionGroup(joined(namespace, got["name"]), rules)


def resource_budget(section: Section, rules: Iterable[Rule], findings: Findings) -> Ceilings | None:
    """The ceilings of `[resource_budget]`; a rule that asks for more than one is reported."""
    got = take(section, BUDGET, "[resource_budget]")
    for key in _LIMITS:
        other = f"max_{key}"
        if other in got and got.setdefault(key, got[other]) != got[other]:
            section.error("said-twice", f"'{other}' and '{key}' mean the same, but differ here", other)
    if not got:
        return None
    ceilings = Ceilings(**{key: got[key] for key in _LIMITS if key in got})
    for rule in rules:
        _check(rule, ceilings, findings)
    return ceilings


def _check(rule: Rule, ceilings: Ceilings, findings: Findings) -> None:
    """A task that asks for more than there may ever be would wait for ever."""
    asked = rule.resources
    beyond = []
    if ceilings.threads is not None and asked.threads > ceilings.threads:
        beyond.append(("threads", f"{asked.threads} threads", f"{ceilings.threads}"))
    if ceilings.memory is not None and (asked.memory or 0) > ceilings.memory:
        size = format_size(asked.memory or 0)
        beyond.append(("memory", f"{size} of memory", format_size(ceilings.memory)))
    for key, wanted, most in beyond:
        place = next(
            (rule.places[one] for one in (f"resources.{key}", key) if one in rule.places), rule.place
        )
        message = f"rule {rule.name} asks for {wanted}, but [resource_budget] allows {most} in all"
        findings.error("beyond-budget", message, place, "ask for less, or raise [resource_budget]")

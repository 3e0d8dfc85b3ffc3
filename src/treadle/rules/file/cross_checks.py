"""Checks that need more than one rule: names, `depends_on`, counted resources."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from treadle.rules.schema import Rule
from treadle.rules.toml.section import Findings, clip


def check_rules(
    rules: Sequence[Rule], templates: Collection[str], pools: Sequence[tuple[str, int]], findings: Findings
) -> None:
    """Report what is wrong between rules; `templates` are the names of those that make no tasks."""
    first: dict[str, Rule] = {}
    for rule in rules:
        known = first.setdefault(rule.name, rule) if rule.name else rule
        if known is not rule:
            message = f"two rules are named '{clip(rule.name)}'"
            hint = f"the first is at {known.place}"
            if rule.place.file != known.place.file or rule.module != known.module:
                hint += "; a namespace in [[include]] keeps the rules of two files apart"
            findings.error("duplicate-rule", message, rule.at("name"), hint)
    counted = dict(pools)
    for rule in rules:
        _check_needs(rule, first, templates, findings)
        _check_groups(rule, counted, findings)


def _check_needs(
    rule: Rule, known: Mapping[str, Rule], templates: Collection[str], findings: Findings
) -> None:
    for name in rule.depends_on:
        if name not in known:
            message = f"there is no rule '{clip(name)}' to depend on"
            findings.error("unknown-rule", message, rule.at("depends_on"), findings.guess(name, known))
        elif name == rule.name:
            findings.error("cycle", "this rule depends on itself", rule.at("depends_on"))
        elif name in templates:
            message = f"rule '{clip(name)}' has no command and is there to be extended: it makes no tasks"
            findings.error("unknown-rule", message, rule.at("depends_on"), "depend on a rule that extends it")


def _check_groups(rule: Rule, counted: Mapping[str, int], findings: Findings) -> None:
    """A task that can never have what it asks for would wait for ever."""
    for name, asked in rule.resources.groups:
        place = rule.at("resources.groups")
        if name not in counted:
            hint = findings.guess(name, counted) or f"count it: [resource_groups] {name} = {asked}"
            findings.error("unknown-group", f"there is no resource group '{clip(name)}'", place, hint)
        elif asked > counted[name]:
            message = f"this asks for {asked} of '{name}', but there are {counted[name]} in all"
            findings.error("group-too-large", message, place, "ask for less, or raise [resource_groups]")

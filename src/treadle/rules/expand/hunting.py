"""When samples are found by a pattern that rules of the workflow may feed: who has to go first."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.rules.expand.blueprint import Blueprint
from treadle.rules.expand.ordering import Feeds, Makers
from treadle.rules.expand.samples_on_disk import Hunt
from treadle.rules.expand.values import SIDES
from treadle.rules.schema import Rule
from treadle.rules.toml.section import Findings

_COHORT = frozenset(("sample", "group", "pair_id", *SIDES))
_KEYS = ("samples_", "pairs_list")


def feeders(
    hunts: Sequence[Hunt], blueprints: Sequence[Blueprint], makers: Makers, fed_by: Feeds, findings: Findings
) -> set[int]:
    """The rules that make what a hunt looks for, and all that feed those.

    One that itself needs what is hunted would turn its outputs into new samples: that is an error.
    """
    found: set[int] = set()
    for hunt in hunts:
        mine = _closure(makers.of(hunt.pattern), fed_by)
        found |= mine
        for number in sorted(mine):
            rule = blueprints[number].rule
            if not _COHORT.union(hunt.columns).isdisjoint(blueprints[number].names) or mentions(rule):
                message = f"{hunt.key} '{hunt.pattern.text}' would find what rule {rule.name} makes of them: "
                message += f"{hunt.key} -> {rule.name} -> {hunt.key}"
                hint = "write the outputs to another folder, or constrain the wildcards of the pattern"
                findings.error("discovery-circle", message, hunt.pattern.place, hint)
    return found


def _closure(numbers: set[int], fed_by: Feeds) -> set[int]:
    seen, pending = set(numbers), list(numbers)
    while pending:
        for maker in fed_by[pending.pop()]:
            if maker not in seen:
                seen.add(maker)
                pending.append(maker)
    return seen


def mentions(rule: Rule) -> bool:
    """Whether a text of the rule names a config key that lists samples."""
    texts = [rule.shell, rule.script, rule.pre_exec, rule.on_success, rule.on_failure, rule.when, rule.log]
    texts += [*map(str, rule.params.values()), *rule.envvars.values()]
    texts += [str(given) for fan in rule.fan_in for _, given in fan.variables]
    return any(key in text for key in _KEYS for text in texts)

"""Rules with `scatter` and `transform` written out as ordinary rules, before anything is expanded.

What comes behind knows nothing of them: plan, decision and schedulers see rules like all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from treadle.plan.task import ExecutionGroup
from treadle.rules.schema import FanIn, Rule, Workflow
from treadle.rules.toml.section import Findings, clip


def written_out(workflow: Workflow, findings: Findings) -> Workflow:
    """The workflow without `scatter` and `transform`: their rules have become several.

    Everything wrong with them is among the findings, at the keys of their author.
    """
    if not any(rule.scatter or rule.transform for rule in workflow.rules):
        return workflow
    gathered = _gathered(workflow.rules, findings)
    rules: list[Rule] = []
    became: dict[str, tuple[str, ...]] = {}
    for rule in workflow.rules:
        more = gathered.get(rule.name, ())
        whole = replace(rule, fan_in=(*rule.fan_in, *more)) if more else rule
        written = list(_written(whole, workflow, findings))
        became[rule.name] = tuple([one.name for one in written])
        rules += written
    return replace(workflow, rules=tuple(rules), sequences=_in_parts(workflow.sequences, became))


def _in_parts(
    groups: Iterable[ExecutionGroup], became: Mapping[str, tuple[str, ...]]
) -> tuple[ExecutionGroup, ...]:
    """The execution groups, with the parts of a rule in its place."""
    return tuple(
        ExecutionGroup(
            group.name, tuple([part for rule in group.rules for part in became.get(rule, (rule,))])
        )
        for group in groups
    )


def _written(rule: Rule, workflow: Workflow, findings: Findings) -> Iterable[Rule]:
    if rule.transform is not None:
        from treadle.rules.parts.transform import parts  # most workflows have none

        return parts(rule, rule.transform, workflow, findings)
    if rule.scatter is not None:
        return (replace(rule, scatter=None, own=rule.scatter.own),)
    return (rule,)


def _gathered(rules: Sequence[Rule], findings: Findings) -> dict[str, list[FanIn]]:
    """By rule the pieces that scattered rules hand to it: all of each output, over their own values."""
    known = {rule.name: rule for rule in rules}
    found: dict[str, list[FanIn]] = {}
    for rule in rules:
        name = rule.scatter.gather if rule.scatter else ""
        if not name:
            continue
        place = rule.at("scatter.gather")
        if name not in known or name == rule.name:
            message = f"there is no other rule '{clip(name)}' to gather the pieces"
            findings.error("unknown-rule", message, place, findings.guess(name, known))
        else:
            found.setdefault(name, []).extend(_pieces(rule, known[name]))
    return found


def _pieces(rule: Rule, reader: Rule) -> Iterable[FanIn]:
    """The outputs of a scattered rule, but for those that the reader names itself."""
    assert rule.scatter is not None
    own = rule.scatter.own
    named = {spec.text for spec in reader.inputs} | {fan.pattern for fan in reader.fan_in}
    for spec in rule.outputs:
        if spec.text not in named and not spec.pattern:
            yield FanIn(
                pattern=spec.text,
                variables=((own.variable, own.given),),
                name=spec.name,
                place=rule.at("scatter.gather"),
            )

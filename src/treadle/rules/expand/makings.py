"""The tasks that make environments: one for each that a task of the plan needs and something has to make."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.base.place import Place
from treadle.plan.task import Command, Draft, Policy, Shell
from treadle.rules.expand.trip import Expanded

_STRICT = Shell(strict=True)


def makings(rules: Sequence[Expanded], *, here: bool) -> list[Draft]:
    """Their drafts; `here`: they run where the driver runs, whatever the backend."""
    places: dict[str, Place] = {}
    found: dict[str, Draft] = {}
    for one in rules:
        rule = one.blueprint.rule
        environment = rule.policy.environment
        making = environment.making if environment is not None else None
        if making is None:
            continue
        # Of the first rule, also where that has no task as yet: what is discovered later changes no task.
        place = places.setdefault(making.task, rule.at("environment"))
        if making.task in found or all(draft.skip for draft in one.drafts):
            continue
        found[making.task] = Draft(
            rule=making.task,
            command=Command(text=making.text),
            policy=Policy(shell=_STRICT, localrule=here, description="makes an environment"),
            making=making,
            place=place,
        )
    return list(found.values())

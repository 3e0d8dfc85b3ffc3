"""What the rules of each included file are read against: the workflow's ground, with the file's own config,
constraints and interpreters."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.rules.config.config import engine_keys
from treadle.rules.expand.blueprint import Blueprint, Ground
from treadle.rules.expand.values import check_sources
from treadle.rules.pattern.constraint import read_constraints
from treadle.rules.schema import Module, Rule, Workflow


class Grounds:
    """The ground of each file of a workflow, made when the first rule of it is read."""

    def __init__(self, workflow: Workflow, ground: Ground) -> None:
        self._workflow = workflow
        self._ground = ground
        self._made: dict[int, Ground] = {0: ground}

    def of(self, rule: Rule) -> Ground:
        """What a rule is read against."""
        if rule.module not in self._made:
            self._made[rule.module] = self._own(self._workflow.includes[rule.module])
        return self._made[rule.module]

    def check_values(self, blueprints: Sequence[Blueprint]) -> None:
        """Report values of tables that do not match a constraint which only some files have, where the rules
        of such a file name them."""
        named: dict[int, set[str]] = {}
        for blueprint in blueprints:
            if blueprint.rule.module:
                named.setdefault(blueprint.rule.module, set()).update(blueprint.names)
        for number, names in named.items():
            everywhere = self._workflow.constraints
            own = {
                name: one
                for name, one in self._made[number].constraints.items()
                if name in names and one.text != everywhere.get(name)
            }
            if own:
                check_sources(self._ground.sources.all, own, self._ground.findings)

    def _own(self, module: Module) -> Ground:
        ground = self._ground
        config, constraints = ground.config, ground.constraints
        if module.config:
            config = {**config, **module.config}
            config |= engine_keys(config, ground.sources.all)
        if module.constraints != self._workflow.constraints:
            constraints = read_constraints(module.constraints, module.places, ground.findings.found)
        return replace(ground, config=config, constraints=constraints, interpreters=module.interpreters)

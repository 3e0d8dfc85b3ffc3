"""Which environment a rule has: its own, that of its group, or that of the defaults."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from treadle.plan.environment import Environment
from treadle.rules.toml.kinds import wrong
from treadle.rules.toml.section import Section, clip

if TYPE_CHECKING:
    from treadle.rules.environment.table import Environments

_COMMANDS = ("shell", "script", "transform", "build")  # what runs: a rule without any has no environment


class Choice:
    """`environments` gives what reads them, once it is needed. `groups` is `[env_groups]`, `default` the
    `environment` of `[defaults]` (None: there is none); the groups of the file around, `above`, are there as
    well."""

    def __init__(
        self,
        environments: Callable[[], Environments],
        groups: Section,
        default: Section | None,
        above: Choice | None = None,
    ) -> None:
        self._read = cache(environments)
        self._default = default
        self._groups: dict[str, Section] = dict(above._groups) if above is not None else {}
        for name, value in groups.table.items():
            if isinstance(value, dict):
                self._groups[name] = groups.inner(value, name)
                self._read().read(self._groups[name], name, 0)
            else:
                wrong(groups, value, 'a table such as { conda = "envs/qc.yml" }', (name,))
        if default is not None:
            self._read().read(default, "", 0)

    def of_rule(self, section: Section, got: dict[str, Any], gpus: int) -> Environment | None:
        """The environment of a rule with the fields `got`, whose tasks have `gpus` GPUs.

        An empty table says that there is none, whatever the defaults are.
        """
        if "environment" in got and "env_group" in got:
            message = "this rule has an 'environment' and an 'env_group'"
            section.error("several-environments", message, "env_group", hint="keep one of them")
            return None
        if "environment" in got:
            return self._read().read(section.inner(got["environment"], "environment"), "", gpus)
        if (name := got.get("env_group")) is not None:
            group = self._groups.get(name)
            if group is not None:
                return self._read().read(group, name, gpus)
            hint = section.findings.guess(name, self._groups) or f"write it: [env_groups.{clip(name)}]"
            section.error(
                "unknown-environment", f"there is no environment group '{clip(name)}'", "env_group", hint=hint
            )
            return None
        if self._default is None or not any(key in got for key in _COMMANDS):
            return None
        return self._read().read(self._default, "", gpus)

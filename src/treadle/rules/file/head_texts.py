"""The shell texts that stand above the rules, `shell_prelude` and `on_end`: config values are filled in."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from treadle.rules.config.config import Config
from treadle.rules.file.rule_table import House
from treadle.rules.profile.layers import Layered
from treadle.rules.text.command import Filling, Known, ShellTemplate
from treadle.rules.text.placeholder import Mark, scan
from treadle.rules.toml.section import Section

# What only a task has; of its resources the prelude may speak, for it runs in each task's own shell.
_OF_A_TASK = frozenset({"input", "output", "log", "params", "values", "step"})
_RESOURCES = frozenset({"threads", "memory", "effective_threads", "effective_memory_mb"})


class HeadText(Struct, frozen=True):
    """A filled text; `secrets` are the variables of sensitive values that it reads."""

    text: str = ""
    secrets: tuple[str, ...] = ()


def with_prelude(house: House, defaults: Layered, config: Config) -> House:
    """The house with the prelude of `[defaults]` filled in."""
    section = defaults.origins.get("shell_prelude")
    if section is None:
        return house
    filled = _filled(section, "shell_prelude", house.shell.prelude, config, _OF_A_TASK)
    return replace(house, shell=replace(house.shell, prelude=filled.text), secrets=filled.secrets)


def on_end_text(section: Section, text: str, config: Config) -> HeadText:
    """The `on_end` of `[workflow]`, filled in."""
    return _filled(section, "on_end", text, config, _OF_A_TASK | _RESOURCES)


def _filled(section: Section, key: str, text: str, config: Config, strange: frozenset[str]) -> HeadText:
    if "{" not in text:
        return HeadText(text)
    problems = section.findings.found
    for mark in scan(text):
        if isinstance(mark, Mark) and mark.root in strange and mark.braces % 2:
            hint = f"{{config.KEY}} can; for the text itself write {{{mark.source}}}"
            section.error(
                "bad-placeholder", f"{mark.source} is of one task and cannot stand here", key, hint=hint
            )
            return HeadText(text)
    known = Known(config=config.values, sensitive=config.sensitive)
    template = ShellTemplate.parse(text, known, section.place(key), problems)
    return HeadText(template.render(Filling(), problems), template.secrets)

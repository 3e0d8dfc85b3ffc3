"""The texts of a rule that are not paths: command, script, hooks, variables, condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from treadle.base.place import Diagnostic, Place
from treadle.rules.expand.script import Script, read_script
from treadle.rules.pattern.text import PathText
from treadle.rules.schema import Rule, Value
from treadle.rules.text.command import Filling, Known, ShellTemplate, TextTemplate
from treadle.rules.toml.section import Findings
from treadle.rules.when.condition import Condition, Scope, parse_condition
from treadle.rules.when.words import ConditionError

# A param: a template where it holds placeholders, else its value; of an array, each item so.
Param = TextTemplate | Value

HOOKS = ("pre_exec", "on_success", "on_failure")


class Use(Struct, frozen=True):
    """A wildcard in a text that stands for one value: in which text, and where that is."""

    name: str
    key: str
    place: Place


class RuleTexts(Struct, frozen=True):
    """The parsed texts. `shells` are the command (`shell`) and the hooks that the rule has.

    `uses` are the wildcards that stand in them, in a fixed order; `secrets` the variables of sensitive
    values, `steps` the paths of artifacts that stand in what is executed; `names_log` says that a text names
    `{log}`.
    """

    shells: Mapping[str, ShellTemplate]
    script: Script | None
    env: tuple[tuple[str, TextTemplate], ...]
    params: Mapping[str, Param]
    condition: Condition | None
    uses: tuple[Use, ...]
    secrets: tuple[str, ...]
    steps: tuple[str, ...]
    names_log: bool

    @property
    def names(self) -> list[str]:
        return [use.name for use in self.uses]


def read_texts(
    rule: Rule, known: Known, paths: PathText, interpreters: Mapping[str, str], findings: Findings
) -> RuleTexts:
    """Parse all texts of a rule; what is wrong with them is among the findings."""
    problems = findings.found
    shells = {
        key: ShellTemplate.parse(text, known, rule.at(key), problems)
        for key in ("shell", *HOOKS)
        if (text := getattr(rule, key))
    }
    script = read_script(rule, known, paths, interpreters, problems) if rule.script else None
    env = tuple(
        (name, TextTemplate.parse(text, known, rule.at(f"envvars.{name}"), problems))
        for name, text in rule.envvars.items()
    )
    before = {(one.code, one.message) for one in problems}
    found: list[Diagnostic] = []
    params = {
        name: _param(value, known, rule.at(f"params.{name}"), found) for name, value in rule.params.items()
    }
    # What is wrong with a param was told already where a text names it.
    problems += [one for one in found if (one.code, one.message) not in before]
    condition = _condition(rule, known, paths, findings) if rule.when else None
    templates = [*shells.values(), *([script.template] if script else []), *(one for _, one in env)]
    return RuleTexts(
        shells=shells,
        script=script,
        env=env,
        params=params,
        condition=condition,
        uses=tuple(_uses(rule, shells, script, env, params, condition)),
        secrets=tuple(
            dict.fromkeys([*rule.secrets, *(name for template in templates for name in template.secrets)])
        ),
        steps=tuple(dict.fromkeys(path for template in templates for path in template.steps)),
        names_log=any(template.uses_log for template in templates),
    )


def _param(value: Value, known: Known, place: Place, problems: list[Diagnostic]) -> Param:
    if isinstance(value, tuple):
        return tuple(_param(item, known, place, problems) for item in value)
    if not isinstance(value, str) or "{" not in value:
        return value
    return TextTemplate.parse(value, known, place, problems, lenient=True)


def rendered(param: Param, filling: Filling) -> Value:
    """The value of a param for one task, with its type."""
    if isinstance(param, tuple):
        return tuple(rendered(item, filling) for item in param)
    return param.render(filling, []) if isinstance(param, TextTemplate) else param


def _condition(rule: Rule, known: Known, paths: PathText, findings: Findings) -> Condition | None:
    place = rule.at("when")
    try:
        return parse_condition(rule.when, Scope(known.wildcards, known.config, known.params, paths), place)
    except ConditionError as wrong:
        findings.error(wrong.code, wrong.message, place, wrong.hint)
        return None


def _uses(
    rule: Rule,
    shells: Mapping[str, ShellTemplate],
    script: Script | None,
    env: Iterable[tuple[str, TextTemplate]],
    params: Mapping[str, Param],
    condition: Condition | None,
) -> Iterator[Use]:
    if condition:
        yield from _each(condition.names, "when", rule.at("when"))
    for key, template in shells.items():
        yield from _each(sorted(template.names), key, rule.at(key))
    if script:
        yield from _each(sorted(script.template.names), "script", rule.at("script"))
    for name, text in env:
        yield from _each(sorted(text.names), f"envvars.{name}", text.place)
    for name, value in params.items():
        for param in value if isinstance(value, tuple) else (value,):
            if isinstance(param, TextTemplate):
                yield from _each(sorted(param.names), f"params.{name}", param.place)


def _each(names: Iterable[str], key: str, place: Place) -> Iterator[Use]:
    return (Use(name, key, place) for name in names)

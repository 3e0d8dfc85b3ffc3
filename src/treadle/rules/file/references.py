"""`[[references]]`: artefacts that are built once, as rules `reference::NAME` of the same plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from treadle.plan.task import Policy
from treadle.rules.config.config import Config
from treadle.rules.file.naming import joined
from treadle.rules.file.parts import reference_keys
from treadle.rules.file.recipes import RECIPES, Recipe
from treadle.rules.file.rule_table import House
from treadle.rules.file.views import View
from treadle.rules.pattern.text import PathText
from treadle.rules.profile.overrides import overridden
from treadle.rules.schema import PathSpec, Rule
from treadle.rules.text.placeholder import Mark, scan, spelled
from treadle.rules.toml.fields import REFERENCE
from treadle.rules.toml.kinds import NAME, take
from treadle.rules.toml.resource_table import resources
from treadle.rules.toml.section import Findings, Section, clip
from treadle.rules.toml.shell_traps import warn_hidden

_PREFIX = "reference::"
_WORD = re.compile(r"[A-Za-z0-9_-]+\Z")  # a name of a recipe: what is run by a shell has more to it


def references(sections: Iterable[Section], house: House, config: Config) -> tuple[Rule, ...]:
    """The references as rules; everything wrong with them is reported."""
    found = [_reference(section, house, config) for section in sections]
    return tuple(rule for rule in found if rule is not None)


def _reference(section: Section, house: House, config: Config) -> Rule | None:
    got = take(section, REFERENCE, "a reference")
    for key in ("name", "output", "build"):
        if key not in section.table:
            section.error("missing-key", f"'{key}' is missing in this reference")
    if "name" in got and not NAME.match(got["name"]):
        hint = "write letters, digits, _ and -, and no digit or - first"
        section.error("bad-name", f"'{clip(got['name'])}' cannot name a reference", "name", hint=hint)
        return None
    if not all(got.get(key, "").strip() for key in ("name", "output", "build")):
        return None
    recipe = _recipe(section, got)
    if recipe is None:
        return None
    name = joined(house.namespace, f"{_PREFIX}{got['name']}")
    asked, memory_text = overridden(name, *resources(section, got, house.defaults), house.overrides)
    filled = PathText(config.values, config.sensitive, {}, [])
    source, output = (
        filled.fill_config(got.get(key, ""), section.place(key)) or got.get(key, "")
        for key in ("source", "output")
    )
    if recipe.wrong is not None and (why := recipe.wrong(source, output)):
        section.error("bad-value", why, "output")
    if recipe.own:
        warn_hidden(section, got["build"], house.shell, "build")
    places = {key: section.place(key) for key in section.table}
    return Rule(
        name=name,
        module=house.module,
        inputs=(PathSpec(text=got["source"], place=section.place("source")),) if "source" in got else (),
        outputs=tuple(
            PathSpec(text=text, place=section.place("output")) for text in recipe.outputs(source, output)
        ),
        shell=recipe.shell(source, output, asked.memory is not None),
        resources=asked,
        memory_text=memory_text,
        policy=Policy(
            shell=house.shell,
            environment=house.environments.of_rule(section, got, 0) if house.environments else None,
            digest_limit=house.digest_limit,
            description=got.get("description", ""),
        ),
        secrets=house.secrets,
        place=section.place(),
        places={**places, "shell": section.place("build")},
    )


def _recipe(section: Section, got: Mapping[str, Any]) -> Recipe | None:
    """What builds the reference: one of ours by its name, or the author's own command."""
    build = got["build"].strip()
    recipe = RECIPES.get(build)
    if recipe is None and _WORD.match(build):
        hint = section.findings.guess(build, RECIPES) or f"write a command, or one of {', '.join(RECIPES)}"
        section.error("bad-value", f"'{clip(build)}' is no recipe of ours", "build", hint=hint)
    elif recipe is not None and "source" not in section.table:
        section.error("missing-key", f"'source' is missing: what {build} reads")
    elif recipe is not None and "source" in got:
        return recipe
    elif recipe is None:
        text = _with_source(got["build"]) if "source" in got else got["build"]
        return Recipe(
            outputs=lambda source, output: (output,), shell=lambda source, output, limited: text, own=True
        )
    return None


def _with_source(build: str) -> str:
    """The author's command with `{input}` for `{source}`, which is another name for it here."""
    return "".join(
        "{input}" if isinstance(piece, Mark) and piece.source == "{source}" else _as_written(piece)
        for piece in scan(build)
    )


def _as_written(piece: str | Mark) -> str:
    return piece if isinstance(piece, str) else piece.source


def with_references(rules: Sequence[Rule], views: Sequence[View], findings: Findings) -> list[Rule]:
    """All rules; those that name the config key of a reference and read no file of it depend on it.

    A key of that name that the user set to something else is the user's.
    """
    built = [
        one
        for view in views
        for one in references(view.part.tables.many("references"), view.house, view.config)
    ]
    made: dict[str, Rule] = {}
    for rule in built:
        key = rule.name.rpartition("::")[2]
        if made.setdefault(key, rule).name != rule.name:
            message = (
                f"there is another reference '{clip(key)}', so it is not clear what config.{clip(key)} is"
            )
            findings.error("duplicate-name", message, rule.at("name"), f"the first is at {made[key].place}")
    sections = reference_keys([view.part for view in views])
    known = [_keys_of(view, sections, made) for view in views]
    return [_after(rule, known[rule.module]) for rule in (*built, *rules)]


def _keys_of(view: View, sections: Mapping[str, Section], made: Mapping[str, Rule]) -> dict[str, str]:
    """The keys that stand for references in one file, each with the rule that builds it."""
    config = view.config
    paths = PathText(config.values, config.sensitive, {}, [])
    return {
        key: made[key].name
        for key, section in sections.items()
        if key in made
        and config.values.get(key) == paths.fill_config(section.table["output"], section.place("output"))
    }


def _after(rule: Rule, known: Mapping[str, str]) -> Rule:
    read = {name for spec in rule.inputs for name in _keys(spec.text)}
    read |= {name for fan in rule.fan_in for name in _keys(fan.pattern)}
    named = dict.fromkeys(name for text in _texts(rule) for name in _keys(text))
    more = [known[name] for name in named if name in known and name not in read and known[name] != rule.name]
    return replace(rule, depends_on=tuple(dict.fromkeys((*rule.depends_on, *more)))) if more else rule


def _texts(rule: Rule) -> Iterator[str]:
    yield from (rule.shell, rule.script, rule.pre_exec, rule.on_success, rule.on_failure)
    yield from map(spelled, rule.params.values())
    yield from rule.envvars.values()
    if rule.transform is not None:
        yield rule.transform.map
        yield rule.transform.combine.shell if rule.transform.combine else ""


def _keys(text: str) -> Iterator[str]:
    """The config keys that a text names."""
    for piece in scan(text) if "config." in text else ():
        if isinstance(piece, Mark) and piece.root == "config" and piece.braces % 2:
            yield piece.attr

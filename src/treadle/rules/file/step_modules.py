"""The `[[steps]]` tables: Python files whose steps stand in one plan with the rules."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from treadle.rules.config.config import Config
from treadle.rules.pattern.text import PathText
from treadle.rules.schema import StepModule
from treadle.rules.text.placeholder import spelled
from treadle.rules.toml.fields import STEPS
from treadle.rules.toml.kinds import VARIABLE, scalar, take
from treadle.rules.toml.section import Section, clip


def step_modules(sections: Iterable[Section], config: Config) -> tuple[StepModule, ...]:
    """The tables as values, with `{config.x}` filled in; what is wrong with them is reported."""
    found = [_module(section, config) for section in sections]
    return tuple(one for one in found if one is not None)


def _module(section: Section, config: Config) -> StepModule | None:
    got = take(section, STEPS, "[[steps]]")
    if "module" not in section.table:
        section.error(
            "missing-key", "these steps have no module", hint='name their file: module = "pipeline.py"'
        )
    texts = PathText(config.values, config.sensitive, {}, section.findings.found)
    filled = {
        key: texts.fill_config(got[key], section.place(key))
        for key in ("module", "name", "prefix")
        if key in got
    }
    params = _params(section, got, texts)
    module = filled.get("module")
    if module is None:
        return None
    if not module.endswith(".py"):
        hint = (
            'the name behind the file goes into a key of its own: name = "train"' if ".py:" in module else ""
        )
        section.error("bad-value", f"'{clip(module)}' is no Python file (*.py)", "module", hint=hint)
        return None
    return StepModule(
        module=os.path.join(section.findings.root, module),
        name=filled.get("name") or "",
        prefix=filled.get("prefix") or "",
        params=params,
        place=section.place("module"),
    )


def _params(section: Section, got: dict[str, Any], texts: PathText) -> tuple[tuple[str, str], ...]:
    """What the function of the file is called with, as texts: it says itself of what type they are."""
    inner = section.inner(got.get("params", {}), "params")
    taken: list[tuple[str, str]] = []
    for key, value in inner.table.items():
        if not VARIABLE.match(key):
            inner.error("bad-name", f"'{clip(key)}' cannot name a parameter", key)
            continue
        one = scalar(inner, value, (key,), "a text, number or boolean")
        text = None if one is None else texts.fill_config(spelled(one), inner.place(key))
        if text is not None:
            taken.append((key, text))
    return tuple(taken)

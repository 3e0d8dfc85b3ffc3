"""The inputs of a rule, parsed: paths, globs, `{path, pattern}` folders and fan-in over variables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from math import prod

from msgspec import Struct

from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic, Place, Severity
from treadle.rules.config.types import listed
from treadle.rules.expand.join import MOST_ROWS
from treadle.rules.expand.values import SIDES
from treadle.rules.pattern.pattern import Pattern, Row
from treadle.rules.pattern.text import CONTROL, PathText
from treadle.rules.schema import FanIn, PathSpec, Rule, Value
from treadle.rules.text.placeholder import spelled

# Variables and config keys that list the cohort: a selection of samples narrows them.
_COHORT = ("sample", "pair_id", *SIDES)
_COHORT_KEYS = ("samples_", "pairs_list")


class Entry(Struct, frozen=True):
    """One input entry, as `written` by the author.

    `folder` is that of `{path, pattern}`; `variables` and `combos` (their values) are those of a fan-in.
    `ancient`: changes of it re-run nothing. `narrowed`: a selection of samples took values out of it.
    """

    pattern: Pattern
    written: str
    name: str = ""
    folder: Pattern | None = None
    variables: tuple[str, ...] = ()
    combos: tuple[Row, ...] = ((),)
    ancient: bool = False
    narrowed: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The wildcards of the rule that stand in it."""
        return tuple(name for name in self.pattern.names if name not in self.variables)

    @property
    def searches(self) -> bool:
        """Whether its paths have to be looked up even when all wildcards have values."""
        return self.pattern.glob or self.folder is not None

    @property
    def gathers(self) -> bool:
        """Whether all its paths count as gathered: they may be fewer when their makers are skipped."""
        return self.searches or bool(self.variables)


class Hollow(Struct, frozen=True):
    """An input that is nothing but config values, all of them empty: there is no such input then.

    `number` counts from 0, as in `{input[0]}`.
    """

    number: int
    written: str
    name: str
    place: Place


def read_inputs(
    rule: Rule, paths: PathText, config: Mapping[str, Value], unselected: Collection[str]
) -> tuple[tuple[Entry, ...], tuple[Hollow, ...]]:
    """All input entries in the author's order, those of `expand_inputs` last; and those that are left empty.

    `unselected` are the samples and pairs that a fan-in over the cohort leaves out.
    """
    hollow = tuple(
        Hollow(at, spec.text, spec.name, spec.place)
        for at, spec in enumerate(rule.inputs)
        if not spec.pattern and paths.is_hollow(spec.text)
    )
    left_out = {one.number for one in hollow}
    entries = [_entry(spec, rule, paths) for at, spec in enumerate(rule.inputs) if at not in left_out]
    entries += [_FanInReader(fan, paths, config, unselected).entry(rule) for fan in rule.fan_in]
    return tuple(entry for entry in entries if entry is not None), hollow


def _entry(spec: PathSpec, rule: Rule, paths: PathText) -> Entry | None:
    ancient = _is_ancient(rule, spec.text, spec.name)
    if not spec.pattern:
        pattern = paths.pattern(spec.text, spec.place, globs=True)
        return Entry(pattern, spec.text, spec.name, ancient=ancient) if pattern else None
    folder = paths.pattern(spec.text, spec.place)
    pattern = paths.pattern(f"{spec.text}/{spec.pattern}", spec.place, globs=True) if folder else None
    return Entry(pattern, spec.text, spec.name, folder, ancient=ancient) if pattern else None


def _is_ancient(rule: Rule, text: str, name: str) -> bool:
    return text in rule.ancient or (name != "" and name in rule.ancient)


class ListReader:
    """Reads the values that a rule gives to a variable of its own: what `place` holds, named by `what`.

    `narrowed` says afterwards that a selection of samples took values out of one of them.
    """

    def __init__(
        self,
        paths: PathText,
        config: Mapping[str, Value],
        unselected: Collection[str],
        place: Place,
        what: str,
    ) -> None:
        self.paths = paths
        self.config = config
        self.unselected = unselected
        self.place = place
        self.what = what
        self.narrowed = False

    def values(self, name: str, given: tuple[Value, ...] | str) -> list[str] | None:
        """The values of one variable, each once, in the author's order; None when something is wrong."""
        whole = self.whole(name, given)
        return whole if whole is None else self.chosen(name, given, whole)

    def whole(self, name: str, given: tuple[Value, ...] | str) -> list[str] | None:
        """The values whatever is selected; None when something is wrong. A config key may list none."""
        key = given.removeprefix("config.") if isinstance(given, str) else ""
        listed = self._listed(name, key, given)
        texts = [self.paths.fill_config(spelled(value), self.place) for value in listed or ()]
        if listed is None or None in texts:
            return None
        values = [value for value in dict.fromkeys(texts) if value]
        if not values and key not in self.config:
            self.problem("no-values", f"nothing is listed for {{{name}}} of {self.what}")
            return None
        return values if all(self._fits(name, value) for value in values) else None

    def chosen(self, name: str, given: tuple[Value, ...] | str, values: list[str]) -> list[str]:
        """Those of the values that are selected, where they list the cohort."""
        key = given.removeprefix("config.") if isinstance(given, str) else ""
        if name not in _COHORT and not key.startswith(_COHORT_KEYS):
            return values
        chosen = [value for value in values if value not in self.unselected]
        self.narrowed = self.narrowed or len(chosen) < len(values)
        return chosen

    def _listed(self, name: str, key: str, given: tuple[Value, ...] | str) -> tuple[Value, ...] | None:
        """What the author listed: a list of literals, the config value of `key`, or one literal."""
        if not isinstance(given, str):
            return given
        if key in self.paths.sensitive:
            self.problem("secret-in-path", f"config.{key} is sensitive and cannot stand in a path")
        elif key in self.config:
            return listed(self.config[key])
        elif key == given:
            return (given,)
        else:
            hint = did_you_mean(key, self.config) or "declare it in [config]"
            self.problem("unknown-config", f"there is no config key '{key}' for {{{name}}}", hint)
        return None

    def _fits(self, name: str, value: str) -> bool:
        constraint = self.paths.constraints.get(name)
        if CONTROL.search(value):
            self.problem("control-character", f"{value!r} of {{{name}}} holds a control character")
        elif constraint is not None and not constraint.fits(value):
            message = f"'{value}' of {{{name}}} does not match the constraint {constraint.text}"
            self.problem("constraint-not-met", message)
        else:
            return True
        return False

    def problem(self, code: str, message: str, hint: str = "") -> None:
        """Note what is wrong with them."""
        self.paths.problem(code, message, self.place, hint)


class _FanInReader:
    """Reads one entry of `expand_inputs`."""

    def __init__(
        self, fan: FanIn, paths: PathText, config: Mapping[str, Value], unselected: Collection[str]
    ) -> None:
        self.fan = fan
        self.paths = paths
        self.lists = ListReader(paths, config, unselected, fan.place, f"'{fan.pattern}'")

    def entry(self, rule: Rule) -> Entry | None:
        fan = self.fan
        pattern = self.paths.pattern(fan.pattern, fan.place, globs=True)
        lists = [self.lists.values(name, given) for name, given in fan.variables]
        if pattern is None or any(values is None for values in lists):
            return None
        for (name, _), values in zip(fan.variables, lists):
            if not values and not self.lists.narrowed:
                self._nothing_listed(name)
        count = prod(len(values or ()) for values in lists)
        if count > MOST_ROWS:
            self.lists.problem("too-many-rows", f"this fan-in makes {count:,} paths")
            return None
        return Entry(
            pattern,
            fan.pattern,
            fan.name,
            variables=tuple(name for name, _ in fan.variables),
            combos=tuple(product(*(values or () for values in lists))),
            ancient=_is_ancient(rule, fan.pattern, fan.name),
            narrowed=self.lists.narrowed,
        )

    def _nothing_listed(self, name: str) -> None:
        """Config lists nothing: that is how authors switch a part of a fan-in off, but it is said."""
        message = f"nothing is listed for {{{name}}} of '{self.fan.pattern}': it gives no input"
        hint = "list something in [config], or take the entry out"
        self.paths.problems.append(Diagnostic("no-values", message, self.fan.place, hint, Severity.WARNING))

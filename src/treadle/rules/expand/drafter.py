"""Making the tasks of one rule: its rows grouped by key, each group filled in and rendered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from treadle.base.place import Diagnostic
from treadle.plan.task import Command, Draft, Skip
from treadle.rules.expand.agree import Agreement
from treadle.rules.expand.blueprint import Blueprint, numbered
from treadle.rules.expand.entry_paths import EntryPaths
from treadle.rules.expand.finder import Finder
from treadle.rules.expand.join import picker
from treadle.rules.expand.rows import Rows
from treadle.rules.expand.rule_texts import HOOKS, rendered
from treadle.rules.pattern.matching import ways
from treadle.rules.pattern.pattern import Pattern, Row
from treadle.rules.text.command import Filling
from treadle.rules.text.holes import MORE
from treadle.rules.toml.section import Findings
from treadle.rules.when.terms import Setting

_NOTHING: frozenset[str] = frozenset()
_NO_VALUES: dict[str, Any] = {}


def grouped(rows: Sequence[Row], names: Sequence[str], key: Sequence[str]) -> list[Sequence[Row]]:
    """The rows of each task: those that agree in the `key`, in the order in which each key comes first."""
    if len(key) == len(names):
        return [(row,) for row in rows]
    pick = picker(names, key)
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(pick(row), []).append(row)
    return list(groups.values())


class Drafter:
    """Makes the drafts of one rule. What is the same for all of them is made once and shared."""

    def __init__(self, blueprint: Blueprint, rows: Rows, finder: Finder, findings: Findings) -> None:
        names = blueprint.names
        self.blueprint = blueprint
        self.entries = [
            EntryPaths(entry, names, rows.found.get(at), finder) for at, entry in enumerate(blueprint.inputs)
        ]
        self.groups = grouped(rows.rows, names, blueprint.key)
        self.ancient_used: set[Pattern] = set()
        self._finder = finder
        self._problems = findings.found
        self._agreement = Agreement(blueprint, findings)
        self._key = picker(names, blueprint.key)
        self._outputs = [output.pattern.filler(names) for output in blueprint.outputs]
        self._temporary = [at for at, output in enumerate(blueprint.outputs) if output.temporary]
        self._protected = [at for at, output in enumerate(blueprint.outputs) if output.protected]
        self._log = _filler(blueprint.log, names)
        self._benchmark = _filler(blueprint.benchmark, names)
        self._manifest = _filler(blueprint.manifest, names)
        self._without_path: dict[str, tuple[str, ...]] = {
            one.name: () for one in blueprint.hollow if one.name
        }
        self._input_names = bool(blueprint.numbers) or any(entry.name for entry in blueprint.inputs)
        self._output_names = any(output.name for output in blueprint.outputs)
        self._needs_values = bool(blueprint.texts.names)
        self._any_gathers = any(entry.gathers for entry in blueprint.inputs)
        texts = blueprint.texts
        self._text_alone = not texts.script and not texts.env and set(texts.shells) <= {"shell"}

    def draft(
        self,
        rows: Sequence[Row],
        dead: Collection[str] = _NOTHING,
        problems: list[Diagnostic] | None = None,
    ) -> Draft:
        """The task of these rows; paths in `dead`, which nobody makes any more, are not gathered.

        What cannot be filled in is added to `problems` (None: to the findings of the expansion).
        """
        problems = self._problems if problems is None else problems
        blueprint, row = self.blueprint, rows[0]
        rule = blueprint.rule
        if len(rows) > 1:
            self._agreement.check(rows)
        lists = [entry.of(rows) for entry in self.entries]
        gathered = self._gathered(lists) if self._any_gathers or len(rows) > 1 else _NOTHING
        emptied = ""
        if dead and not gathered.isdisjoint(dead):
            lists, emptied = self._without(lists, gathered & frozenset(dead))
            gathered = gathered - frozenset(dead)
        outputs = tuple([fill(row) for fill in self._outputs])
        filling = self._filling(row, lists, outputs)
        skip = self._skip(filling, lists) or (Skip("empty", emptied) if emptied else None)
        return Draft(
            rule=rule.name,
            wildcards=self.wildcards(rows),
            command=self._command(filling, [] if skip else problems),
            inputs=self._with_steps(filling.inputs),
            gathered=gathered,
            ancient=self._ancient(lists, filling.inputs) if rule.ancient else _NOTHING,
            outputs=_with_manifest(filling.outputs, self._manifest(row))
            if blueprint.manifest
            else filling.outputs,
            temporary=tuple([outputs[at] for at in self._temporary]) if self._temporary else (),
            protected=tuple([outputs[at] for at in self._protected]) if self._protected else (),
            depends_on=rule.depends_on,
            resources=rule.resources,
            policy=rule.policy,
            log=filling.log,
            log_named=blueprint.texts.names_log,
            benchmark=self._benchmark(row),
            manifest=self._manifest(row),
            skip=skip,
            place=rule.place,
        )

    def wildcards(self, rows: Sequence[Row]) -> tuple[tuple[str, str], ...]:
        """What tells the task of these rows from the others of its rule."""
        return tuple(zip(self.blueprint.key, self._key(rows[0])))

    def _filling(self, row: Row, lists: Sequence[tuple[str, ...]], outputs: tuple[str, ...]) -> Filling:
        blueprint = self.blueprint
        return Filling(
            inputs=_flat(lists),
            named_inputs=self._named_inputs(lists) if self._input_names else _NO_VALUES,
            outputs=tuple(dict.fromkeys(outputs)) if len(outputs) > 1 else outputs,
            named_outputs=_named(blueprint.outputs, [(path,) for path in outputs])
            if self._output_names
            else _NO_VALUES,
            log=self._log(row),
            wildcards=dict(zip(blueprint.names, row)) if self._needs_values else _NO_VALUES,
        )

    def _named_inputs(self, lists: Sequence[tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """The inputs by their names, and by the numbers of their entries where those are names, too."""
        blueprint = self.blueprint
        found = {**self._without_path, **_named(blueprint.inputs, lists)}
        for at, place in enumerate(blueprint.numbers):
            found[numbered(at)] = () if place is None else lists[place]
        if blueprint.numbers:
            count = len(blueprint.numbers) - len(blueprint.hollow)
            found[MORE] = tuple(dict.fromkeys(path for paths in lists[count:] for path in paths))
        return found

    def _with_steps(self, inputs: tuple[str, ...]) -> tuple[str, ...]:
        """The inputs, and the artifacts that only the texts name: the task waits for their steps, too."""
        steps = self.blueprint.texts.steps
        more = [
            path for path in steps if not any(one == path or one.startswith(f"{path}/") for one in inputs)
        ]
        return (*inputs, *more) if more else inputs

    def _gathered(self, lists: Sequence[tuple[str, ...]]) -> frozenset[str]:
        """The paths that may be fewer: of globs and fan-ins, and of entries with several paths."""
        gathered: list[str] = []
        fixed: list[str] = []
        for entry, paths in zip(self.entries, lists):
            several = entry.entry.gathers or len(paths) > 1
            (gathered if several else fixed).extend(paths)
        return frozenset(gathered).difference(fixed) if gathered else _NOTHING

    def _without(
        self, lists: Sequence[tuple[str, ...]], dead: frozenset[str]
    ) -> tuple[list[tuple[str, ...]], str]:
        """The lists without the dead paths, and the first entry that has nothing left by that."""
        kept, emptied = [], ""
        for entry, paths in zip(self.entries, lists):
            left = tuple(path for path in paths if path not in dead)
            if paths and not left:
                emptied = emptied or entry.entry.pattern.text
            kept.append(left)
        return kept, emptied

    def _skip(self, filling: Filling, lists: Sequence[tuple[str, ...]]) -> Skip | None:
        texts = self.blueprint.texts
        if texts.condition is not None and not texts.condition.holds(self._setting(filling)):
            return Skip("when", texts.condition.text)
        for entry, paths in zip(self.entries, lists):
            if not paths and entry.may_be_empty:
                return Skip("empty", entry.entry.pattern.text)
        if not filling.inputs:
            hollow = (entry.entry.pattern.text for entry in self.entries if not entry.entry.combos)
            return next((Skip("empty", text) for text in hollow), None)
        return None

    def _setting(self, filling: Filling) -> Setting:
        place = self.blueprint.rule.at("when")
        params = {name: rendered(param, filling) for name, param in self.blueprint.texts.params.items()}
        return Setting(filling.wildcards, params, lambda path: self._finder.exists(path, place))

    def _ancient(self, lists: Sequence[tuple[str, ...]], inputs: Sequence[str]) -> frozenset[str]:
        found = {path for entry, paths in zip(self.entries, lists) if entry.entry.ancient for path in paths}
        for pattern in self.blueprint.ancient:
            matching = [path for path in inputs if ways(pattern.parts, path, _NO_VALUES, 1)]
            if matching:
                self.ancient_used.add(pattern)
                found.update(matching)
        return frozenset(found)

    def _command(self, filling: Filling, problems: list[Diagnostic]) -> Command:
        texts = self.blueprint.texts
        shells = {key: template.render(filling, problems) for key, template in texts.shells.items()}
        text = shells.get("shell", "")
        if self._text_alone:
            return Command(text=text, secrets=texts.secrets)
        argv, file = texts.script.argv(filling, problems) if texts.script else ((), "")
        return Command(
            text=text,
            script=argv,
            script_file=file,
            env=tuple([(name, template.render(filling, problems)) for name, template in texts.env]),
            secrets=texts.secrets,
            **{key: shells[key] for key in HOOKS if key in shells},
        )


def _with_manifest(outputs: tuple[str, ...], manifest: str) -> tuple[str, ...]:
    """The manifest is an output, too, where it is not one of them or lies in one."""
    if any(manifest == path or manifest.startswith(f"{path}/") for path in outputs):
        return outputs
    return (*outputs, manifest)


def _filler(pattern: Pattern | None, names: Sequence[str]) -> Callable[[Row], str]:
    return pattern.filler(names) if pattern else _no_path


def _no_path(row: Row) -> str:
    return ""


def _flat(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """All paths in order, each once."""
    if len(lists) == 1:
        return lists[0]
    return tuple(dict.fromkeys([path for paths in lists for path in paths]))


def _named(entries: Sequence[Any], lists: Sequence[tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The paths of each name; several entries of one name go together."""
    named: dict[str, tuple[str, ...]] = {}
    for entry, paths in zip(entries, lists):
        if entry.name:
            named[entry.name] = tuple(dict.fromkeys((*named.get(entry.name, ()), *paths)))
    return named

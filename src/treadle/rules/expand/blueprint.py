"""A rule with everything parsed: what stays the same for all its tasks, read once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.names import did_you_mean
from treadle.base.place import Place, Severity
from treadle.rules.expand.entries import Entry, Hollow, ListReader, read_inputs
from treadle.rules.expand.rule_texts import RuleTexts, read_texts
from treadle.rules.expand.values import Own, Sources, check_sources, with_own
from treadle.rules.pattern.constraint import Constraint
from treadle.rules.pattern.pattern import Pattern
from treadle.rules.pattern.text import PathText
from treadle.rules.schema import Rule, Source, StepPath, Value
from treadle.rules.text.command import Known
from treadle.rules.toml.section import Findings

_NOTHING: frozenset[str] = frozenset()


class Ground(Struct, frozen=True):
    """What all rules of a workflow are read against.

    `unselected` are samples and pairs that a selection leaves out, `steps` the artifacts of Python steps.
    """

    config: Mapping[str, Value]
    sensitive: frozenset[str]
    sources: Sources
    constraints: Mapping[str, Constraint]
    interpreters: Mapping[str, str]
    findings: Findings
    unselected: frozenset[str] = frozenset()
    steps: Mapping[str, StepPath] = {}

    def of(self, own: Own | None) -> Ground:
        """What a rule with values of its own is read against."""
        return self if own is None else replace(self, sources=with_own(self.sources, own))

    @property
    def paths(self) -> PathText:
        """What reads the paths that a rule makes."""
        return PathText(self.config, self.sensitive, self.constraints, self.findings.found)

    @property
    def inputs(self) -> PathText:
        """What reads the paths that a rule takes in: they may name artifacts of steps, too."""
        return PathText(self.config, self.sensitive, self.constraints, self.findings.found, self.steps)


class Output(Struct, frozen=True):
    """One declared output; `temporary`: it is removed once every dependent is done; `protected`: it is made
    read-only."""

    pattern: Pattern
    name: str = ""
    temporary: bool = False
    protected: bool = False


class Blueprint(Struct, frozen=True):
    """A parsed rule.

    `names` are all wildcards that it names: those of the outputs first, as they appear. `key` are those
    that make its tasks. `open` are given by no table: what matches its inputs gives them. `asked` are named
    by the condition alone: a row may lack them. `hollow` are inputs that config leaves empty. `numbers` say
    which of `inputs` each entry of `input` is (None: it is hollow); there are none where each entry is one
    path. `ancient` are patterns for inputs that cause no re-run, beside the entries that are marked. `own`
    are values that this rule alone has.
    """

    rule: Rule
    inputs: tuple[Entry, ...]
    ancient: tuple[Pattern, ...]
    outputs: tuple[Output, ...]
    log: Pattern | None
    benchmark: Pattern | None
    manifest: Pattern | None
    texts: RuleTexts
    names: tuple[str, ...]
    key: tuple[str, ...]
    open: tuple[str, ...]
    asked: frozenset[str] = frozenset()
    hollow: tuple[Hollow, ...] = ()
    numbers: tuple[int | None, ...] = ()
    own: Own | None = None

    def off(self) -> bool:
        """Whether the config switches the rule off: its condition is false whatever the values are."""
        condition = self.texts.condition
        return condition is not None and condition.never()

    def searching(self) -> list[Entry]:
        """The inputs whose paths are not known before something is looked up: globs, open wildcards."""
        return [entry for entry in self.inputs if entry.searches or set(entry.names) & set(self.open)]


def read_blueprint(rule: Rule, ground: Ground) -> Blueprint | None:
    """Parse a rule; None when something is wrong with it, which is then among the findings."""
    findings = ground.findings
    before = len(findings.found)
    own = _own(rule, ground)
    ground = ground.of(own)
    paths, reading = ground.paths, ground.inputs
    inputs, hollow = read_inputs(rule, reading, ground.config, ground.unselected)
    outputs = _outputs(rule, paths)
    log = paths.pattern(rule.log, rule.at("log")) if rule.log else None
    benchmark = paths.pattern(rule.benchmark, rule.at("benchmark")) if rule.benchmark else None
    manifest = paths.pattern(rule.manifest, rule.at("checkpoint_manifest")) if rule.manifest else None
    made = [*(output.pattern for output in outputs), *([manifest] if manifest else ())]
    single = [*made, *(one for one in (log, benchmark) if one)]
    key = tuple(dict.fromkeys(name for pattern in made for name in pattern.names))
    in_paths = [
        *(name for entry in inputs for name in entry.names),
        *(n for one in single for n in one.names),
    ]
    numbers = _numbers(rule, inputs, hollow)
    known = _known(
        rule, inputs, hollow, numbers, outputs, frozenset(in_paths) | ground.sources.names, key, ground
    )
    texts = read_texts(rule, known, reading, ground.interpreters, findings)
    names = tuple(dict.fromkeys((*key, *in_paths, *texts.names)))
    given = frozenset(name for source in ground.sources.using(names) for name in source.columns)
    _check_names(rule, names, inputs, given, ground)
    _check_free(inputs, single, ground)
    if any(one.severity is Severity.ERROR for one in findings.found[before:]):
        return None
    return Blueprint(
        rule=rule,
        inputs=inputs,
        ancient=_other_ancients(rule, inputs, reading),
        outputs=outputs,
        log=log,
        benchmark=benchmark,
        manifest=manifest,
        texts=texts,
        names=names,
        key=key if made else names,
        open=tuple(name for name in names if name not in given),
        asked=_asked(texts, (*key, *in_paths)),
        hollow=hollow,
        numbers=numbers,
        own=own,
    )


def numbered(number: int) -> str:
    """The name under which a filling has the paths of an entry of `input`."""
    return f"#{number}"


def _numbers(rule: Rule, inputs: Sequence[Entry], hollow: Collection[Hollow]) -> tuple[int | None, ...]:
    """Which of the inputs each entry is, where numbers cannot simply count the paths: a glob has any number
    of them, and an entry that config leaves empty has none."""
    count = len(rule.inputs) - len(hollow)
    if not hollow and not any(entry.searches for entry in inputs[:count]):
        return ()
    left_out = {one.number for one in hollow}
    there = iter(range(count))
    return tuple(None if at in left_out else next(there) for at in range(len(rule.inputs)))


def _asked(texts: RuleTexts, in_paths: Iterable[str]) -> frozenset[str]:
    """The wildcards that the condition names and nothing else does."""
    if texts.condition is None:
        return _NOTHING
    named = {*in_paths, *(use.name for use in texts.uses if use.key != "when")}
    return texts.condition.asked - named


def _own(rule: Rule, ground: Ground) -> Own | None:
    """The values of the rule's own, as tables; None where it has none, or something is wrong with them."""
    own = rule.own
    if own is None:
        return None
    label = f"the values of rule {rule.name}"
    reader = ListReader(ground.paths, ground.config, ground.unselected, own.place, label)
    values = reader.whole(own.variable, own.given)
    if values is None:
        return None
    if not values and not rule.when:
        reader.problem("no-values", f"nothing is listed for {{{own.variable}}} of {label}")
        return None
    chosen = reader.chosen(own.variable, own.given, values)
    whole, cut = (
        Source(
            kind="values",
            label=label,
            columns=(own.variable,),
            rows=tuple((one,) for one in listed),
            place=own.place,
        )
        for listed in (values, chosen)
    )
    check_sources((whole,), ground.constraints, ground.findings)
    return Own(whole, cut)


def _known(
    rule: Rule,
    inputs: Collection[Entry],
    hollow: Collection[Hollow],
    numbers: Collection[int | None],
    outputs: Collection[Output],
    wildcards: frozenset[str],
    key: Collection[str],
    ground: Ground,
) -> Known:
    """What the texts of the rule may name; how many inputs there are, where each entry is one path."""
    named = {*(entry.name for entry in inputs), *(one.name for one in hollow)} - {""}
    fixed = not any(entry.gathers or (outputs and not set(entry.names) <= set(key)) for entry in inputs)
    return Known(
        wildcards=wildcards,
        input_names=frozenset(named),
        output_names=frozenset(output.name for output in outputs if output.name),
        config=ground.config,
        params=rule.params,
        sensitive=ground.sensitive,
        steps=ground.steps,
        has_log=bool(rule.log),
        input_count=len(inputs) if fixed and not numbers else None,
        output_count=len(outputs),
        numbered=tuple(map(numbered, range(len(numbers)))),
    )


def _other_ancients(rule: Rule, inputs: Iterable[Entry], paths: PathText) -> tuple[Pattern, ...]:
    """Entries of `ancient` that are no input as it is written: paths, or patterns for paths."""
    texts = {text for entry in inputs for text in (entry.name, entry.written)}
    place = rule.at("ancient")
    others = [paths.pattern(text, place, globs=True) for text in rule.ancient if text not in texts]
    return tuple(pattern for pattern in others if pattern)


def _outputs(rule: Rule, paths: PathText) -> tuple[Output, ...]:
    """The outputs; of `{path, pattern}` the folder is the output."""
    found = []
    for spec in rule.outputs:
        pattern = paths.pattern(spec.text, spec.place)
        if pattern is not None:
            marked = {spec.text, pattern.text, pattern.spelled} | ({spec.name} if spec.name else set())
            temporary = rule.temporary or not marked.isdisjoint(rule.temp_output)
            found.append(Output(pattern, spec.name, temporary, not marked.isdisjoint(rule.protected)))
    return tuple(found)


def _check_names(
    rule: Rule, names: Collection[str], inputs: Iterable[Entry], given: frozenset[str], ground: Ground
) -> None:
    """Every wildcard has a source: a table (those in `given` have one), or an input that can be matched."""
    found = {name for entry in inputs for name in entry.names}
    for name in names:
        if name not in given and name not in found:
            known = sorted(ground.sources.names | found)
            hint = did_you_mean(name, known) or "give its values in [[values]] or a table, or in an input"
            message = f"nothing gives values to {{{name}}} in rule {rule.name}"
            ground.findings.error("no-source", message, _place(rule, name, inputs), hint)
    of_pairs, of_samples = ground.sources.mixed(names)
    if of_pairs and of_samples:
        message = (
            f"rule {rule.name} names {_braced(of_pairs)} of pairs and {_braced(of_samples)} of sample groups"
        )
        hint = "name the sides of the pairs instead: {experiment} and {control}"
        ground.findings.error("pairs-and-samples", message, rule.place, hint)


def _braced(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


def _place(rule: Rule, name: str, inputs: Iterable[Entry]) -> Place:
    """The first place of a rule where a wildcard stands."""
    for spec in (*rule.outputs, *rule.inputs):
        if f"{{{name}}}" in spec.text or f"{{values.{name}}}" in spec.text:
            return spec.place
    for entry in inputs:
        if name in entry.names:
            return entry.pattern.place
    return rule.place


def _check_free(inputs: Iterable[Entry], single: Iterable[Pattern], ground: Ground) -> None:
    """A column that holds paths is good as a whole input, not as a part of a path or in an output."""
    free = ground.sources.free
    if not free:
        return
    patterns = [entry.pattern for entry in inputs if not (entry.folder or entry.pattern).alone]
    patterns += single
    for pattern in patterns:
        for name in pattern.names:
            if name in free:
                message = f"the column {name} holds paths, so {{{name}}} cannot be used in '{pattern.text}'"
                hint = f'it stands alone: "{{{name}}}", or {{ path = "{{{name}}}", pattern = "*" }}'
                ground.findings.error("path-in-path", message, pattern.place, hint)

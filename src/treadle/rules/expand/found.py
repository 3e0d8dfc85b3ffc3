"""Sources of values with what checkpoint tasks found, and what they may still find.

A value that a checkpoint rule with wildcards found holds under these: its row has their columns, too
(`Source.under`), and is joined on them with all that a rule names besides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from treadle.base.names import did_you_mean
from treadle.base.place import Place
from treadle.plan.discovered import Found
from treadle.rules.expand.values import Sources
from treadle.rules.schema import PathSpec, Rule, Source
from treadle.rules.sources.pairs import SIDES_OF_PAIRS
from treadle.rules.sources.rows import PAIR_ALIASES, PAIR_COLUMNS, SAMPLE_COLUMNS
from treadle.rules.toml.section import Findings, clip

_OF_PAIRS = (*PAIR_COLUMNS, *PAIR_ALIASES)
_WILDCARD = re.compile(r"\{(?:values\.)?([A-Za-z_][A-Za-z0-9_]*)\}")
_ANYTHING = ("sample", "pairs")

Cells = Mapping[str, str | None]


def extended(sources: Sources, rules: Sequence[Rule], found: Sequence[Found]) -> Sources:
    """The sources with what was found, and those that checkpoint rules may give, marked as `awaited`."""
    checkpoints = [rule for rule in rules if rule.manifest]
    if not checkpoints:
        return sources
    for rule in checkpoints:
        for kind in additions(rule, rules, sources, found):
            sources = _awaited(sources, kind, wildcards_of(rule), rule)
    for (kind, name, own), rows in _by_source(found).items():
        sources = _grown(sources, kind, name, _columns(kind, name, own, rows), own, rows)
    return _with_sides(sources)


def additions(rule: Rule, rules: Sequence[Rule], sources: Sources, found: Sequence[Found]) -> list[str]:
    """What a checkpoint rule may add to: `sample`, `pairs`, `values.NAME`.

    Where the rule does not say, that is whatever the workflow has already (but for `[[tables]]`), what it
    found once, and every wildcard of a path that has no other source.
    """
    if rule.adds:
        return list(rule.adds)
    kinds = {source.kind for source in sources.all}
    kept = [kind for kind, name in zip(_ANYTHING, ("samples", "pairs")) if name in kinds]
    named = [source.label for source in sources.all if source.kind == "values"]
    for one in found:
        if one.rule == rule.name:
            kept += [kind for kind, given in zip(_ANYTHING, (one.values.samples, one.values.pairs)) if given]
            named += [f"values.{name}" for name in one.values.values]
    for name in sorted(_orphans(rules, sources)):
        if name in SAMPLE_COLUMNS:
            kept.append("sample")
        elif name in _OF_PAIRS:
            kept.append("pairs")
        else:
            named.append(f"values.{name}")
    return list(dict.fromkeys((*kept, *named)))


def wildcards_of(rule: Rule) -> tuple[str, ...]:
    """The wildcards that make the tasks of a rule, as its outputs and its manifest name them."""
    texts = [*(spec.text for spec in rule.outputs), rule.manifest]
    return tuple(dict.fromkeys(name for text in texts for name in _WILDCARD.findall(text)))


def _orphans(rules: Sequence[Rule], sources: Sources) -> set[str]:
    """Wildcards of paths that no table gives, and that some rule could not find on the disk either: no input
    of it names them, or one that a checkpoint rule makes."""
    folders = tuple(f"{spec.text}/" for rule in rules if rule.manifest for spec in rule.outputs)
    orphans: set[str] = set()
    for rule in rules:
        wanted = {name for spec in rule.outputs for name in _WILDCARD.findall(spec.text)}
        given: set[str] = set()
        for spec in rule.inputs:
            names = set(_WILDCARD.findall(spec.text))
            wanted |= names
            if not spec.text.startswith(folders):
                given |= names
        orphans |= wanted - given - ({rule.own.variable} if rule.own else set())
    return orphans - sources.names


def _awaited(sources: Sources, kind: str, own: tuple[str, ...], rule: Rule) -> Sources:
    """The sources with one of this kind that may grow, made where there is none."""
    if kind == "sample":
        return _grown(sources, "samples", "", SAMPLE_COLUMNS, own, (), f"samples that {rule.name} finds")
    if kind == "pairs":
        return _grown(sources, "pairs", "", _OF_PAIRS, own, (), f"pairs that {rule.name} finds")
    return _grown(sources, "values", kind, (kind.partition(".")[2],), own, ())


def _by_source(found: Sequence[Found]) -> dict[tuple[str, str, tuple[str, ...]], list[Cells]]:
    """The rows that were found, by kind and name of their source and the wildcards that they hold under."""
    rows: dict[tuple[str, str, tuple[str, ...]], list[Cells]] = {}
    for one in found:
        for kind, name, own, row in _rows(one):
            rows.setdefault((kind, name, own), []).append(row)
    return rows


def rows_of(one: Found) -> Iterator[Cells]:
    """The rows that a checkpoint task found, each with the wildcards that it holds under."""
    return (row for _, _, _, row in _rows(one))


def _rows(one: Found) -> Iterator[tuple[str, str, tuple[str, ...], Cells]]:
    """A wildcard of the task itself to which it adds is none that its values hold under."""
    values = one.values
    own, names = _own(one, SAMPLE_COLUMNS)
    for sample in values.samples:
        yield "samples", "", names, {**own, "sample": sample, "group": values.group or None}
    for pair in values.pairs:
        own, names = _own(one, (*_OF_PAIRS, *pair))
        aliases = {alias: pair.get(name) for alias, name in PAIR_ALIASES.items()}
        yield "pairs", "", names, {**own, **pair, **aliases}
    for name, given in values.values.items():
        own, names = _own(one, (name,))
        for value in given:
            yield "values", f"values.{name}", names, {**own, name: value}


def _own(one: Found, besides: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    own = {name: value for name, value in one.wildcards if name not in besides}
    return own, tuple(own)


def _columns(kind: str, name: str, own: tuple[str, ...], rows: Iterable[Cells]) -> tuple[str, ...]:
    """The columns that such rows give values to; of pairs their metadata, too."""
    if kind == "values":
        return (name.partition(".")[2],)
    if kind == "samples":
        return SAMPLE_COLUMNS
    return tuple(
        dict.fromkeys((*_OF_PAIRS, *(column for row in rows for column in row if column not in own)))
    )


def _with_sides(sources: Sources) -> Sources:
    """Both sides of pairs that were found, or may be, are samples where nothing but pairs gives any."""
    pairs = next((source for source in sources.all if source.kind == "pairs" and source.awaited), None)
    samples = next((source for source in sources.all if source.kind == "samples"), None)
    if pairs is None or (samples is not None and samples.label != SIDES_OF_PAIRS):
        return sources
    own = tuple(name for name in pairs.columns if name in pairs.under)
    at = {name: pairs.columns.index(name) for name in ("experiment", "control", *own)}
    rows: list[Cells] = [
        {"sample": row[at[side]], **{name: row[at[name]] for name in own}}
        for row in pairs.rows
        for side in ("experiment", "control")
        if row[at[side]]
    ]
    return _grown(sources, "samples", "", ("sample",), own, rows, SIDES_OF_PAIRS)


def _grown(
    sources: Sources,
    kind: str,
    which: str,
    columns: tuple[str, ...],
    own: tuple[str, ...],
    rows: Sequence[Cells],
    label: str = "",
) -> Sources:
    """The sources with these rows in the one of the kind (and label `which`), which may grow by that."""
    known = list(sources.all)
    at = next((n for n, one in enumerate(known) if one.kind == kind and which in ("", one.label)), None)
    if at is None:
        base = Source(kind=kind, label=which or label, columns=columns, rows=(), awaited=True)
        at = len(known)
        known.append(base)
    old = known[at]
    under = tuple(name for name in own if name not in columns)
    fresh = tuple(name for name in under if name not in old.columns)
    wide = tuple(dict.fromkeys((*old.columns, *columns, *under)))
    kept = _spread(old, fresh, sources, rows)
    lacking = tuple(name for name in old.under if name not in under)
    added = _filled(rows, lacking, old)
    place = {name: n for n, name in enumerate(old.columns)}
    table = [
        tuple([row[place[name]] if name in place else extra.get(name) for name in wide])
        for row, extra in kept
    ]
    table += [tuple([row.get(name) for name in wide]) for row in added]
    known[at] = replace(
        old,
        columns=wide,
        rows=tuple(dict.fromkeys(table)),
        under=old.under.union(fresh),
        awaited=True,
    )
    return Sources(tuple(known))


def _spread(
    old: Source, fresh: tuple[str, ...], sources: Sources, rows: Sequence[Cells]
) -> list[tuple[tuple[str | None, ...], Cells]]:
    """The rows that were there hold under every value of the wildcards that are new to them."""
    if not fresh:
        return [(row, {}) for row in old.rows]
    seen: dict[tuple[str | None, ...], None] = {}
    for source in sources.all:
        if source is not old and set(fresh) <= set(source.columns):
            at = [source.columns.index(name) for name in fresh]
            seen.update((tuple([row[n] for n in at]), None) for row in source.rows)
    seen.update((tuple([row.get(name) for name in fresh]), None) for row in rows)
    return [(row, dict(zip(fresh, values))) for row in old.rows for values in seen]


def _filled(rows: Sequence[Cells], lacking: tuple[str, ...], old: Source) -> Sequence[Cells]:
    """The new rows under every value of wildcards that others of the source hold under."""
    if not lacking:
        return rows
    at = [old.columns.index(name) for name in lacking]
    seen = dict.fromkeys(tuple([row[n] for n in at]) for row in old.rows)
    return [{**row, **dict(zip(lacking, values))} for row in rows for values in seen]


def check_pairs(sources: Sources, findings: Findings) -> None:
    """Report pairs that were given again with other content, by a checkpoint task or the workflow itself."""
    pairs = next((source for source in sources.all if source.kind == "pairs" and source.awaited), None)
    if pairs is None:
        return
    at = {name: n for n, name in enumerate(pairs.columns)}
    key = [at["pair_id"], *(at[name] for name in sorted(pairs.under))]
    own = [at[name] for name in PAIR_COLUMNS]
    first: dict[tuple[str | None, ...], tuple[str | None, ...]] = {}
    for row in pairs.rows:
        known = first.setdefault(tuple([row[n] for n in key]), row)
        same = all(known[n] == row[n] for n in own) and all(
            one == other or one is None or other is None for one, other in zip(known, row)
        )
        if not same:
            message = (
                f"the pair '{clip(row[key[0]] or '')}' was found, and it was given before with other content"
            )
            findings.error("said-twice", message, pairs.place)


def reaches(additions: Sequence[str], source: Source) -> bool:
    """Whether a checkpoint rule that makes these additions may add rows to a source."""
    if source.kind == "values":
        return source.label in additions
    if source.kind == "pairs":
        return "pairs" in additions
    if source.kind == "samples":
        return "sample" in additions or ("pairs" in additions and source.label == SIDES_OF_PAIRS)
    return False


def tell_alike(sources: Sources, rules: Sequence[Rule], findings: Findings) -> None:
    """Warn of wildcards much like another one that only a checkpoint without limits may give."""
    limits = {entry for rule in rules if rule.manifest for entry in rule.adds}
    for source in sources.all:
        if source.kind != "values" or source.rows or not source.awaited or source.label in limits:
            continue
        name = source.columns[0]
        others = sorted(sources.names - {name})
        if hint := did_you_mean(name, others):
            place = next(
                (spec.place for rule in rules for spec in _paths(rule) if f"{{{name}}}" in spec.text), Place()
            )
            message = f"nothing gives values to {{{name}}} but what a checkpoint may find"
            findings.warn("only-found", message, place, f"{hint} Else name it in checkpoint_extends")


def _paths(rule: Rule) -> tuple[PathSpec, ...]:
    return (*rule.outputs, *rule.inputs)

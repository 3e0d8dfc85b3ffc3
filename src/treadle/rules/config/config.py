"""`[config]`: plain and declared keys, values of the command line, references to each other resolved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.place import Place
from treadle.rules.config.resolve import resolve
from treadle.rules.config.types import TYPES, UnfitError, as_value, fitted, from_text, read_range, type_of
from treadle.rules.schema import Declared, Source, Value
from treadle.rules.text.placeholder import spelled
from treadle.rules.toml.fields import DECLARED
from treadle.rules.toml.kinds import NAME, take
from treadle.rules.toml.section import LONGEST_NAME, Findings, Section, clip, found

_GROUP = re.compile(r"[A-Za-z0-9_-]+\Z")  # what the end of a config key may be
_WANTED = "a text, a number, true or false, or a list of these"

_LAYOUT = {
    "reference_fasta": "genome.fa",
    "gene_annotation": "genes.gtf",
    "bwa_index": "bwa/genome.fa",
    "bwamem2_index": "bwamem2/genome.fa",
    "bowtie2_index": "bowtie2/genome.fa",
    "star_index": "star",
    "hisat2_index": "hisat2/genome.fa",
    "minimap2_index": "genome.fa.mmi",
    "gatk_dict": "genome.dict",
    "samtools_faidx": "genome.fa.fai",
}


class Config(Struct, frozen=True):
    """The keys of a workflow: resolved values, declarations, and which are secret."""

    values: dict[str, Value]
    declared: dict[str, Declared]
    sensitive: frozenset[str]


class Gap(Struct, frozen=True):
    """A table that fills what `[config]` leaves open: that of an included file, or (`bare`) its `params`."""

    section: Section
    bare: bool = False


def read_config(
    section: Section,
    given: Sequence[tuple[str, str]],
    sources: Iterable[Source],
    workdir: str,
    profiles: Sequence[Section] = (),
    *,
    override: bool = False,
    gaps: Sequence[Gap] = (),
    references: Mapping[str, Section] = {},
    rest: Config | None = None,
) -> Config:
    """The config of a workflow; everything wrong with it is reported.

    `given` are the (key, text) of the command line; the last of two for one key counts. `must_exist`
    looks from `workdir`. `profiles` fill keys that have no value, or with `override` replace those that have;
    the last of them counts most. `gaps` fill what is open then, the first of them counts most; keys that one
    of them declares are declared; what none of them says is as in `rest`. `references` are `[[references]]`
    by name: each is a key as well, unless the user has one of that name, and so are the standard paths below
    a `reference_dir`.
    """
    values, declared = _written(section)
    homes = dict.fromkeys([key for key in values if key not in declared], section)  # a default sets nothing
    fillers = _fill(values, declared, gaps)
    taken = frozenset(rest.values.keys() - values.keys() if rest else ())
    if rest:
        values = {**rest.values, **values}
        declared = {**rest.declared, **declared}
    for profile in profiles:
        for key, value in _of_profile(profile).items():
            if override or homes.get(key) is not section:
                values[key], homes[key] = value, profile
    homes = fillers | homes
    texts = dict(given)
    values |= _given(section, texts, values, declared, references)
    outputs = {name: one.table["output"] for name, one in references.items()}
    values = {**_standard_paths(values), **outputs, **values}
    values |= engine_keys(values, sources)
    _check_required(section.findings, {*values, *texts}, declared)
    secret = {name for name, one in declared.items() if one.sensitive}
    places = {name: one.place("output") for name, one in references.items()}
    places |= dict.fromkeys(_LAYOUT, homes.get("reference_dir", section).place("reference_dir"))
    places |= {key: one.place for key, one in declared.items()}
    places |= {key: section.place(key) for key in section.table}
    places |= {key: home.place(key) for key, home in homes.items()}
    values, secret = resolve(values, secret, places, section.findings)
    for key, one in declared.items():
        if key in values and key not in taken:
            try:
                values[key] = fitted(values[key], one, workdir, secret=key in secret)
            except UnfitError as unfit:
                homes.get(key, section).error(unfit.code, unfit.message, key, hint=unfit.hint)
    return Config(values, declared, frozenset(secret))


def _written(section: Section) -> tuple[dict[str, Value], dict[str, Declared]]:
    """The values and declarations as they stand in the file."""
    values: dict[str, Value] = {}
    declared: dict[str, Declared] = {}
    for key, value in section.table.items():
        if not NAME.match(key) or len(key) > LONGEST_NAME:
            hint = "write letters, digits, _ and -, a letter first"
            section.error("bad-name", f"'{clip(key)}' cannot name a config key", key, hint=hint)
            continue
        if isinstance(value, dict):
            one, value = _declaration(section, key, value)
            declared[key] = one
            if value is None:
                continue
        taken = as_value(value)
        if isinstance(value, str) and taken is None:
            section.error("control-character", "a NUL character stands in this text", key)
        elif taken is None:
            section.error("wrong-type", f"{found(value)} stands where {_WANTED} is wanted", key)
        else:
            values[key] = taken
    return values, declared


def _fill(values: dict[str, Value], declared: dict[str, Declared], gaps: Iterable[Gap]) -> dict[str, Section]:
    """Add what the gaps say of keys that have no value; where each of these stands."""
    homes: dict[str, Section] = {}
    for gap in gaps:
        more, also = (_of_profile(gap.section), {}) if gap.bare else _written(gap.section)
        for key, value in more.items():
            if key not in values:
                values[key], homes[key] = value, gap.section
        for key, one in also.items():
            own = declared.setdefault(key, one)
            if one.sensitive and not own.sensitive:  # what is a secret to one of them is one
                declared[key] = replace(own, sensitive=True)
    return homes


def _of_profile(section: Section) -> dict[str, Value]:
    """The values of a profile, or of the `params` of an include: it sets keys, and declares none."""
    for key, value in section.table.items():
        if isinstance(value, dict):
            hint = "keys are declared in [config] of a workflow file; here they get values"
            section.error("wrong-type", f"a table stands where {_WANTED} is wanted", key, hint=hint)
    plain = {key: value for key, value in section.table.items() if not isinstance(value, dict)}
    return _written(section.inner(plain))[0]


def _declaration(section: Section, key: str, table: dict[str, Any]) -> tuple[Declared, Any]:
    """A declared key and its default, or None where it has none."""
    inner = section.inner(table, key)
    if not any(field in table for field in DECLARED):
        hint = f"a declaration has {', '.join(DECLARED)}"
        inner.error("wrong-type", f"a table stands where {_WANTED} is wanted", hint=hint)
        return Declared(name=key), None
    got = take(inner, DECLARED, "a declared config key")
    kind = got.get("type", "")
    if kind and kind not in TYPES:
        hint = inner.findings.guess(kind, TYPES) or f"one of: {', '.join(TYPES)}"
        inner.error("config-type", f"'{clip(kind)}' is not a type", "type", hint=hint)
        kind = ""
    if got.get("must_exist") and kind not in ("", "path"):
        inner.error("config-type", f"must_exist is for paths, not for type {kind}", "must_exist")
    one = Declared(
        name=key,
        type=kind,
        required=got.get("required", False) and "default" not in table,
        help=got.get("help", ""),
        sensitive=got.get("sensitive", False),
        choices=_choices(inner, got.get("choices"), kind),
        range=_range(inner, got.get("range"), kind),
        must_exist=bool(got.get("must_exist")) and kind in ("", "path"),
        place=section.place(key),
    )
    return one, got.get("default")


def _choices(inner: Section, listed: list[Any] | None, kind: str) -> tuple[Value, ...]:
    if listed is None:
        return ()
    if not listed:
        inner.error("empty", "a list of choices without any cannot be met", "choices")
    taken: list[Value] = []
    for at, choice in enumerate(listed):
        value = as_value(choice)
        try:
            if value is None or isinstance(value, tuple):
                raise UnfitError("wrong-type", f"{found(choice)} cannot be a choice")
            taken.append(from_text(value, kind) if isinstance(value, str) else value)
        except UnfitError as unfit:
            inner.error(unfit.code, unfit.message, "choices", at, hint=unfit.hint)
    return tuple(taken)


def _range(inner: Section, text: str | None, kind: str) -> tuple[float, float] | None:
    if text is None:
        return None
    if kind not in ("", "int", "float"):
        inner.error("config-range", f"a range is for numbers, not for type {kind}", "range")
        return None
    try:
        return read_range(text)
    except UnfitError as unfit:
        inner.error(unfit.code, unfit.message, "range", hint=unfit.hint)
        return None


def _given(
    section: Section,
    texts: Mapping[str, str],
    values: Mapping[str, Value],
    declared: Mapping[str, Declared],
    references: Mapping[str, Section],
) -> dict[str, Value]:
    """The values of the command line, read by the declared type or that of the value they replace."""
    taken: dict[str, Value] = {}
    for key, text in texts.items():
        place = Place("the command line", 0, "", clip(key))
        known = key in values or key in declared or key in references
        if not known and not (NAME.match(key) and _is_read(key, section.findings.sources)):
            hint = section.findings.guess(key, [*values, *declared])
            message = f"there is no config key '{clip(key)}' to set"
            section.findings.error("unknown-config", message, place, hint)
            continue
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            section.findings.error("control-character", f"the value of '{key}' is not UTF-8 text", place)
            continue
        kind = declared[key].type if key in declared else ""
        try:
            taken[key] = from_text(text, kind or (type_of(values[key]) if key in values else ""))
        except UnfitError as unfit:
            message = f"the value of '{key}' does not fit" if _secret(key, declared) else unfit.message
            section.findings.error(unfit.code, message, place, unfit.hint)
    return taken


def _is_read(key: str, sources: Iterable[str]) -> bool:
    return any(re.search(rf"config\.{key}\b", source) for source in sources)


def _secret(key: str, declared: Mapping[str, Declared]) -> bool:
    return key in declared and declared[key].sensitive


def _check_required(findings: Findings, known: set[str], declared: Mapping[str, Declared]) -> None:
    for key, one in declared.items():
        if one.required and key not in known:
            about = f" ({clip(one.help, 200)})" if one.help else ""
            message = f"the config key '{key}' is required, but has no value{about}"
            hint = f"give it with --config {key}=VALUE"
            findings.error("config-required", message, one.place, hint)


def _standard_paths(values: Mapping[str, Value]) -> dict[str, Value]:
    """The keys that come with a `reference_dir`: where genomes and indexes usually stand below it."""
    if not isinstance(values.get("reference_dir"), str):
        return {}
    return {key: f"{{config.reference_dir}}/{path}" for key, path in _LAYOUT.items()}


def engine_keys(config: Mapping[str, Value], sources: Iterable[Source]) -> dict[str, Value]:
    """The config keys that the engine adds: `samples_list`, `pairs_list` and `samples_<group>`.

    Names sorted and joined by commas (as an array, where one of them holds a comma), together with those
    that the user's own value of the key lists. Keys for which no source has anything are left out.
    """
    lists: dict[str, set[str]] = {}
    for source in sources:
        _list_names(source, lists)
    return {key: _joined(names | _listed(config.get(key))) for key, names in sorted(lists.items()) if names}


def _list_names(source: Source, lists: dict[str, set[str]]) -> None:
    if source.kind == "pairs":
        lists.setdefault("pairs_list", set()).update(_column(source, "pair_id"))
        for side in ("experiment", "control"):
            lists.setdefault("samples_list", set()).update(_column(source, side))
    elif source.kind == "samples":
        names = _column(source, "sample")
        lists.setdefault("samples_list", set()).update(names)
        groups: dict[str, set[str]] = {}
        for name, group in zip(names, _column(source, "group") if "group" in source.columns else ()):
            groups.setdefault(group, set()).add(name)
        for group, members in groups.items():
            if _GROUP.match(group):
                lists.setdefault(f"samples_{group}", set()).update(members - {""})
    for listed in lists.values():
        listed.discard("")


def _column(source: Source, column: str) -> list[str]:
    """The values of a column, empty where a row has none."""
    at = source.columns.index(column)
    return [row[at] or "" for row in source.rows]


def _listed(value: Value | None) -> set[str]:
    """The names in a user's own list: an array, or a text with commas."""
    names = value if isinstance(value, tuple) else spelled(value).split(",") if value is not None else ()
    return {text for name in names if (text := spelled(name).strip())}


def _joined(names: set[str]) -> Value:
    ordered = sorted(names)
    return tuple(ordered) if any("," in name for name in ordered) else ",".join(ordered)

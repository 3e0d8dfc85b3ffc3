"""The manifest of a checkpoint rule: what it found, read from TOML and checked as sheets are.

[reentry]
group = "found"
sample = ["S1", "S2"]
pairs = [{ pair_id = "P1", experiment = "S1", control = "S2" }]

[reentry.values]
chunk = [1, 2, 3]
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from treadle.base.errors import WorkflowError
from treadle.base.files import read_regular
from treadle.base.place import Severity
from treadle.plan.discovered import Discovered
from treadle.rules.expand.values import check_sources
from treadle.rules.pattern.constraint import Constraint
from treadle.rules.schema import Source
from treadle.rules.sources.cells import usable
from treadle.rules.sources.pairs import pairs
from treadle.rules.sources.rows import PAIR_ALIASES, PAIR_COLUMNS, SAMPLE_COLUMNS, texts
from treadle.rules.text.placeholder import spelled
from treadle.rules.toml.document import decoded, parse
from treadle.rules.toml.fields import PAIR, REENTRY, Top
from treadle.rules.toml.kinds import scalar, table, take
from treadle.rules.toml.section import Findings, Section, clip
from treadle.rules.toml.tables import Tables

_TABLES = {"reentry": Top(REENTRY)}
_TAKEN = frozenset((*PAIR_COLUMNS, *PAIR_ALIASES, *SAMPLE_COLUMNS))

Constraints = Mapping[str, Constraint]


def read_manifest(workdir: str, path: str, extends: tuple[str, ...], constraints: Constraints) -> Discovered:
    """What the manifest at `path`, seen from the work folder, holds.

    `extends` is what it may add to (empty: anything). Raises WorkflowError with everything that is wrong: no
    such file, no TOML, unknown keys, values that could lead a path astray or miss their constraint.
    """
    try:
        text = decoded(read_regular(os.path.join(workdir, path)), path)
    except OSError as error:
        why = error.strerror or str(error)
        raise WorkflowError(f"the manifest '{path}' cannot be read: {why}", code="bad-manifest") from None
    findings = Findings()
    section = Tables(parse(text, path), findings, _TABLES).one("reentry")
    got = take(section, REENTRY, "a re-entry manifest")
    found = Discovered(
        group=spelled(got.get("group", "")),
        samples=tuple(dict.fromkeys(texts(section, got.get("sample", ()), ("sample",)))),
        pairs=_pairs(section, got, constraints, findings),
        values=_values(section.inner(got.get("values", {}), "values")),
    )
    _check_limits(section, found, extends)
    _check_values(section, found, constraints, findings)
    errors = [one for one in findings.found if one.severity is Severity.ERROR]
    if errors:
        raise WorkflowError(dict.fromkeys(errors))
    return found


def _pairs(
    section: Section, got: Mapping[str, Any], constraints: Constraints, findings: Findings
) -> tuple[dict[str, str], ...]:
    inner = [
        section.inner(value, "pairs", at)
        for at, value in enumerate(got.get("pairs", ()))
        if table(section, value, "a table such as { pair_id, experiment, control }", ("pairs", at))
        is not None
    ]
    source = pairs(map(_with_metadata, inner), [], constraints, findings)
    if source is None:
        return ()
    names = [name for name in source.columns if name not in PAIR_ALIASES]
    return tuple({name: value for name, value in zip(names, row) if value is not None} for row in source.rows)


def _with_metadata(section: Section) -> Section:
    """What a pair says beside its own fields is metadata, with or without a table of that name."""
    own = {key: value for key, value in section.table.items() if key in PAIR}
    more = {key: value for key, value in section.table.items() if key not in PAIR}
    if more and isinstance(own.get("metadata", {}), dict):
        own["metadata"] = {**own.get("metadata", {}), **more}
    section.table = own
    return section


def _values(section: Section) -> dict[str, tuple[str, ...]]:
    """The lists of values by the name of their wildcard."""
    found: dict[str, tuple[str, ...]] = {}
    for name, given in section.table.items():
        if why := usable(name, _TAKEN):
            section.error("bad-name", f"'{clip(name)}' cannot be a wildcard: it {why}", name)
        elif isinstance(given, list):
            found[name] = tuple(dict.fromkeys(texts(section, given, (name,))))
        elif (one := scalar(section, given, (name,), "a list of values")) is not None:
            found[name] = tuple(dict.fromkeys(texts(section, [one], (name,))))
    return found


def _check_limits(section: Section, found: Discovered, extends: tuple[str, ...]) -> None:
    """Report what the rule does not say that it adds."""
    if not extends:
        return
    added: list[tuple[str, tuple[str, ...], bool]] = [
        ("sample", ("sample",), bool(found.samples)),
        ("pairs", ("pairs",), bool(found.pairs)),
    ]
    added += [(f"values.{name}", ("values", name), bool(given)) for name, given in found.values.items()]
    for kind, path, there in added:
        if there and kind not in extends:
            message = f"the manifest adds to {clip(kind)}, and checkpoint_extends names {', '.join(extends)}"
            section.error("not-extended", message, *path, hint=f"add '{clip(kind)}' to checkpoint_extends")


def _check_values(section: Section, found: Discovered, constraints: Constraints, findings: Findings) -> None:
    columns: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
        ("sample", ("sample",), found.samples),
        ("group", ("group",), (found.group,) if found.group else ()),
    ]
    columns += [(name, ("values", name), given) for name, given in found.values.items()]
    check_sources(
        [
            Source(
                kind="values",
                label="the manifest",
                columns=(name,),
                rows=tuple([(value,) for value in given]),
                place=section.place(*path),
            )
            for name, path, given in columns
            if given
        ],
        constraints,
        findings,
    )

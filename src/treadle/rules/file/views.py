"""What the rules of each file are read against: the file's own head, config and constraints, above what holds
around it. Where nothing is included there is one view, that of the workflow file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.rules.config.config import Config, Gap
from treadle.rules.file.environments import Shared, environments_of
from treadle.rules.file.head import Head, read_head, read_included_head
from treadle.rules.file.head_texts import with_prelude
from treadle.rules.file.parts import Part, chain
from treadle.rules.file.rule_table import House
from treadle.rules.pattern.constraint import Constraint
from treadle.rules.profile.layers import Layers
from treadle.rules.profile.overrides import Override
from treadle.rules.schema import Module, Value
from treadle.rules.text.placeholder import spelled
from treadle.rules.toml.resource_table import counts
from treadle.rules.toml.section import Findings, Section

Constraints = dict[str, Constraint]


class View(Struct, frozen=True, kw_only=True):
    """What one file sees. `constraints` are all that hold for its rules."""

    part: Part
    head: Head
    constraints: Constraints
    config: Config
    house: House


def read_heads(parts: Sequence[Part], layers: Layers) -> list[Head]:
    """The head of each file, that of an included one on top of the one that includes it."""
    heads = [read_head(parts[0].tables, layers)]
    for number, part in enumerate(parts[1:], 1):
        way = [parts[one].tables for one in chain(parts, number)]
        heads.append(read_included_head(way, layers, heads[part.within]))
    return heads


def inherited(parts: Sequence[Part], own: Sequence[Constraints]) -> list[Constraints]:
    """The constraints that hold in each file: its own before those of the file that includes it."""
    found = [own[0]]
    for part, mine in zip(parts[1:], own[1:]):
        found.append({**found[part.within], **mine})
    return found


def joined_constraints(parts: Sequence[Constraints]) -> Constraints:
    """Those of all files, for values that all of them share; of two for one name the first."""
    return {name: one for constraints in reversed(parts) for name, one in constraints.items()}


def read_configs(
    parts: Sequence[Part], read: Callable[[Sequence[Gap], Config | None], Config]
) -> list[Config]:
    """The config of each file; `read` reads one that has these gaps filled, and else is as another.

    What the workflow file, its profiles or the command line say counts everywhere; else what lies on the
    way to a file, from the outside in; else what any other file says, in the order of the includes.
    """
    every = [_gaps(part) for part in parts]
    main = read([gap for gaps in every for gap in gaps], None)
    found = [main]
    for number in range(1, len(parts)):
        way = [gap for one in chain(parts, number)[1:] for gap in every[one]]
        found.append(read(way, main) if way else main)
    return found


def _gaps(part: Part) -> list[Gap]:
    """What a file fills of the config: the `params` of its include, then its own `[config]`."""
    if part.params is None:
        return []
    own = part.tables.one("config")
    return [gap for gap in (Gap(part.params, bare=True), Gap(own)) if gap.section.table]


def views_of(
    parts: Sequence[Part],
    heads: Sequence[Head],
    constraints: Sequence[Constraints],
    configs: Sequence[Config],
    overrides: tuple[Override, ...],
    folder: str,
) -> list[View]:
    """All views together; the prelude and the environments of each are filled with its own config.

    `folder` is that of the workflow file.
    """
    found: list[View] = []
    shared = Shared(folder)
    for number, (part, head, config) in enumerate(zip(parts, heads, configs)):
        house = with_prelude(head.house, head.defaults, config)
        above = found[part.within].house.environments if number else None
        environments = environments_of(part.tables.one("env_groups"), head.defaults, config, shared, above)
        house = replace(
            house, overrides=overrides, module=number, namespace=part.namespace, environments=environments
        )
        found.append(View(part=part, head=head, constraints=constraints[number], config=config, house=house))
    return found


def modules_of(views: Sequence[View], folder: str, findings: Findings) -> tuple[Module, ...]:
    """The files as the rest of the pipe needs them; none where nothing is included."""
    if len(views) == 1:
        return ()
    main = views[0].config
    return tuple(_module(view, main, folder, findings) for view in views)


def _module(view: View, main: Config, folder: str, findings: Findings) -> Module:
    part = view.part
    own = {key: one for key, one in view.config.values.items() if not _same(one, main.values.get(key))}
    for key in sorted(view.config.sensitive.intersection(own)):
        message = f"the value of '{key}' is a secret, and {part.tables.document.file} sees another one"
        findings.error("config-differs", message, part.place, f"say '{key}' in the workflow file, once")
    return Module(
        name=part.name,
        namespace=part.namespace,
        within=part.within,
        file=part.file,
        root=part.findings.root or folder,
        pin=part.findings.pin,
        pinned=part.pinned,
        commit=part.commit,
        config=own,
        constraints={name: one.text for name, one in view.constraints.items()},
        interpreters=view.head.interpreters,
        inputs=part.inputs,
        outputs=part.outputs,
        place=part.place,
        places=part.tables.places(),
    )


def _same(one: Value, other: Value | None) -> bool:
    """Whether two values are one: `1`, `1.0` and `true` are three, and so are `1e-5` and `0.00001`."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple) and other is not None:
        return len(one) == len(other) and all(map(_same, one, other))
    return spelled(one) == spelled(other)


def shared_pools(parts: Sequence[Part]) -> tuple[tuple[str, int], ...]:
    """The resource groups of all files. The main file's counts hold; of the others two must agree."""
    main = dict(counts(parts[0].tables.one("resource_groups")))
    found = dict(main)
    said: dict[str, Section] = {}
    for part in parts[1:]:
        section = part.tables.one("resource_groups")
        for name, count in counts(section):
            first = said.setdefault(name, section)
            if found.setdefault(name, count) != count and name not in main:
                message = f"there is another count of '{name}' at {first.place(name)}"
                hint = "say it in the [resource_groups] of the workflow file"
                section.error("said-twice", message, name, hint=hint)
    return tuple(sorted(found.items()))

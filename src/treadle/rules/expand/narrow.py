"""Which tasks gather less than they would without a selection of samples.

Their outputs would otherwise replace, unasked, what was made over the whole cohort.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.rules.expand.blueprint import Blueprint
from treadle.rules.expand.rows import Rows
from treadle.rules.expand.values import SIDES

_OF_SAMPLES = frozenset(("sample", "pair_id", *SIDES))

Wildcards = tuple[tuple[str, str], ...]


def is_thinned(blueprint: Blueprint, rows: Rows, replaced: bool) -> bool:
    """Whether the selection (or a sheet that `replaced` the samples) changes what the rule works on."""
    return (
        rows.thinned
        or any(entry.narrowed for entry in blueprint.inputs)
        or (replaced and not _OF_SAMPLES.isdisjoint(blueprint.names))
    )


def is_narrowed(
    blueprint: Blueprint, rows: Rows, fed_thin: bool, replaced: bool
) -> Callable[[Wildcards], bool]:
    """A function that tells, for the wildcards of one task, whether it gathers less by the selection.

    `fed_thin`: a rule whose outputs it looks for was thinned.
    """
    pinned = not _OF_SAMPLES.isdisjoint(blueprint.key)
    whole_rule = any(entry.narrowed for entry in blueprint.inputs)
    if not pinned:
        names = set(blueprint.names)
        whole_rule = whole_rule or (rows.thinned and "sample" in blueprint.open)
        whole_rule = whole_rule or (replaced and not _OF_SAMPLES.isdisjoint(names))
        whole_rule = whole_rule or (fed_thin and _looks_for_many(blueprint))
    if whole_rule:
        return lambda wildcards: True
    wanted, fewer = rows.fewer_names, rows.fewer

    def narrowed(wildcards: Wildcards) -> bool:
        values = dict(wildcards)
        return tuple([values[name] for name in wanted]) in fewer

    return narrowed


def _looks_for_many(blueprint: Blueprint) -> bool:
    """Whether one task gathers several of the paths that it looks for."""
    key = set(blueprint.key)
    return any(
        not set(entry.names) <= key or (entry.searches and key.isdisjoint(entry.names))
        for entry in blueprint.searching()
    )

"""The rules of all files of a workflow: fields taken over, tables read, names of other rules understood."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from treadle.rules.file.cross_checks import check_rules
from treadle.rules.file.extends import Table, extended
from treadle.rules.file.naming import joined, meant
from treadle.rules.file.rule_table import rule
from treadle.rules.file.views import View, shared_pools
from treadle.rules.profile.overrides import Override, check_overrides
from treadle.rules.schema import PARTS, Rule
from treadle.rules.toml.section import Findings, Section


def read_rules(
    views: Sequence[View], overrides: tuple[Override, ...], findings: Findings
) -> tuple[Rule, ...]:
    """The rules by their full names, without templates; what is wrong with them is reported."""
    tables = [
        Table(section=section, name=_full(view, section), namespace=view.part.namespace, module=number)
        for number, view in enumerate(views)
        for section in view.part.tables.many("rules")
    ]
    tables = extended(tables, findings)
    read = [
        rule(one.section, views[one.module].house, extends=one.extends, template=_may_lack_a_command(one))
        for one in tables
    ]
    if any(view.part.tables.many("references") for view in views):
        from treadle.rules.file.references import with_references  # most workflows have none

        read = with_references(read, views, findings)
    known = {one.name for one in read}
    if len(views) > 1:
        read = [_understood(one, views[one.module].part.namespace, known) for one in read]
    templates = {one.name for one in tables if one.template}
    check_rules(read, templates, shared_pools([view.part for view in views]), findings)
    rules = tuple([one for one in read if one.name not in templates])
    parts = [f"{one.name}.{part}" for one in rules if one.transform for part in PARTS]
    check_overrides(overrides, [one.name for one in rules] + parts, findings)
    return rules


def _full(view: View, section: Section) -> str:
    name = section.table.get("name")
    return joined(view.part.namespace, name) if isinstance(name, str) and name else ""


def _may_lack_a_command(table: Table) -> bool:
    """Whether it is there to be extended, or was to take its command over from a rule that is not there."""
    return table.template or ("extends" in table.section.table and not table.extends)


def _understood(rule: Rule, namespace: str, known: Collection[str]) -> Rule:
    """The rule with full names of the rules that it names."""
    depends_on = tuple([meant(name, namespace, known) for name in rule.depends_on])
    scatter = rule.scatter
    if scatter is not None and scatter.gather:
        scatter = replace(scatter, gather=meant(scatter.gather, namespace, known))
    return replace(rule, depends_on=depends_on, scatter=scatter)

"""`extends`: a rule takes over the fields of another one, field by field, before it is read.

Tables inside (`resources`, `params` ...) are taken over key by key. Each field keeps its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from treadle.rules.file.naming import meant
from treadle.rules.toml.section import Findings, Section, clip

_OWN = frozenset({"name", "extends"})
_BY_KEY = frozenset({"resources", "params", "envvars", "rule_metadata"})
# Who says one of these says all of them: the command is one thing, and so is the environment.
_TOGETHER = (
    frozenset({"shell", "script", "interpreter"}),
    frozenset({"environment", "env_group"}),
    frozenset({"scratch", "shadow"}),
)
_GPUS = frozenset({"gpu", "gpu_spec"})


class Table(Struct, frozen=True, kw_only=True):
    """One `[[rules]]` table: its full name (empty: it has none), its namespace, the number of its file.

    `extends` is the full name of the rule that it takes fields of. A `template` has no command and is
    extended by another rule: it makes no tasks.
    """

    section: Section
    name: str
    namespace: str
    module: int
    extends: str = ""
    template: bool = False


def extended(tables: Sequence[Table], findings: Findings) -> list[Table]:
    """The tables with the fields that they take over; circles and unknown names are reported."""
    if not any("extends" in one.section.table for one in tables):
        return list(tables)
    return _Extender(tables, findings).all()


class _Extender:
    def __init__(self, tables: Sequence[Table], findings: Findings) -> None:
        self.tables = tables
        self.findings = findings
        self.numbers: dict[str, int] = {}
        for number, one in enumerate(tables):
            self.numbers.setdefault(one.name, number)
        self.done: dict[int, Table] = {}

    def all(self) -> list[Table]:
        for number in range(len(self.tables)):
            self._settle(number)
        found = [self.done[number] for number in range(len(self.tables))]
        parents = {one.extends for one in found if one.extends}
        return [_with_role(one, parents) for one in found]

    def _settle(self, number: int) -> None:
        """Settle a rule and all above it, the topmost first."""
        way: dict[int, None] = {}
        above: int | None = number
        while above is not None and above not in self.done:
            if above in way:
                self._circle(list(way)[list(way).index(above) :])
                break
            way[above] = None
            above = self._parent(self.tables[above])
        for one in reversed(way):
            if one not in self.done:
                table = self.tables[one]
                parent = self._parent(table)
                self.done[one] = table if parent is None else _merged(table, self.done[parent])

    def _parent(self, table: Table) -> int | None:
        """The number of the rule that is extended; a name that is none is reported."""
        name = table.section.table.get("extends")
        if not isinstance(name, str):
            return None
        full = meant(name, table.namespace, self.numbers)
        if full not in self.numbers:
            message = f"there is no rule '{clip(name)}' to extend"
            hint = self.findings.guess(name, self.numbers)
            self.findings.error("unknown-rule", message, table.section.place("extends"), hint)
        return self.numbers.get(full)

    def _circle(self, circle: Sequence[int]) -> None:
        names = [self.tables[number].name for number in (*circle, circle[0])]
        shown = names if len(names) <= 12 else [*names[:6], "...", *names[-5:]]
        message = f"rules extend each other in a circle: {' -> '.join(map(clip, shown))}"
        self.findings.error("extends-cycle", message, self.tables[circle[0]].section.place("extends"))
        self.done.update((number, self.tables[number]) for number in circle)


def _with_role(table: Table, parents: set[str]) -> Table:
    said = table.section.table
    template = table.name in parents and not any(key in said for key in ("shell", "script", "transform"))
    return Table(
        section=table.section,
        name=table.name,
        namespace=table.namespace,
        module=table.module,
        extends=table.extends,
        template=template,
    )


def _merged(child: Table, parent: Table) -> Table:
    own, taken = child.section.table, parent.section.table
    values: dict[str, Any] = dict(own)
    lent: dict[str | tuple[str, str], Section] = {}
    for key in taken:
        if key in own and key in _BY_KEY and isinstance(own[key], dict) and isinstance(taken[key], dict):
            more = {inner for inner in taken[key] if _is_open(key, inner, own)}
            values[key] = {**{inner: taken[key][inner] for inner in taken[key] if inner in more}, **own[key]}
            lent.update(((key, inner), parent.section.home(key, inner)) for inner in more)
        elif key not in own and key not in _OWN and not _said(key, own):
            values[key] = taken[key]
            lent[key] = parent.section.home(key)
            if key == "resources" and isinstance(taken[key], dict):
                values[key] = {inner: one for inner, one in taken[key].items() if _is_open(key, inner, own)}
    section = child.section
    merged = Section(values, section.spot, section.name, section.file, section.findings, lent=lent)
    return Table(
        section=merged,
        name=child.name,
        namespace=child.namespace,
        module=child.module,
        extends=parent.name,
    )


def _said(key: str, own: Mapping[str, Any]) -> bool:
    """Whether the child says something in place of a field of its parent."""
    if key in ("threads", "memory"):
        inside = own.get("resources")
        return isinstance(inside, dict) and key in inside
    if key == "interpreter" and "script" in own:
        return False
    return any(key in group and not group.isdisjoint(own) for group in _TOGETHER)


def _is_open(key: str, inner: str, own: Mapping[str, Any]) -> bool:
    """Whether a key of a table inside is taken over: the child says nothing in its place."""
    said = own.get(key, {})
    if key != "resources":
        return inner not in said
    if inner in _GPUS and not _GPUS.isdisjoint(said):
        return False
    return inner not in said and not (inner in ("threads", "memory") and inner in own)

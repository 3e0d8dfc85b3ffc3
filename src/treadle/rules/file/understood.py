"""What of a file can still be looked at where something is wrong with it: the rules whose own texts do not
hang on what is wrong. An error may make others seem wrong that are not, and these must never be told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from treadle.base.place import Diagnostic
from treadle.rules.profile.overrides import COMMAND_LINE
from treadle.rules.schema import Rule, Workflow

# Tables in which an error says nothing of the texts of (other) rules.
_APART = frozenset(
    {
        *("rules", "workflow", "defaults", "wildcard_constraints", "resource_groups", "resource_budget"),
        *("execution_group", "env_groups", "cluster", "report", "citation", "reference_db", "metadata"),
    }
)
_SOURCES = frozenset({"pairs", "sample_groups", "values", "tables"})
_OF_SOURCES = frozenset({"pairs_file", "sample_groups_file", "sample_pattern", "pairs_pattern"})
# Errors of a source that leave its columns as they are.
_COLUMNS_STAND = frozenset({"bad-value", "ragged-sheet", "said-twice", "constraint-not-met"})
# Fields of a rule that no text of it hangs on.
_BESIDE = frozenset(
    {
        *(
            "threads",
            "memory",
            "resources",
            "retries",
            "retry_delay",
            "retry_memory",
            "retry_time",
            "resumable",
        ),
        *(
            "priority",
            "target",
            "optional",
            "required",
            "depends_on",
            "allow_missing",
            "checksum",
            "benchmark",
        ),
        *("group", "pack", "localrule", "oom_ok", "restartable", "signal_before_end", "scratch", "shadow"),
        *("environment", "env_group", "description", "tags", "rule_metadata"),
    }
)
_KEY = re.compile(r"config\.([A-Za-z0-9_-]+)")
_ENGINES_OWN = re.compile(r"samples_.+|pairs_list")  # keys that list what the sources hold
# What may only seem wrong where the columns of a source are not known.
_BY_COLUMNS = frozenset(
    {"no-source", "unknown-placeholder", "unknown-name", "pairs-and-samples", "path-in-path"}
)


class Understood(Struct, frozen=True):
    """The workflow with those of its rules whose texts can be looked at; `hazy`: its sources may have further
    columns."""

    workflow: Workflow
    hazy: bool = False

    def certain(self, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Those findings that stand in its rules and hang on nothing that is not known."""
        tables = {_table_of(rule) for rule in self.workflow.rules}
        return [
            one
            for one in found
            if (one.place.file, one.place.table) in tables and not (self.hazy and one.code in _BY_COLUMNS)
        ]


def understood(
    workflow: Workflow, errors: Sequence[Diagnostic], file: str, config: Mapping[str, Any]
) -> Understood | None:
    """What can be looked at of a workflow of `file` with these errors; `config` is its table as it stands
    there.

    None where an error may lead to any other one: an included file that is not there, an unknown table.
    """
    tables = {_table_of(rule) for rule in workflow.rules}
    wrong: set[tuple[str, str]] = set()
    keys: set[str] = set()
    hazy = False
    for one in errors:
        table, first = one.place.table, re.split(r"[.\[]", one.place.key, maxsplit=1)[0]
        outer = re.split(r"[.\[]", table, maxsplit=1)[0]
        if (one.place.file, table) in tables:
            if first not in _BESIDE:
                wrong.add((one.place.file, table))
        elif outer == "workflow" and first == "interpreter_map":
            return None
        elif one.place.file == COMMAND_LINE and not first.startswith("--"):
            keys.add(first)
        elif outer in _SOURCES or not table or (outer == "workflow" and first in _OF_SOURCES):
            if not table and one.place.file.endswith((".oxoflow", ".toml")):
                return None
            hazy = hazy or one.code not in _COLUMNS_STAND
        elif outer == "config" and one.place.file == file:
            keys.add(first if table == "config" else table.partition(".")[2])
        elif outer not in _APART:
            return None
    doubted = _hanging_on(keys, config)
    hazy = hazy or not _named((workflow.sample_pattern, workflow.pairs_pattern)).isdisjoint(doubted)
    rules = [rule for rule in _but_for(wrong, workflow.rules) if not _hangs_on(rule, doubted, hazy)]
    return Understood(replace(workflow, rules=tuple(rules)), hazy) if rules else None


def _table_of(rule: Rule) -> tuple[str, str]:
    return rule.place.file, rule.place.table


def _but_for(wrong: set[tuple[str, str]], rules: Sequence[Rule]) -> list[Rule]:
    """The rules that do not stand in these tables, and take over no fields of one that does."""
    names = more = {rule.name for rule in rules if _table_of(rule) in wrong}
    while more:
        more = {rule.name for rule in rules if rule.extends in more} - names
        names = names | more
    return [rule for rule in rules if rule.name not in names]


def _hanging_on(keys: Iterable[str], config: Mapping[str, Any]) -> frozenset[str]:
    """The keys, and those whose values name them, near or far."""
    named = {key: _named(value) for key, value in config.items()}
    found, more = set(keys), set(keys)
    while more:
        more = {key for key, others in named.items() if not more.isdisjoint(others)} - found
        found |= more
    return frozenset(found)


def _hangs_on(rule: Rule, keys: frozenset[str], hazy: bool) -> bool:
    bare = {text for fan in rule.fan_in for _, text in fan.variables if isinstance(text, str)}
    named = _named(rule) | bare
    return not named.isdisjoint(keys) or (hazy and any(map(_ENGINES_OWN.fullmatch, named)))


def _named(value: Any) -> set[str]:
    """The config keys that are named anywhere in a value."""
    found: set[str] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            found.update(_KEY.findall(one))
        elif isinstance(one, Mapping):
            pending += (*one.keys(), *one.values())
        elif isinstance(one, list | tuple | set | frozenset):
            pending += one
        elif isinstance(one, Struct):
            pending += astuple(one)
        elif one is not None and not isinstance(one, int | float):  # a number names nothing
            found.update(_KEY.findall(str(one)))
    return found

"""Workflow files and profiles as JSON schema, made from the table that the reader goes by.

What the schema refuses the reader refuses, too; the reader sees more (names, measures, what fits together).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.rules.toml.fields import (
    DECLARED,
    ENVIRONMENT,
    OVERRIDE,
    PARTITION,
    PROFILE,
    TOP,
    Field,
    Fields,
    Kind,
    State,
    Top,
)

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TEXT: Schema = {"type": "string"}
_FILLED: Schema = {"type": "string", "minLength": 1}
_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
_MEASURE: Schema = {"type": ["string", "number"]}
_FREE: Schema = {"type": "object"}
_VALUE: Schema = {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_NOTHING: Schema = {"enum": [False, "", [], {}]}  # what says nothing is no error in a field that is to come
_PLAIN_OR_MAX: Schema = {
    "anyOf": [
        _COUNT,
        {
            "type": "object",
            "properties": {"max": _COUNT, "wait": {"type": "boolean"}},
            "required": ["max"],
            "additionalProperties": False,
        },
    ]
}

_KINDS: dict[Kind, Schema] = {
    Kind.ANY: {},
    Kind.TEXT: _TEXT,
    Kind.NAME: _FILLED,
    Kind.VALUE: _SCALAR,
    Kind.COMMAND: _TEXT,
    Kind.PATH: _FILLED,
    Kind.FLAG: {"type": "boolean"},
    Kind.WHOLE: {"type": "integer"},
    Kind.NATURAL: {"type": "integer", "minimum": 0},
    Kind.COUNT: _COUNT,
    Kind.SIZE: _MEASURE,
    Kind.SIZE_OR_NONE: _MEASURE,
    Kind.DURATION: _MEASURE,
    Kind.DELAY: {"type": ["string", "number"], "minimum": 0},
    Kind.INTERVAL: {"type": ["string", "number"], "exclusiveMinimum": 0},
    Kind.SIZE_GROWTH: _TEXT,
    Kind.TIME_GROWTH: _TEXT,
    Kind.MISSING: {"type": ["string", "integer"], "minimum": 0},
    Kind.PACK: {"type": ["string", "number"], "minimum": 1},
    Kind.TEXTS: {"type": "array", "items": _TEXT},
    Kind.NAMES: {"type": "array", "items": _FILLED},
    Kind.NAMES_OR_NAME: {"anyOf": [_FILLED, {"type": "array", "items": _FILLED}]},
    Kind.PATHS: {"type": "array", "items": _FILLED},
    Kind.VALUES: _FREE,
    Kind.VARIABLES: {"type": "object", "additionalProperties": _SCALAR},
    Kind.COUNTS: {"type": "object", "additionalProperties": _PLAIN_OR_MAX},
    Kind.SCRATCH: {"enum": [True, False, "", "minimal", "shallow", "full"]},
    Kind.TABLE: _FREE,
    Kind.LIST: {"type": "array"},
}


def workflow_schema() -> Schema:
    """The schema of workflow files (draft 2020-12)."""
    shapes = {
        "config": {"type": "object", "additionalProperties": {"anyOf": [_VALUE, _declared()]}},
        "wildcard_constraints": {"type": "object", "additionalProperties": _TEXT},
        "resource_groups": _KINDS[Kind.COUNTS],
        "env_groups": {"type": "object", "additionalProperties": _table(ENVIRONMENT)},
    }
    found = _whole("Workflow file of Treadle (.oxoflow)", TOP, shapes)
    found["properties"]["rules"]["items"]["required"] = ["name"]  # of [workflow] only main files need one
    return found


def profile_schema() -> Schema:
    """The schema of profiles (draft 2020-12)."""
    shapes = {
        "config": {"type": "object", "additionalProperties": _VALUE},
        "rules": {"type": "object", "additionalProperties": _table(OVERRIDE)},
        "partitions": {"type": "object", "additionalProperties": _table(PARTITION)},
    }
    return _whole("Profile of Treadle", PROFILE, shapes)


def _whole(title: str, tops: Mapping[str, Top], shapes: Mapping[str, Schema]) -> Schema:
    properties = {name: _top(top, shapes.get(name, _FREE)) for name, top in tops.items()}
    return {
        "$schema": DIALECT,
        "title": title,
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _top(top: Top, shape: Schema) -> Schema:
    """One table, or the list of tables, of a name at the top."""
    table = dict(shape) if top.fields is None else _table(top.fields)
    found = {"type": "array", "items": table} if top.array else table
    return found | _remarks(top.state, top.why)


def _table(fields: Fields) -> Schema:
    properties = {name: _field(field) for name, field in fields.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _field(field: Field) -> Schema:
    if field.state is State.INSTEAD:
        return {**_NOTHING, "description": _about(field.state, field.why)}
    if field.state is State.NO_EFFECT:
        return _remarks(field.state, field.why)
    shape = _inside(field.kind, field.inside) if field.inside is not None else _KINDS[field.kind]
    return {"description": str(field.kind), **shape, **_remarks(field.state, field.why)}


def _inside(kind: Kind, fields: Fields) -> Schema:
    """The shape of a field that holds a table with fields of its own."""
    table = _table(fields)
    match kind:
        case Kind.FILES:
            entry = {"anyOf": [_FILLED, {**table, "required": list(fields)}]}
            many: Schema = {"anyOf": [entry, {"type": "array", "items": entry}]}
            named = {"type": "object", "not": {"required": ["pattern"]}, "additionalProperties": many}
            return {"anyOf": [*many["anyOf"], named]}
        case Kind.FAN_IN | Kind.LIST:
            return {"anyOf": [table, {"type": "array", "items": table}]}
        case _:
            return table


def _declared() -> Schema:
    return {**_table(DECLARED), "minProperties": 1}


def _remarks(state: State, why: str) -> Schema:
    if state not in (State.NO_EFFECT, State.SCHEDULER):
        return {}
    return {"description": _about(state, why), **({"deprecated": True} if state is State.NO_EFFECT else {})}


def _about(state: State, why: str) -> str:
    match state:
        case State.INSTEAD:
            return why
        case State.NO_EFFECT:
            return f"no effect: {why}"
        case _:
            return "acts where the run has a scheduler"

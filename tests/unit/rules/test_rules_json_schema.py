"""The JSON schema takes what the reader takes, and refuses nothing that it would take."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import tomli
from jsonschema import Draft202012Validator

from treadle.rules.toml import fields
from treadle.rules.toml.fields import Field, Fields, Kind
from treadle.rules.toml.json_schema import _KINDS, profile_schema, workflow_schema
from treadle.rules.toml.kinds import READERS
from treadle.rules.toml.lines import Spot
from treadle.rules.toml.section import Findings, Section

ROOT = Path(__file__).parents[3]
FLOWS = sorted(
    file
    for below in ("tests/golden/flows", "tests/corpus", "examples", "src/treadle/cli/templates")
    for file in (ROOT / below).rglob("*.oxoflow")
    if not (file.parent / "refused.txt").exists()
)
VALUES: list[Any] = [
    *("", "a", "8G", "64M", "none", "90m", "x2", "+8G", "+2h", " ", "3"),
    *(-1, 0, 1, 2.5, -0.5, 0.0, True, False),
    *([], ["a"], ["a", "b"], [1], [["a"]], {}, {"a": 1}, {"a": "b"}, {"a": {"max": 2}}, {"a": [1]}),
]
TOPS = {name: top for name, top in fields.TOP.items() if top.fields is not None}


def errors(schema: dict[str, Any], value: Any) -> list[str]:
    return [
        f"{'.'.join(map(str, one.absolute_path))}: {one.message}"
        for one in Draft202012Validator(schema).iter_errors(value)
    ]


@pytest.mark.parametrize("schema", [workflow_schema(), profile_schema()], ids=["workflow", "profile"])
def test_the_schema_is_one_of_its_draft(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: f"{flow.parent.name}/{flow.name}")
def test_workflows_that_are_right_are_right_for_the_schema(flow: Path) -> None:
    assert errors(workflow_schema(), tomli.loads(flow.read_text())) == []


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind in _KINDS])
def test_what_the_schema_refuses_the_reader_refuses(kind: Kind) -> None:
    validator = Draft202012Validator(_KINDS[kind])
    refused = [value for value in VALUES if not validator.is_valid(value)]
    for value in refused:
        findings = Findings()
        READERS[kind](Section({}, Spot(), "t", "f", findings), value, kind, ("k",))
        assert findings.found or kind in (Kind.VARIABLES, Kind.COUNTS), f"{kind}: {value!r}"
    assert refused or kind is Kind.ANY


def test_every_kind_has_a_shape() -> None:
    assert {*Kind} - {*_KINDS} == {Kind.FILES, Kind.FAN_IN}


def flow_with(table: str, key: str, value: Any) -> dict[str, Any]:
    """A workflow that is right but for one key of one of its tables."""
    flow: dict[str, Any] = {"workflow": {"name": "w"}, "rules": [{"name": "r", "shell": "true"}]}
    if fields.TOP[table].array:
        flow.setdefault(table, [{}])[0][key] = value
    else:
        flow.setdefault(table, {})[key] = value
    return flow


@pytest.mark.parametrize("table", TOPS)
def test_an_unknown_key_is_refused_in_every_table(table: str) -> None:
    assert errors(workflow_schema(), flow_with(table, "odd", 1))


@pytest.mark.parametrize("table", TOPS)
def test_a_wrong_type_is_refused_in_every_field(table: str) -> None:
    known = TOPS[table].fields or {}
    loose = {name for name, one in known.items() if takes_anything(one)}
    odd = datetime.date(1979, 5, 27)
    assert [
        name
        for name in known
        if name not in loose and not errors(workflow_schema(), flow_with(table, name, odd))
    ] == []


def takes_anything(one: Field) -> bool:
    return one.kind is Kind.ANY


def tables_inside(known: Fields) -> list[tuple[str, Fields]]:
    return [(name, one.inside) for name, one in known.items() if one.inside is not None]


def test_an_unknown_key_is_refused_in_tables_inside_others() -> None:
    for name, inside in tables_inside(fields.RULE):
        value = {**dict.fromkeys(inside, None), "odd": 1}
        assert errors(workflow_schema(), flow_with("rules", name, value)), name
    for name, _ in tables_inside(fields.RESOURCES):
        assert errors(workflow_schema(), flow_with("rules", "resources", {name: {"odd": 1}})), name


@pytest.mark.parametrize(
    "entry",
    ["a", ["a", "b"], {"x": "a", "y": ["b"]}, {"path": "d", "pattern": "*"}, [{"path": "d", "pattern": "*"}]],
)
def test_inputs_may_have_each_of_their_forms(entry: Any) -> None:
    assert errors(workflow_schema(), flow_with("rules", "input", entry)) == []


@pytest.mark.parametrize("entry", [1, [1], {"path": "d", "pattern": 1}, {"pattern": "*"}, {"x": 1}])
def test_no_other_form_of_an_input_is_taken(entry: Any) -> None:
    assert errors(workflow_schema(), flow_with("rules", "input", entry))


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("a", True),
        ([1, "b"], True),
        ({"default": 1, "type": "int"}, True),
        ({"defalt": 1}, False),
        ({}, False),
        ([{}], False),
    ],
)
def test_config_keys_are_plain_or_declared(value: Any, fits: bool) -> None:
    assert (errors(workflow_schema(), flow_with("config", "k", value)) == []) is fits


def test_a_profile_has_its_own_schema() -> None:
    good = {
        "cluster": {"backend": "slurm", "walltime": "2h"},
        "config": {"ref": "a"},
        "rules": {"align": {"resources": {"memory": "8G"}}, "q*": {"resources": {"gpu": 1}}},
        "partitions": {"short": {"time_limit": "1h"}},
    }
    assert errors(profile_schema(), good) == []
    for path in (("cluster",), ("partitions", "short"), ("rules", "align"), ("rules", "align", "resources")):
        bad = tomli.loads(f"[{'.'.join(path)}]\nodd = 1\n")
        assert errors(profile_schema(), bad), path
    assert errors(profile_schema(), {"workflow": {"name": "w"}})

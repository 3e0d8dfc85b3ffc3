"""Reading `[config]`: plain and declared keys, values of the command line, references, engine keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.rules.config.config import engine_keys
from treadle.rules.file.read import ReadOptions, read_text
from treadle.rules.schema import Source, Spelled, Workflow

RULE = '[[rules]]\nname = "a"\nshell = "x"\n'


def workflow(
    config: str, *given: tuple[str, str], more: str = "", workdir: str = "", folder: str = ""
) -> Workflow:
    text = f'[workflow]\nname = "x"\n[config]\n{config}\n{RULE}{more}'
    return read_text(text, folder=folder, options=ReadOptions(config=given, workdir=workdir))


def values(config: str, *given: tuple[str, str], more: str = "") -> dict[str, Any]:
    return workflow(config, *given, more=more).config


def errors(config: str, *given: tuple[str, str], workdir: str = "") -> list[Diagnostic]:
    with pytest.raises(WorkflowError) as caught:
        workflow(config, *given, workdir=workdir)
    return list(caught.value.diagnostics)


def test_plain_values_keep_their_types_and_spelling() -> None:
    read = values('s = "t"\ni = 3\nf = 1e-5\nb = true\nl = ["a", 2, 1.50]')
    assert read == {"s": "t", "i": 3, "f": Spelled("1e-5"), "b": True, "l": ("a", 2, Spelled("1.50"))}
    assert str(read["f"]) == "1e-5"
    assert str(read["l"][2]) == "1.50"
    assert type(read["i"]) is int


@pytest.mark.parametrize(
    "line",
    [
        "x = 1979-05-27",
        "x = [[1]]",
        "x = {}",
        "x = { y = 1 }",
        "x = 99999999999999999999",
        "'a b' = 1",
        "1x = 1",
    ],
)
def test_a_value_that_a_key_cannot_hold_is_one_error(line: str) -> None:
    (error,) = errors(line)
    assert error.place.line == 4


def test_a_nul_in_a_value_is_an_error() -> None:
    assert [one.code for one in errors('x = "a\\u0000b"')] == ["control-character"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('x = { default = "30", type = "int" }', 30),
        ('x = { default = 30, type = "int" }', 30),
        ('x = { default = 3, type = "float" }', 3),
        ('x = { default = "1e-5", type = "float" }', Spelled("1e-5")),
        ('x = { default = "true", type = "bool" }', True),
        ('x = { default = "dna", choices = ["dna", "rna"] }', "dna"),
        ('x = { default = 2, type = "int", choices = [1, "2"] }', 2),
        ('x = { default = 5, range = "1..5" }', 5),
        ('x = { default = 0.5, range = "..1" }', Spelled("0.5")),
        ('x = { default = ["a"], help = "h" }', ("a",)),
        ('x = { default = "" , type = "path" }', ""),
        ('x = { default = "refs/nt", required = true }', "refs/nt"),
    ],
)
def test_a_declared_key_takes_its_default_by_type(line: str, value: Any) -> None:
    read = values(line)["x"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('x = { default = "x", type = "int" }', "config-type"),
        ('x = { default = 1.5, type = "int" }', "config-type"),
        ('x = { default = true, type = "int" }', "config-type"),
        ('x = { default = 30, type = "string" }', "config-type"),
        ('x = { default = ["a"], type = "string" }', "config-type"),
        ('x = { default = "yes", type = "bool" }', "config-type"),
        ('x = { type = "integer" }', "config-type"),
        ('x = { default = "c", choices = ["a", "b"] }', "config-choice"),
        ("x = { choices = [] }", "empty"),
        ('x = { choices = ["a"], type = "int" }', "config-type"),
        ("x = { choices = 'a' }", "wrong-type"),
        ('x = { default = 6, range = "1..5" }', "config-range"),
        ('x = { default = "a", range = "1..5" }', "config-range"),
        ('x = { range = "5..1" }', "config-range"),
        ('x = { range = "1-5" }', "config-range"),
        ('x = { range = ".." }', "config-range"),
        ('x = { range = "1..5", type = "string" }', "config-range"),
        ('x = { must_exist = true, type = "int" }', "config-type"),
        ('x = { required = "yes" }', "wrong-type"),
        ("x = { required = true, defualt = 1 }", "unknown-key"),
        ("x = { default = { a = 1 } }", "wrong-type"),
        ('x = { default = "a\\tb", type = "path" }', "control-character"),
    ],
)
def test_a_declaration_that_cannot_be_is_an_error(line: str, code: str) -> None:
    assert code in [one.code for one in errors(line)]
    assert all(one.place.line == 4 for one in errors(line))


def test_a_required_key_without_a_value_says_what_it_is_for() -> None:
    (error,) = errors('db = { required = true, help = "BLAST database" }')
    assert error.code == "config-required"
    assert "BLAST database" in error.message
    assert error.hint == "give it with --config db=VALUE"
    assert values("db = { required = true }", ("db", "refs/nt")) == {"db": "refs/nt"}


def test_a_declared_key_without_a_value_is_known_but_has_none() -> None:
    read = workflow('db = { help = "h" }')
    assert read.config == {}
    assert read.declared["db"].help == "h"


def test_must_exist_looks_from_the_work_folder(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("")
    line = 'p = { default = "here", type = "path", must_exist = true }'
    assert workflow(line, workdir=str(tmp_path)).config == {"p": "here"}
    assert workflow(line, folder=str(tmp_path)).config == {"p": "here"}
    assert [one.code for one in errors(line, workdir=str(tmp_path / "no"))] == ["config-path"]


@pytest.mark.parametrize(
    ("line", "text", "value"),
    [
        ("x = 1", "-7", -7),
        ("x = 1.5", "1e-7", Spelled("1e-7")),
        ("x = 1.5", "2", 2),
        ("x = true", "False", False),
        ('x = "a"', "true", "true"),
        ('x = ["a"]', "b, c", ("b", "c")),
        ('x = ["a"]', '["b,c"]', ("b,c",)),
        ('x = ["a"]', "", ()),
        ('x = { type = "int" }', "3", 3),
        ('x = { type = "path", default = "p" }', "q r", "q r"),
        ('x = "a"', "", ""),
        ('x = "a"', "two\nlines", "two\nlines"),
    ],
)
def test_a_value_of_the_command_line_is_read_by_the_type_it_replaces(
    line: str, text: str, value: Any
) -> None:
    read = values(line, ("x", text))["x"]
    assert (read, type(read)) == (value, type(value))
    if isinstance(read, Spelled):
        assert str(read) == text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("x = 1", "one"),
        ("x = 1", "1.0"),
        ("x = 1", ""),
        ("x = 1", "99999999999999999999"),
        ("x = 1", "１"),
        ("x = 1.5", "1_0"),
        ("x = true", "1"),
        ("x = ['a']", "[[1]]"),
        ("x = ['a']", "[1"),
        ("x = ['a']", "[1]\ny = 2"),
        ("x = ['a']", "[" * 5000),
        ("x = 'a'", "a\0b"),
        ("x = 'a'", "a\udcff"),
    ],
)
def test_a_value_of_the_command_line_that_does_not_fit_is_an_error(line: str, text: str) -> None:
    (error,) = errors(line, ("x", text))
    assert str(error.place) == "the command line [x]"


def test_the_last_value_of_a_key_counts() -> None:
    assert values("x = 1", ("x", "2"), ("x", "3")) == {"x": 3}


def test_a_mistyped_key_of_the_command_line_is_an_error_with_the_nearest_name() -> None:
    (error,) = errors("threshold = 1", ("treshold", "2"))
    assert (error.code, error.hint) == ("unknown-config", "did you mean 'threshold'?")


def test_a_key_that_only_a_rule_names_may_be_set() -> None:
    rule = '[[rules]]\nname = "b"\nshell = "echo {config.extra}"\n'
    assert values("", ("extra", "5"), more=rule) == {"extra": "5"}


def test_references_are_filled_to_a_fixed_point() -> None:
    read = values(
        'a = "{config.b}/x"\nb = "{config.c}"\nc = "root"\nn = 3\nm = "{config.n}"\n'
        'l = ["{config.a}", "y", "{config.k}"]\nk = ["1", "2"]\nt = "--l {config.k}"\n'
        'lit = "{{config.c}} ${config.c} {sample} {{{config.c}}}"'
    )
    assert read["a"] == "root/x"
    assert read["m"] == 3
    assert read["l"] == ("root/x", "y", "1", "2")
    assert read["t"] == "--l 1 2"
    assert read["lit"] == "{config.c} ${config.c} {sample} {root}"


def test_a_circle_of_references_is_drawn() -> None:
    (error,) = errors('a = "{config.b}"\nb = "{config.c}"\nc = "x{config.a}"\nd = "{config.a}"')
    assert error.code == "config-cycle"
    assert error.message.endswith("a -> b -> c -> a")
    (error,) = errors('a = "{config.a}"')
    assert error.message.endswith("a -> a")


def test_a_reference_to_nothing_is_an_error_with_the_nearest_name() -> None:
    (error,) = errors('result = "r"\na = "{config.reslut}"')
    assert (error.code, error.place.line, error.hint) == ("unknown-config", 5, "did you mean 'result'?")
    assert [one.code for one in errors('a = "{config.b[0]}"\nb = ["x"]')] == ["unknown-placeholder"]


def test_a_long_chain_of_references_is_followed_and_a_growing_one_stopped() -> None:
    chain = "\n".join(f'k{n} = "{{config.k{n + 1}}}"' for n in range(5000)) + '\nk5000 = "end"'
    assert values(chain)["k0"] == "end"
    growing = (
        "\n".join(f'k{n} = "{{config.k{n + 1}}}{{config.k{n + 1}}}"' for n in range(60)) + '\nk60 = "end"'
    )
    assert {one.code for one in errors(growing)} == {"too-long"}


def test_what_holds_a_secret_is_a_secret() -> None:
    read = workflow(
        'token = { default = "s3cret", sensitive = true }\nurl = "https://{config.token}@h"\n'
        'api = ["{config.url}/v1"]\nplain = "p"'
    )
    assert read.sensitive == {"token", "url", "api"}


def test_no_message_shows_a_secret() -> None:
    lines = (
        'token = { default = "s3cret", sensitive = true, choices = ["a"] }',
        'token = { default = "s3cret", sensitive = true, type = "int" }',
        'token = { default = "s3cret", sensitive = true, range = "1..2" }',
        'token = { default = "s3cret", sensitive = true, must_exist = true }',
        'token = { default = "s3cret", sensitive = true }\nn = { type = "int", default = "{config.token}" }',
    )
    for line in lines:
        assert "s3cret" not in str([str(one) for one in errors(line)])
    assert "s3cret" not in str(errors('token = { sensitive = true, type = "int" }', ("token", "s3cret")))


GROUPS = (
    '[[sample_groups]]\nname = "case"\nsamples = ["S2", "S10"]\n'
    '[[sample_groups]]\nname = "ctl"\nsamples = ["S2"]\n'
)
PAIRS = (
    '[[pairs]]\npair_id = "P"\nexperiment = "T"\ncontrol = "N"\n[[pairs]]\npair_id = "O"\nexperiment = "T"\n'
)


def test_the_engine_adds_sorted_lists_of_samples_and_pairs() -> None:
    assert values("", more=GROUPS + PAIRS) == {
        "pairs_list": "O,P",
        "samples_list": "N,S10,S2,T",
        "samples_case": "S10,S2",
        "samples_ctl": "S2",
    }


def test_the_users_own_lists_are_merged_not_replaced() -> None:
    read = values('samples_list = "X, S2"\nsamples_case = ["Y"]\npairs_list = "Q"', more=GROUPS + PAIRS)
    assert read["samples_list"] == "N,S10,S2,T,X"
    assert read["samples_case"] == "S10,S2,Y"
    assert read["pairs_list"] == "O,P,Q"
    assert values('all = "for {config.samples_list}"', more=GROUPS)["all"] == "for S10,S2"


def test_without_sources_the_engine_adds_nothing() -> None:
    assert values('x = "1"') == {"x": "1"}
    assert engine_keys({}, ()) == {}


def test_merging_again_changes_nothing_and_a_comma_makes_an_array() -> None:
    source = Source(kind="samples", label="s", columns=("sample",), rows=(("b",), ("a",), (None,)))
    once = engine_keys({}, (source,))
    assert once == {"samples_list": "a,b"}
    assert engine_keys(once, (source,)) == once
    odd = Source(kind="samples", label="s", columns=("sample",), rows=(("a,b",), ("c",)))
    assert engine_keys({}, (odd,)) == {"samples_list": ("a,b", "c")}


@pytest.mark.parametrize("late", ["3", "1.50", "true", '["a", 2]'])
def test_a_value_of_any_type_may_be_referred_to_before_its_line(late: str) -> None:
    read = values(f'early = "is {{config.late}}."\nalone = "{{config.late}}"\nlate = {late}')
    assert read["alone"] == read["late"]
    assert read["early"] == {"3": "is 3.", "1.50": "is 1.50.", "true": "is true."}.get(late, "is a 2.")

"""All errors of a file at once: one in config or in a sheet hides none in a rule, and makes none up."""

from __future__ import annotations

import json

import pytest

RULES = """
    [[rules]]
    name = "a"
    output = ["a/{sampel}.txt"]
    shell = "echo {config.level} > {output}"
    when = "== 'x'"
    [[rules]]
    name = "b"
    output = ["b/{sample}.txt"]
    threads = "many"
    depends_on = ["nobody"]
    shell = "echo {what} > {output}"
    on_failure = "echo {output} 'open"
"""
OF_RULES = ["bad-condition", "no-source", "shell-syntax", "unknown-placeholder", "unknown-rule", "wrong-type"]
GROUP = '[[sample_groups]]\nname = "all"\nsamples = ["S1"]\n'


def codes(folder, *args: str) -> list[str]:
    """What `check` finds wrong, by code; each once."""
    found = json.loads(folder.treadle("check", "--json", *args, exits=2).stdout)["errors"]
    return sorted({one["code"] for one in found})


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (GROUP + '[config]\nlevel = "x"\nn = { default = 3, range = "5..9" }', ["config-range"]),
        (GROUP + '[config]\nlevel = "x"\nn = { type = "int", required = true }', ["config-required"]),
        ('[config]\nlevel = "x"\n' + GROUP.replace("S1", "../S1"), ["bad-value"]),
        (GROUP + '[config]\nlevel = "x"\n[defaults]\nmemory = "much"', ["bad-measure"]),
        (GROUP + '[config]\nlevel = "x"\n[wildcard_constraints]\nsample = "("', ["bad-constraint"]),
    ],
)
def test_an_error_above_the_rules_hides_none_in_them(folder, head, more):
    folder.flow(head.replace("\n", "\n    ") + RULES)
    assert codes(folder) == sorted([*OF_RULES, *more])


def test_those_of_config_a_table_and_a_rule_are_told_together_with_their_lines(folder):
    folder.flow(
        GROUP.replace("S1", "../S1")
        + '[config]\nn = { default = 3, range = "5..9" }\n'
        + '[[rules]]\nname = "r"\noutput = ["{sample}.txt"]\nshell = "echo {wrod} > {output}"\n'
    )
    said = folder.treadle("check", exits=2).stderr + folder.treadle("check", exits=2).stdout
    for words in (
        "[config.n]",
        "[sample_groups.all.samples]",
        "[rules.r.shell]: nothing is known for {wrod}",
    ):
        assert words in said
    again = folder.treadle("plan", exits=2).stderr
    assert "{wrod}" in again, "not only `check` tells it"


@pytest.mark.parametrize(
    "value", ["{ default = 3, range = '5..9' }", "{ type = 'int', required = true }", "{}"]
)
def test_what_hangs_on_a_config_key_that_is_wrong_is_not_told(folder, value):
    folder.flow(
        f"""
        [config]
        n = {value}
        far = "{{config.n}}/x"
        [[rules]]
        name = "a"
        output = ["{{config.far}}.txt"]
        when = "config.n == 'x'"
        shell = "echo {{config.n}} {{typo}} > {{output}}"
        [[rules]]
        name = "b"
        expand_inputs = [{{ pattern = "{{v}}.txt", variables = {{ v = "n" }} }}]
        output = ["b.txt"]
        shell = "echo {{input[7]}} > {{output}}"
        [[rules]]
        name = "c"
        extends = "wrong"
        output = ["c.txt"]
        shell = "echo {{params.x}} > {{output}}"
        [[rules]]
        name = "wrong"
        params = 3
        output = ["wrong.txt"]
        shell = "true"
        [[rules]]
        name = "d"
        output = ["d.txt"]
        shell = "echo {{typo}} > {{output}}"
        """
    )
    found = json.loads(folder.treadle("check", "--json", exits=2).stdout)["errors"]
    assert {one["place"]["table"] for one in found if one["place"]["table"].startswith("rules")} == {
        "rules.wrong",
        "rules.d",
    }


def test_names_that_a_sheet_may_have_are_not_told_where_it_cannot_be_read(folder):
    folder.flow(
        '[[tables]]\nname = "t"\nfile = "nosuch.csv"\n[config]\nlevel = "x"\n' + RULES.replace("\n    ", "\n")
    )
    assert codes(folder) == ["bad-condition", "no-sheet", "shell-syntax", "unknown-rule", "wrong-type"]
    folder.write("nosuch.csv", "sample,what\nS1,x,y\n")
    assert codes(folder) == sorted(
        ["bad-condition", "no-source", "ragged-sheet", "shell-syntax", "unknown-rule", "wrong-type"]
    )


def test_a_wildcard_is_not_called_unknown_where_its_pattern_cannot_be_read(folder):
    rule = '[[rules]]\nname = "r"\noutput = ["{sample}.txt"]\nshell = "echo {output[7]}"\n'
    pattern = '[workflow]\nname = "w"\nsample_pattern = "{config.where}/{sample}.txt"\n'
    folder.flow(f"{pattern}[config]\nwhere = {{ required = true }}\n{rule}", head="")
    assert codes(folder) == ["config-required", "index-out-of-range"]


def test_nothing_is_guessed_where_an_included_file_is_missing(folder):
    folder.flow('[[include]]\npath = "nosuch.oxoflow"\n' + RULES.replace("\n    ", "\n"))
    assert "unknown-config" not in codes(folder)

"""Rules that make no plan: circles, two producers, inputs of nobody; told what and where."""

from __future__ import annotations

import pytest
from story_bad_input import Case, is_told, rule

PLANS = {
    "cycles": Case(
        rule("a", 'input = ["b.txt"]\n')
        + rule("b", 'input = ["a.txt"]\n')
        + rule("c", 'input = ["c.txt"]\n'),
        [
            ("main.oxoflow:4 [rules.a]", "in a circle: a -> b -> a"),
            ("main.oxoflow:14 [rules.c]", "its own output"),
        ],
    ),
    "two producers": Case(
        rule("a", 'output = ["x"]\n')
        + rule("b", 'output = ["x"]\n')
        + rule("c")
        + rule("d", 'output = ["./c.txt"]\n'),
        [
            ("main.oxoflow:8 [rules.b]", "a (main.oxoflow:4 [rules.a]) and b both make x"),
            ("main.oxoflow:16 [rules.d]", "both make c.txt"),
        ],
    ),
    "outputs in the wrong place": Case(
        rule("a", 'output = [".treadle/x"]\n')
        + rule("b", 'output = ["."]\n')
        + rule("c", 'output = ["main.oxoflow"]\n')
        + rule("d", 'output = ["../"]\n'),
        [
            ("main.oxoflow:4 [rules.a]", "belongs to Treadle"),
            ("main.oxoflow:8 [rules.b]", "holds the work folder"),
            ("main.oxoflow:12 [rules.c]", "would make main.oxoflow"),
            ("main.oxoflow:16 [rules.d]", "holds the work folder"),
        ],
    ),
    "missing inputs": Case(
        rule("a", 'input = ["data/rads.fq", "data/other.fq"]\n') + rule("b", 'input = ["nowhere/x"]\n'),
        [
            ("main.oxoflow:4 [rules.a]", "did you mean 'data/reads.fq'?"),
            ("main.oxoflow:4 [rules.a]", "data/other.fq does not exist"),
            ("main.oxoflow:9 [rules.b]", "there is no folder nowhere"),
        ],
        files=(("data/reads.fq", ""),),
    ),
    "groups that can never be had": Case(
        "[resource_groups]\ndb = 1\n"
        + rule("a", "resources = { groups = { db = 2 } }\n")
        + rule("b", "resources = { groups = { dbb = 1 } }\n"),
        [
            ("main.oxoflow:9 [rules.a.resources.groups]", "2 of 'db'"),
            ("main.oxoflow:14", "did you mean 'db'?"),
        ],
    ),
    "dependencies": Case(
        rule("a", 'depends_on = ["a"]\n') + rule("b", 'depends_on = ["A"]\n'),
        [("main.oxoflow:7 [rules.a.depends_on]", "depends on itself"), ("main.oxoflow:12", "no rule 'A'")],
    ),
    "a wildcard that feeds itself": Case(
        rule("a", 'input = ["x/{s}.txt"]\noutput = ["x/{s}.txt"]\n'),
        [("main.oxoflow:6 [rules.a.input[0]]", "could feed its own input")],
    ),
    "values that multiply": Case(
        "".join(f'[[values]]\nname = "{n}"\nvalues = {list(range(3000))}\n' for n in "ab")
        + rule("x", 'output = ["{a}.{b}"]\n'),
        [("main.oxoflow:10 [rules.x]", "9,000,000 combinations")],
    ),
    "a wildcard with several values": Case(
        '[[sample_groups]]\nname = "g"\nsamples = ["S1", "S2"]\n' + rule("a", 'log = "{sample}.log"\n'),
        [("main.oxoflow:10 [rules.a.log]", "has 2 values in its one task: S1, S2")],
    ),
    "text that splits in two ways": Case(
        rule("a", 'input = ["{sample}.{lane}.fq"]\noutput = ["o/{sample}_{lane}"]\n'),
        [("main.oxoflow:6 [rules.a.input[0]]", "in two ways: sample=S1, lane=v2.L1")],
        files=(("S1.v2.L1.fq", ""),),
    ),
    "nothing to discover": Case(
        rule("a", 'input = ["data/{sample}.fq"]\noutput = ["o/{sample}"]\n'),
        [("main.oxoflow:6 [rules.a.input[0]]", "no file matches 'data/{sample}.fq'")],
    ),
    "errors of reading, of expanding and of the plan": Case(
        rule("a", "outptu = 1\n")
        + rule("b", command='shell = "echo {config.nope} > {output}"\n')
        + rule("c", 'output = ["x"]\n')
        + rule("d", 'output = ["x"]\n')
        + rule("e", 'depends_on = ["a", "b"]\n'),
        [
            ("main.oxoflow:7 [rules.a.outptu]", "did you mean 'output'?"),
            ("main.oxoflow:12 [rules.b.shell]", "there is no config key 'nope'"),
            ("main.oxoflow:17 [rules.d]", "both make x"),
        ],
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_rules_that_make_no_plan_are_told(folder, name):
    is_told(folder, PLANS[name])

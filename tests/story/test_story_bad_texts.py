"""Messy names, values, commands and secrets in a workflow file: told what and where."""

from __future__ import annotations

import pytest
from story_bad_input import Case, is_told, rule

LONG = "n" * 1_000_000

TEXTS = {
    "a name of a megabyte": Case(rule(LONG), [("main.oxoflow:5", "has 1000000 characters")]),
    "a path of a megabyte": Case(
        rule("a", f'output = ["{LONG}"]\n'), [("main.oxoflow:4 [rules.a]", "a path of 1,000,000 bytes")]
    ),
    "a file name that no disk takes": Case(
        rule("a", f'input = ["in/{LONG[:300]}"]\n'), [("main.oxoflow:4 [rules.a]", "300 bytes, where 255")]
    ),
    "a value of a megabyte": Case(
        f'[[values]]\nname = "v"\nvalues = ["{LONG}"]\n' + rule("a", 'output = ["{v}"]\n'),
        [("main.oxoflow:6 [values.v", "longer than a path may be")],
    ),
    "a key of a megabyte": Case(
        rule("a") + LONG + " = 1\n", [("main.oxoflow:8", "is not a field of a rule")]
    ),
    "a shell word of a megabyte": Case(
        rule("a", command=f'shell = "touch {{output}} {{{LONG}}}"\n'),
        [("main.oxoflow:7 [rules.a.shell]", "nothing is known for {nnn")],
    ),
    "control characters in values": Case(
        '[[values]]\nname = "v"\nvalues = ["a\\nb", "c\\u0007", "d\\te"]\n' + rule("a", 'output = ["{v}"]\n'),
        [
            ("main.oxoflow:6 [values.v", "'a\\nb' of 'v' holds a control character"),
            ("main.oxoflow:6 [values.v", "'c\\x07' of 'v'"),
            ("main.oxoflow:6 [values.v", "'d\\te' of 'v'"),
        ],
    ),
    "control characters in paths": Case(
        rule("a", 'output = ["a\\nb"]\n') + rule("b", 'input = ["x\\u001b[31m"]\n'),
        [
            ("main.oxoflow:6 [rules.a.output[0]]", "the control character '\\n' stands in 'a\\nb'"),
            ("main.oxoflow:11 [rules.b.input[0]]", "the control character '\\x1b'"),
        ],
    ),
    "values that lead astray": Case(
        '[[values]]\nname = "v"\nvalues = ["..", "a/b", "."]\n' + rule("a", 'output = ["o/{v}"]\n'),
        [
            ("values.v", "'..' of 'v' would lead"),
            ("values.v", "'a/b' of 'v' holds a '/'"),
            ("values.v", "'.' of 'v'"),
        ],
    ),
    "placeholders that nobody knows": Case(
        rule(
            "a", command='shell = "echo {inptu} {config.nope} {params.x} {input[0]} {output.x} > {output}"\n'
        )
        + rule("b", 'output = ["{sampel}.txt"]\n'),
        [
            ("main.oxoflow:7 [rules.a.shell]", "there is no config key 'nope'"),
            ("main.oxoflow:7 [rules.a.shell]", "there is no param 'x'"),
            ("main.oxoflow:7 [rules.a.shell]", "{input[0]} is out of range"),
            ("main.oxoflow:7 [rules.a.shell]", "the rule has no output named 'x'"),
            ("main.oxoflow:7 [rules.a.shell]", "nothing is known for {inptu}"),
            ("main.oxoflow:10 [rules.b.output[0]]", "nothing gives values to {sampel}"),
        ],
    ),
    "conditions": Case(
        "[config]\nn = 3\n"
        + rule("a", "when = \"config.n > 'x'\"\n")
        + rule("b", 'when = "config.nope"\n')
        + rule("c", 'when = "1 +"\n')
        + rule("d", 'when = "config.n"\n'),
        [
            ("main.oxoflow:9 [rules.a.when]", "cannot be compared"),
            ("main.oxoflow:14 [rules.b.when]", "'config.nope', which is not known"),
            ("main.oxoflow:19 [rules.c.when]", "'+' at character 3"),
            ("main.oxoflow:24 [rules.d.when]", "not true or false"),
        ],
    ),
    "a condition on what a rule makes": Case(
        rule("a") + rule("b", "when = \"file_exists('a.txt')\"\n"),
        [("main.oxoflow:11 [rules.b.when]", "which a rule of this workflow makes")],
    ),
    "config": Case(
        '[config]\na = "{config.b}"\nb = "{config.a}"\nc = { required = true, help = "the kit" }\n'
        'd = { default = 3, range = "5..9" }\ne = { default = "x", choices = ["y", "z"] }\n'
        'f = { type = "path", default = "nope/f", must_exist = true }\ng = 2020-01-01\n' + rule("a"),
        [
            ("main.oxoflow:5 [config.a]", "a -> b -> a"),
            ("main.oxoflow:7 [config.c]", "required, but has no value (the kit)"),
            ("main.oxoflow:8 [config.d]", "not within 5..9"),
            ("main.oxoflow:9 [config.e]", "not one of: y, z"),
            ("main.oxoflow:10 [config.f]", "does not exist"),
            ("main.oxoflow:11 [config.g]", "a date or time"),
        ],
    ),
    "quotes and here-documents": Case(
        rule("a", command='shell = "echo \'it > {output}"\n')
        + rule("b", 'output = ["b c"]\n', command="shell = '''\ncat > {output} <<EOF\n{output}\nEOF\n'''\n"),
        [("main.oxoflow:7 [rules.a.shell]", "'...' is not closed"), ("[rules.b.shell]", "here-document")],
    ),
    "a pattern that is none": Case(
        '[wildcard_constraints]\ns = "[a-"\n' + rule("a"),
        [("main.oxoflow:5 [wildcard_constraints.s]", "is not a regular expression")],
    ),
    "scripts": Case(
        rule("a", command='script = "nope.py"\n') + rule("b", command='script = "x.weird"\n'),
        [
            ("main.oxoflow:7 [rules.a.script]", "the script 'nope.py'"),
            ("main.oxoflow:11 [rules.b.script]", "ends in '.weird'"),
        ],
        files=(("x.weird", ""),),
    ),
}

SECRET = '[config]\ntoken = { default = "hunter2secret", sensitive = true }\n'

SECRETS = {
    "in paths and single quotes": Case(
        SECRET
        + rule("a", 'output = ["{config.token}"]\nlog = "logs/{config.token}"\n')
        + rule("b", command="shell = \"curl -H 'X: {config.token}' > {output}\"\n"),
        [
            ("main.oxoflow:8 [rules.a.output[0]]", "config.token is sensitive"),
            ("main.oxoflow:9 [rules.a.log]", "config.token is sensitive"),
            ("main.oxoflow:14 [rules.b.shell]", "which is not expanded in '...'"),
        ],
    ),
    "through a param and another key": Case(
        SECRET
        + 'other = "x{config.token}"\n'
        + rule(
            "b", 'params = { p = "{config.token}" }\n', command="shell = \"echo '{params.p}' > {output}\"\n"
        )
        + rule("c", 'input = ["{config.other}/y"]\n'),
        [
            ("main.oxoflow:11 [rules.b.shell]", "sensitive"),
            ("main.oxoflow:15 [rules.c.input[0]]", "sensitive"),
        ],
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_cannot_be_meant_are_told(folder, name):
    is_told(folder, TEXTS[name])


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_where_all_would_see_them_are_told(folder, name):
    is_told(folder, SECRETS[name])

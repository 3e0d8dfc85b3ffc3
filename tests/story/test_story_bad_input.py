"""Messy workflow files: told what and where, exit 2, nothing run, nothing written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from story_bad_input import HEAD, Case, is_told, refused, rule

SYNTAX = {
    "a bracket too few": Case('[[rules]\nname = "a"\n', [("main.oxoflow:4", "']]'")]),
    "a quote that is not closed": Case(
        '[[rules]]\nname = "a\n', [("main.oxoflow:5", "a quote may not be closed")]
    ),
    "a backslash that is no escape": Case(
        rule("a", command='shell = "grep \\. x"\n'), [("main.oxoflow:7", "a backslash stands here")]
    ),
    "one key twice": Case('[[rules]]\nname = "a"\nname = "b"\n', [("main.oxoflow:6", "there already")]),
    "a table of rules and an array": Case(
        rule("a") + '[rules]\nname = "b"\n', [("main.oxoflow:8", "[[rules]] each time")]
    ),
    "single brackets": Case('[rules]\nname = "a"\n', [("main.oxoflow:4", "[[rules]] is wanted")]),
    "nested without end": Case(
        "[config]\nx = " + "[" * 5000 + "]" * 5000, [("main.oxoflow", "nested too deep")]
    ),
    "tables without end": Case(
        "[config]\nx = " + "{a=" * 3000 + "1" + "}" * 3000, [("main.oxoflow", "nested too deep")]
    ),
    "a number without end": Case("[config]\nx = " + "9" * 5000, [("main.oxoflow", "thousands of digits")]),
    "a NUL": Case((HEAD + "\0").encode(), [("main.oxoflow:4", "a NUL character")]),
    "not UTF-8": Case(HEAD.encode() + b"# caf\xe9\n" + rule("a").encode(), [("main.oxoflow:4", "not UTF-8")]),
    "UTF-16": Case((HEAD + rule("a")).encode("utf-16"), [("main.oxoflow", "UTF-16")]),
    "a byte order mark and CRLF": Case(
        b"\xef\xbb\xbf" + (HEAD + rule("a") + "colour = 1\n").replace("\n", "\r\n").encode(),
        [("main.oxoflow:8 [rules.a.colour]", "'colour' is not a field of a rule")],
    ),
}

SHAPE = {
    "nothing at all": Case(
        "", [("main.oxoflow", "no rules"), ("main.oxoflow:1 [workflow]", "has no name")], head=""
    ),
    "a head alone": Case("", [("main.oxoflow", "no rules")]),
    "no head": Case(rule("a"), [("[workflow]", "has no name")], head=""),
    "wrong types": Case(
        rule(
            "a",
            'output = 7\nresources = "big"\nretries = "many"\ntarget = "yes"\n'
            'when = true\ndepends_on = "b"\n',
            command="shell = [1]\n",
        )
        + rule("b", "resources = { threads = 1.5, memory = true, time_limit = 90 }\n"),
        [
            ("main.oxoflow:6 [rules.a.output]", "the whole number 7"),
            ("main.oxoflow:7 [rules.a.resources]", "a table is wanted"),
            ("main.oxoflow:8 [rules.a.retries]", "a whole number of at least 0"),
            ("main.oxoflow:9 [rules.a.target]", "true or false is wanted"),
            ("main.oxoflow:10 [rules.a.when]", 'put it in quotes: "true"'),
            ("main.oxoflow:11 [rules.a.depends_on]", 'write it as a list: ["b"]'),
            ("main.oxoflow:12 [rules.a.shell]", "command text in quotes is wanted"),
            ("main.oxoflow:16 [rules.b.resources.threads]", "the number 1.5"),
            ("main.oxoflow:16 [rules.b.resources.memory]", "a size such as '8G'"),
            ("main.oxoflow:16 [rules.b.resources.time_limit]", "write '90s' or '90m'"),
        ],
    ),
    "unknown keys and tables": Case(
        '[[rules]]\nname = "a"\noutptu = ["x"]\nshel = "x"\n[[rulez]]\nname = "b"\n[defaults]\nthread = 4\n',
        [
            ("main.oxoflow:6 [rules.a.outptu]", "did you mean 'output'?"),
            ("main.oxoflow:7 [rules.a.shel]", "did you mean 'shell'?"),
            ("main.oxoflow:8 [rulez]", "did you mean 'rules'?"),
            ("main.oxoflow:11 [defaults.thread]", "did you mean 'threads'?"),
        ],
    ),
    "a key below a table": Case(
        '[[rules]]\nname = "a"\noutput = ["a"]\n[rules.params]\nx = 1\nshell = "touch a"\n',
        [("main.oxoflow:9 [rules.a.params.shell]", "move it above the line [rules.params]")],
    ),
    "numbers out of this world": Case(
        rule("a", 'retries = -1\nresources = { threads = 0, memory = "8Q", time_limit = "soon", gpu = -2 }\n')
        + rule("b", 'priority = 99999999999999999999\nresources = { memory = "99999999999T" }\n'),
        [
            ("main.oxoflow:7 [rules.a.retries]", "at least 0"),
            ("main.oxoflow:8 [rules.a.resources.threads]", "at least 1"),
            ("main.oxoflow:8 [rules.a.resources.memory]", "'8Q' is not a size"),
            ("main.oxoflow:8 [rules.a.resources.time_limit]", "'soon' is not a duration"),
            ("main.oxoflow:8 [rules.a.resources.gpu]", "at least 0"),
            ("main.oxoflow:13 [rules.b.priority]", "beyond 64 bits"),
            ("main.oxoflow:14 [rules.b.resources.memory]", "more than any machine has"),
        ],
    ),
    "names": Case(
        rule("ä") + rule("1a") + '[[rules]]\noutput = ["x"]\nshell = "x"\n',
        [
            ("main.oxoflow:5", "'ä' cannot name"),
            ("main.oxoflow:9", "'1a' cannot"),
            ("main.oxoflow:12", "no name"),
        ],
    ),
    "rules of one name": Case(
        rule("a") + rule("a"), [("main.oxoflow:9 [rules.a.name]", "two rules are named 'a'")]
    ),
    "files and rules that are not there": Case(
        '[[include]]\npath = "x.oxoflow"\n' + rule("a", 'extends = "b"\n'),
        [
            ("main.oxoflow:5 [include[0].path]", "there is no file 'x.oxoflow'"),
            ("main.oxoflow:9 [rules.a.extends]", "there is no rule 'b' to extend"),
        ],
    ),
    "a later format": Case(
        rule("a"),
        [("main.oxoflow:3 [workflow.format_version]", "reads format 1.0, not '2.0'")],
        head='[workflow]\nname = "x"\nformat_version = "2.0"\n',
    ),
}


@pytest.mark.parametrize("name", SYNTAX)
def test_what_is_no_toml_is_told(folder, name):
    is_told(folder, SYNTAX[name])


@pytest.mark.parametrize("name", SHAPE)
def test_what_is_no_workflow_is_told(folder, name):
    is_told(folder, SHAPE[name])


@pytest.mark.parametrize("command", ["plan", "check", "why", "graph", "touch", "evict", "clean", "exec"])
def test_every_command_refuses_the_same_file_with_the_same_words(folder, command):
    folder.flow(rule("a", "colour = 1\n") + rule("b", command='shell = "echo {config.nope}"\n'))
    before = sorted(os.listdir(folder.path))
    done = folder.treadle(command, "a", exits=2)
    assert sorted(os.listdir(folder.path)) == before
    told = done.stdout + done.stderr
    assert "main.oxoflow:7 [rules.a.colour]: 'colour' is not a field of a rule" in told
    assert "main.oxoflow:12 [rules.b.shell]: there is no config key 'nope'" in told


def test_a_file_beside_is_named_as_it_was_typed(folder):
    folder.write("flows/x.oxoflow", HEAD + rule("a", "colour = 1\n"))
    (error,), said = refused(folder, "flows/x.oxoflow")
    assert error["place"]["file"] == "flows/x.oxoflow"
    assert "flows/x.oxoflow:7 [rules.a.colour]" in said
    assert not Path(folder / "flows" / ".treadle").exists()

"""Messy files through the installed command: told what and where, exit 2, nothing run, nothing written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HEAD = '[workflow]\nname = "messy"\nstrict_shell = true\n'  # three lines: what follows begins at line 4
COMMAND = 'shell = "touch {output}"\n'


def rule(name: str, body: str = "", *, command: str = COMMAND) -> str:
    """A rule of three lines and `body`; it makes `<name>.txt` unless the body names an output."""
    output = "" if "output" in body else f'output = ["{name}.txt"]\n'
    return f'[[rules]]\nname = "{name}"\n{output}{body}{command}'


class Case(NamedTuple):
    """A workflow file and what must be said about it: `told` are (place, words), in this order."""

    text: str | bytes
    told: list[tuple[str, str]]
    head: str = HEAD
    files: tuple[tuple[str, str | bytes], ...] = ()
    args: tuple[str, ...] = ()


def sheet(name: str, content: str | bytes, *told: tuple[str, str]) -> Case:
    """A workflow over one sheet that is wrong."""
    text = f'[[tables]]\nname = "t"\nfile = "{name}"\n' + rule("a", 'output = ["{s}.txt"]\n')
    return Case(text, list(told), files=((name, content),))


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

SHEETS = {
    "a quote that is not closed": sheet(
        "s.csv", 's,t\n"a,b\nc,d\n', ("s.csv:4", "a quote may not be closed")
    ),
    "a quote in the middle": sheet("s.csv", 's,t\n"x"y,z\n', ("s.csv:2", "this row cannot be read")),
    "rows of other lengths": sheet(
        "s.csv", "s,t\na\nb,c,d\n", ("s.csv:2", "1 cell in this row"), ("s.csv:3", "3 cells in this row")
    ),
    "columns": sheet(
        "s.csv", "s,,s\na,b,c\n", ("s.csv:1", "two columns are named 's'"), ("s.csv:1", "column 2")
    ),
    "nothing in it": sheet("s.csv", "", ("s.csv", "no line with the names of its columns")),
    "not UTF-8": sheet("s.tsv", b"s\nM\xfcller\n", ("s.tsv:2", "not UTF-8")),
    "a control character": sheet(
        "s.tsv", "s\na\x07b\n", ("s.tsv:2", "'a\\x07b' of 's' holds a control character")
    ),
    "a NUL": sheet("s.tsv", "s\na\0b\n", ("s.tsv:2", "control character")),
    "broken JSON": sheet("s.json", '[{"s": 1},]', ("s.json:1", "this is not JSON")),
    "JSON of another shape": sheet("s.json", '{"s": 1}', ("s.json", "a list of objects")),
    "JSON cells": sheet("s.json", '[{"s": {"x": 1}}]', ("s.json", "a text, a number or a list of texts")),
    "a spreadsheet": sheet("s.xlsx", b"PK\x03\x04\xff\xfe\x80", ("main.oxoflow:6", "save it as TSV or CSV")),
    "not there": Case(
        '[[tables]]\nname = "t"\nfile = "no.tsv"\n' + rule("a", 'output = ["{s}.txt"]\n'),
        [("main.oxoflow:6 [tables.t.file]", "the sheet 'no.tsv' cannot be read")],
    ),
    "pairs": Case(
        '[[pairs]]\npair_id = "p"\n[[pairs]]\nexperiment = "c"\n[[pairs]]\npair_id = "q"\nexperiment = "c"\n'
        'tumor = "d"\nfoo = 1\n[[pairs]]\npair_id = "r"\nexperiment = "e"\n[[pairs]]\npair_id = "r"\n'
        'experiment = "f"\n' + rule("a", 'output = ["{pair_id}.txt"]\n'),
        [
            ("main.oxoflow:4 [pairs.p]", "no experiment"),
            ("main.oxoflow:6 [pairs[1]]", "no pair_id"),
            ("main.oxoflow:11 [pairs.q.tumor]", "mean the same"),
            ("main.oxoflow:12 [pairs.q.foo]", "not a field of a pair"),
            ("main.oxoflow:16 [pairs.r]", "given before with other content"),
        ],
    ),
}

OPTIONS = {
    "a target that is none": Case(rule("alpha"), [("", "did you mean 'alpha'?")], args=("alpa",)),
    "a config key that is none": Case(
        rule("a"), [("[nope]", "no config key 'nope'")], args=("--config", "nope=3")
    ),
    "an option that is none": Case(rule("a"), [("", "--wibble is neither an option")], args=("--wibble",)),
    "an option mistyped": Case(rule("a"), [("", "did you mean '--samples'?")], args=("--sampels", "S1")),
    "--set": Case(rule("a"), [("", "no rule")], args=("--set", "b.memory=64G")),
    "--profile": Case(rule("a"), [("", "no profile")], args=("--profile=slurm",)),
    "--backend": Case(rule("a"), [("", "backend")], args=("--backend", "slurmm")),
    "values of the wrong type": Case(
        "[config]\nn = 3\nb = true\n" + rule("a"),
        [
            ("the command line [n]", "'x' is not a whole number"),
            ("the command line [b]", "not true or false"),
        ],
        args=("n=x", "b=maybe"),
    ),
    "a file that is not there": Case(
        rule("a"), [("", "did you mean 'main.oxoflow'?")], args=("mian.oxoflow",)
    ),
    "a work folder that is none": Case(
        rule("a"), [("", "is a file, not a folder")], args=("--workdir", "main.oxoflow")
    ),
    "an option that is a key which nobody declared": Case(
        "[config]\nmin_quality = 3\n" + rule("a"), [("", "min_quality=VALUE")], args=("--min-quality", "4")
    ),
    "the file behind a target": Case(
        rule("a"), [("", "the workflow file comes first")], args=("a", "main.oxoflow")
    ),
    "two files": Case(
        rule("a"),
        [("", "'main.oxoflow' is the one that is read")],
        files=(("b.oxoflow", ""),),
        args=("main.oxoflow", "b.oxoflow"),
    ),
    "an empty word": Case(rule("a"), [("", "an empty word names nothing")], args=("",)),
    "a Python file without steps": Case(
        rule("a"), [("", "p.py holds no list of steps")], files=(("p.py", ""),), args=("p.py",)
    ),
    "a name that a Python file does not have": Case(
        rule("a"), [("", "there is no 'runner' in p.py")], files=(("p.py", ""),), args=("p.py:runner",)
    ),
    "steps of a file that is not there": Case(
        '[[steps]]\nmodule = "p.py"\n' + rule("a"),
        [("main.oxoflow:5 [steps[0].module]", "there is no file p.py")],
    ),
    "a target with escape sequences": Case(rule("a"), [("", "a\\x1b[31m")], args=("a\x1b[31m",)),
}

SAMPLES = '[[sample_groups]]\nname = "g"\nsamples = ["S1", "S2"]\n' + rule("a", 'output = ["{sample}.txt"]\n')


def selected(text: str, words: str) -> Case:
    return Case(SAMPLES, [("--samples", words)], args=("--samples", text))


SELECTIONS = {
    "an unknown sample": selected("S3", "there are S1, S2"),
    "a sample mistyped": selected("S11", "did you mean 'S1'?"),
    "nothing left": selected("!S1,!S2", "no sample is left"),
    "no number": selected("first:x", "first:5"),
    "nothing": selected("", "nothing is selected"),
    "a sheet that is not there": selected("@no.tsv", "the sheet 'no.tsv' cannot be read"),
    "no samples to select": Case(
        rule("a"), [("--samples", "the workflow has no samples")], args=("--samples", "S1")
    ),
}

CASES = {
    f"{kind}: {name}": case
    for kind, cases in {
        "syntax": SYNTAX,
        "shape": SHAPE,
        "texts": TEXTS,
        "secrets": SECRETS,
        "plans": PLANS,
        "sheets": SHEETS,
        "options": OPTIONS,
        "selections": SELECTIONS,
    }.items()
    for name, case in cases.items()
}


def refused(folder: Any, *args: str) -> tuple[list[dict[str, Any]], str]:
    """Run it with `--json`; the errors as objects and what was said, when nothing else happened."""
    before = sorted(os.listdir(folder.path))
    done = folder.treadle("run", "--json", *args, exits=2)
    assert sorted(os.listdir(folder.path)) == before, "nothing is run, and nothing written"
    found = json.loads(done.stdout)
    assert found["schema"] == 1
    assert found["exit_code"] == 2
    for error in found["errors"]:
        assert error["code"] == error["code"].lower()
        assert error["severity"] == "error"
        assert len(error["message"]) < 1500, "long texts are cut"
    said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(said) == len(found["errors"]), "the same for people and for programs"
    return found["errors"], done.stderr


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_told_and_nothing_happens(folder, name):
    case = CASES[name]
    content = case.text if isinstance(case.text, bytes) else (case.head + case.text).encode()
    (folder / "main.oxoflow").write_bytes(content)
    for file, text in case.files:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    errors, said = refused(folder, *case.args)
    told = [block for block in said.split("error: ") if block]
    assert len(told) == len(case.told), said
    for block, (place, words) in zip(told, case.told):
        assert place in block.splitlines()[0], said
        assert words in block, said
    assert all(any(error["place"].values()) or not place for error, (place, _) in zip(errors, case.told))
    assert "hunter2secret" not in said + json.dumps(errors)


def _link_to_itself(folder: Any) -> None:
    os.symlink("main.oxoflow", folder / "main.oxoflow")


def _folder(folder: Any) -> None:
    (folder / "main.oxoflow").mkdir()


def _pipe(folder: Any) -> None:
    os.mkfifo(folder / "main.oxoflow")


def _unreadable(folder: Any) -> None:
    folder.flow(rule("a"))
    (folder / "main.oxoflow").chmod(0)
    if os.access(folder / "main.oxoflow", os.R_OK):
        pytest.skip("whoever runs this may read everything")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_link_to_itself, "Too many levels of symbolic links"),
        (_folder, "is a folder, not a workflow file"),
        (_pipe, "it is a pipe or a device, not a file"),
        (_unreadable, "Permission denied"),
    ],
)
def test_a_workflow_file_that_cannot_be_read(folder, make: Callable[[Any], None], words):
    make(folder)
    (error,), _ = refused(folder)
    assert words in error["message"]
    assert "main.oxoflow" in error["message"]


def test_a_sheet_that_is_a_pipe_is_not_waited_for(folder):
    folder.flow('[[tables]]\nname = "t"\nfile = "s.tsv"\n' + rule("a", 'output = ["{s}.txt"]\n'))
    os.mkfifo(folder / "s.tsv")
    (error,), _ = refused(folder)
    assert "it is a pipe or a device, not a file" in error["message"]


def test_links_that_lead_nowhere_are_told_as_links(folder):
    folder.flow(rule("a", 'input = ["loop.txt", "data/gone.txt"]\n'))
    (folder / "data").mkdir()
    os.symlink("loop.txt", folder / "loop.txt")
    os.symlink("/nowhere/gone.txt", folder / "data" / "gone.txt")
    errors, _ = refused(folder)
    assert [error["hint"].partition(":")[0] for error in errors] == [
        "it is a symbolic link that leads nowhere"
    ] * 2


def test_folders_that_link_upwards_are_searched_once(folder):
    folder.flow(rule("a", 'input = ["data/**/*.fq"]\n'))
    folder.write("data/S1.fq", "")
    os.symlink("..", folder / "data" / "up")
    assert [task["inputs"] for task in folder.plan()["tasks"]] == [["data/S1.fq"]]


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

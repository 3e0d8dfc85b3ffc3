"""Traps of TOML and of shells that the reader sees: strayed keys, escapes, failures that a pipe hides."""

from __future__ import annotations

import pytest

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.rules.file.read import read_text
from treadle.rules.toml.shell_traps import hidden_failure, without_here_docs

STRICT = '[workflow]\nname = "x"\nstrict_shell = true\n'
LOOSE = '[workflow]\nname = "x"\n'


def errors(text: str) -> list[Diagnostic]:
    with pytest.raises(WorkflowError) as caught:
        read_text(text)
    return list(caught.value.diagnostics)


def warnings(text: str) -> list[tuple[str, int]]:
    return [(one.code, one.place.line) for one in read_text(text).warnings]


def test_a_shell_below_the_params_is_told_and_nothing_else() -> None:
    (error,) = errors(STRICT + '[[rules]]\nname = "a"\noutput = ["o"]\n[rules.params]\nq = 1\nshell = "x"\n')
    assert (error.code, error.place.line, error.place.key) == ("key-in-subtable", 9, "params.shell")
    assert error.hint == "move it above the line [rules.params]"


def test_a_key_below_the_resources_or_the_gpu_is_told() -> None:
    rule = STRICT + '[[rules]]\nname = "a"\nshell = "x"\n'
    assert [one.code for one in errors(rule + "[rules.resources]\nretries = 3\n")] == ["key-in-subtable"]
    (error,) = errors(rule + '[rules.resources.gpu_spec]\ncount = 1\noutput = ["o"]\n')
    assert (error.code, error.hint) == (
        "key-in-subtable",
        "move it above the line [rules.resources.gpu_spec]",
    )


def test_a_table_written_in_one_piece_may_have_a_parameter_of_any_name() -> None:
    text = STRICT + '[[rules]]\nname = "a"\noutput = ["o"]\nscript = "s.py"\nparams = { shell = "zsh" }\n'
    assert read_text(text).rules[0].params == {"shell": "zsh"}


def test_a_parameter_may_be_named_like_a_field_that_the_rule_has() -> None:
    text = STRICT + '[[rules]]\nname = "a"\nshell = "x"\n[rules.params]\nshell = "zsh"\nthreads = 3\n'
    assert read_text(text).rules[0].params == {"shell": "zsh", "threads": 3}


def test_a_parameter_that_may_be_a_strayed_field_is_a_warning() -> None:
    text = STRICT + '[[rules]]\nname = "a"\nshell = "x"\n[rules.params]\nretries = 3\n'
    assert warnings(text) == [("key-in-subtable", 8)]
    assert read_text(text).rules[0].params == {"retries": 3}


def test_keys_that_strayed_into_other_tables_are_told() -> None:
    rule = '[[rules]]\nname = "a"\nshell = "x"\n'
    head = '[workflow]\nname = "x"\n[workflow.interpreter_map]\n".m" = "octave"\npairs_file = "p.tsv"\n'
    assert [one.code for one in errors(head + rule)] == ["key-in-subtable"]
    group = '[[sample_groups]]\nname = "g"\n[sample_groups.metadata]\ntissue = "t"\nsamples = ["S"]\n'
    assert [one.code for one in errors(STRICT + rule + group)] == ["key-in-subtable"]
    metadata = '[[rules]]\nname = "a"\n[rules.rule_metadata]\nassay = "WGS"\nshell = "x"\n'
    assert [one.code for one in errors(STRICT + metadata)] == ["key-in-subtable"]
    declared = "[config.database]\nrequired = true\nthreshold = 3\n"
    (error,) = [one for one in errors(STRICT + rule + declared) if one.code == "unknown-key"]
    assert error.hint == "keys of [config] stand above the line [config.database]"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (r'"printf a\tb"', 6),
        (r'"printf \"a\"\nrm x"', 6),
        ('"""\nfirst\nprintf \'a\\tb\'\n"""', 8),
        (r'"x\u0009y"', 6),
        (r'"x\x0ay"', 6),
        (r'"\\\\\ty"', 6),
        (r'"\e[1m"', 6),
    ],
)
def test_an_escape_that_becomes_a_control_character_is_told_with_its_own_line(value: str, line: int) -> None:
    text = STRICT + f'[[rules]]\nname = "a"\nshell = {value}\n'
    assert warnings(text) == [("escape-in-shell", line)]


@pytest.mark.parametrize(
    "value",
    [
        r"'printf a\tb'",
        r'"printf a\\tb"',
        "'''\nprintf 'a\\tb'\n'''",
        '"""\nfirst\nsecond \\\n   third\n"""',
        '"printf a\tb"',
        r'"caf\u00e9 \"x\""',
    ],
)
def test_a_text_without_such_an_escape_is_not_told(value: str) -> None:
    assert warnings(STRICT + f'[[rules]]\nname = "a"\nshell = {value}\n') == []


def test_hooks_and_the_prelude_are_looked_at_too() -> None:
    text = (
        STRICT
        + '[defaults]\nshell_prelude = "a\\tb"\n[[rules]]\nname = "a"\nshell = "x"\npre_exec = "c\\td"\n'
    )
    assert warnings(text) == [("escape-in-shell", 5), ("escape-in-shell", 9)]


@pytest.mark.parametrize(
    ("text", "prelude", "why"),
    [
        ("bwa x | samtools sort", "", "pipe"),
        ("a |& b", "", "pipe"),
        ("a | b", "set -e", "pipe"),
        ("set -o pipefail; a | b", "", ""),
        ("set -euo pipefail\na | b\nc", "", ""),
        ("a | b; c", "set -eo pipefail", ""),
        ("a | b; c", "set -o pipefail -e", ""),
        ("a\nb", "", "several"),
        ("a; b", "", "several"),
        ("set -o errexit\na\nb", "", ""),
        ("set -e; a; b", "", ""),
        ("reset -e; a; b", "", "several"),
        ("a", "", ""),
        ("\na\n", "", ""),
        ("a && b || c", "", ""),
        ("a &&\n  b", "", ""),
        ("a \\\n  b", "", ""),
        ("# why: a | b; c\na", "", ""),
        ("a # | b", "", ""),
        ("awk '{print $1; print | \"x\"}' f", "", ""),
        ('echo "a | b; c"', "", ""),
        ("find . -exec x {} \\;", "", ""),
        ("a >| b", "", ""),
        ("cat <<EOF\nx | y;\nz\nEOF", "", ""),
        ("cat <<-'END'\n\tx | y\n\tEND\n", "", ""),
        ("cat <<EOF\nx\nEOF\nb", "", "several"),
        ("x <<< 'a;b'", "", ""),
        ("", "", ""),
    ],
)
def test_a_failure_that_would_be_hidden_is_seen(text: str, prelude: str, why: str) -> None:
    assert hidden_failure(text, prelude) == why


def test_an_unguarded_pipe_is_one_warning_unless_the_shell_is_strict() -> None:
    rule = '[[rules]]\nname = "a"\noutput = ["o"]\nshell = "a | b > {output}"\n'
    assert warnings(LOOSE + rule) == [("unguarded-pipe", 6)]
    assert warnings(STRICT + rule) == []
    assert warnings(LOOSE + '[defaults]\nshell_prelude = "set -euo pipefail"\n' + rule) == []


def test_a_here_document_ends_at_its_word_alone() -> None:
    assert without_here_docs("cat <<A <<B\n1\nA\n2\nB\nx") == "cat <<A <<B\nx"
    assert without_here_docs("cat <<A\nA \n") == "cat <<A"


@pytest.mark.parametrize(
    "text", ["'" * 50_001 + "|", '"\\' * 50_000 + "|", "set " * 50_000 + "|", "<<a\n" * 20_000]
)
def test_a_long_odd_text_is_looked_at_in_no_time(text: str) -> None:
    assert hidden_failure(text, "") in ("", "pipe", "several")

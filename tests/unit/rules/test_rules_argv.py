"""Words of a program that is started without a shell."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.base.place import Diagnostic, Place, Severity
from treadle.rules.text.command import ArgvTemplate, Filling, Known

KNOWN = Known(
    wildcards=frozenset({"sample"}),
    config={"flags": ("-a", "-b"), "text": "--x 'a b'"},
    sensitive=frozenset({"token"}),
)
FILLING = Filling(inputs=("a", "b c", "-d"), outputs=("o",), wildcards={"sample": "$(id) 'x'"})


def argv(text: str, filling: Filling = FILLING) -> tuple[str, ...]:
    problems: list[Diagnostic] = []
    words = ArgvTemplate.parse(text, KNOWN, Place(), problems).render(filling, problems)
    assert problems == []
    return tuple(word.replace("\0", "%") for word in words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.py --in {input} -n {threads}", ("x.py", "--in", "a", "b c", "./-d", "-n", "%threads%")),
        ("x.py {input[1]} --out={output}", ("x.py", "b c", "--out=o")),
        ("x.py {sample} 'a {sample}'", ("x.py", "$(id) 'x'", "a $(id) 'x'")),
        ("x.py {input:each=-V }", ("x.py", "-V", "a", "-V", "b c", "-V", "./-d")),
        ("x.py {input:each=--in=}", ("x.py", "--in=a", "--in=b c", "--in=-d")),
        ("x.py --in={input:sep=,}", ("x.py", "--in=a,b c,-d")),
        ('x.py "{input:sep= }"', ("x.py", "a b c -d")),
        ("x.py {config.flags} {config.text}", ("x.py", "-a", "-b", "--x", "a b")),
        ('x.py \'a b\' "c d" e\\ f \'\' "g\\"h" "i\\j"', ("x.py", "a b", "c d", "e f", "", 'g"h', "i\\j")),
        ("x.py '{word}' '$HOME' '*' 'a|b'", ("x.py", "{word}", "$HOME", "*", "a|b")),
        ("x.py\n  --a 1\n  --b 2\n", ("x.py", "--a", "1", "--b", "2")),
        ("x.py \\\n  #1", ("x.py", "#1")),
        ("x.py {{sample}} {1..2} {a,b}", ("x.py", "{sample}", "{1..2}", "{a,b}")),
        ("", ()),
    ],
)
def test_words_are_split_and_values_stay_whole(text: str, expected: tuple[str, ...]) -> None:
    assert argv(text) == expected


def test_an_empty_list_is_no_word() -> None:
    assert argv("x.py {input} '{input}' {input:each=-V }", Filling()) == ("x.py", "")


def problems_of(text: str, filling: Filling = FILLING) -> list[tuple[str, Severity]]:
    problems: list[Diagnostic] = []
    ArgvTemplate.parse(text, KNOWN, Place(), problems).render(filling, problems)
    return [(problem.code, problem.severity) for problem in problems]


@pytest.mark.parametrize(
    "text", ["x | y", "x > {output}", "x $HOME", 'x "$HOME"', "x `y`", "x $(y)", "x; y", "x & y"]
)
def test_what_needs_a_shell_is_an_error(text: str) -> None:
    assert set(problems_of(text)) == {("no-shell-here", Severity.ERROR)}


@pytest.mark.parametrize("text", ["x *.bam", "x a?", "x ~/y"])
def test_what_a_shell_would_expand_is_a_warning(text: str) -> None:
    assert problems_of(text) == [("no-shell-here", Severity.WARNING)]


@pytest.mark.parametrize("text", ["x 5$ a~b", "x '~' a@b", "x $"])
def test_signs_that_mean_nothing_are_no_problem(text: str) -> None:
    assert problems_of(text) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x {sampel}", "unknown-placeholder"),
        ("x {input[3]}", "index-out-of-range"),
        ("x {config.token}", "secret-in-arguments"),
        ("x 'y", "unclosed-quote"),
        ("x \\{sample}", "cannot-quote"),
    ],
)
def test_what_cannot_be_filled_is_an_error(text: str, code: str) -> None:
    assert problems_of(text) == [(code, Severity.ERROR)]


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=6), max_size=5
    )
)
def test_words_come_back_whatever_they_hold(words: list[str]) -> None:
    filling = Filling(wildcards={"sample": "S"})
    text = " ".join(shlex.quote(word.replace("{", "")) for word in words)
    assert argv(f"{text} {{sample}}", filling) == (*(word.replace("{", "") for word in words), "S")

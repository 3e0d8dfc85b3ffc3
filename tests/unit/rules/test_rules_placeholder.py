"""Which `{...}` have the form of a placeholder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.rules.schema import Spelled
from treadle.rules.text.placeholder import Mark, one_slip_away, scan, spelled


def marks(text: str) -> list[Mark]:
    return [piece for piece in scan(text) if isinstance(piece, Mark)]


@pytest.mark.parametrize(
    "text",
    [
        "awk '{print $1}'",
        "{1..3}",
        "{a,b}",
        "${threads}",
        "\\${sample}",
        "find . -exec ls {} +",
        "jq '{\"name\": .name, id, n}'",
        "docker ps --format '{{.State}} {{ .Names }}'",
        "{ echo a; }",
        "${x%.bam}",
        "${#x} ${!x} ${x[0]}",
        "grep -E 'a{3}'",
        "'{\"a\": 1}'",
        "parallel gzip {} ::: {/.} {1}",
        "f() { x; }",
    ],
)
def test_text_of_shells_and_their_tools_is_no_placeholder(text: str) -> None:
    assert scan(text) == [text]


@pytest.mark.parametrize(
    ("text", "root", "attr", "index", "option", "value"),
    [
        ("{input}", "input", "", None, "", ""),
        ("{input[0]}", "input", "", 0, "", ""),
        ("{input.bam}", "input", "bam", None, "", ""),
        ("{input.bam[12]}", "input", "bam", 12, "", ""),
        ("{input:sep=,}", "input", "", None, "sep", ","),
        ("{input:each=-V }", "input", "", None, "each", "-V "),
        ("{input.bams:each=-I=}", "input", "bams", None, "each", "-I="),
        ("{input[1]:sep=a:sep=b}", "input", "", 1, "sep", "a:sep=b"),
        ("{config.a-b.c}", "config", "a-b.c", None, "", ""),
        ("{sample}", "sample", "", None, "", ""),
    ],
)
def test_the_forms_of_a_placeholder(
    text: str, root: str, attr: str, index: int | None, option: str, value: str
) -> None:
    assert scan(text) == [Mark(text, root, attr, index, option, value)]


def test_an_odd_form_is_told_apart() -> None:
    assert [mark.odd for mark in marks("{input[-1]} {threads:03d} {x!r} {input}")] == [
        True,
        True,
        True,
        False,
    ]


def test_a_placeholder_inside_of_a_parameter_is_found() -> None:
    assert scan("${x:-{sample}}") == ["${x:-", Mark("{sample}", "sample"), "}"]


def test_braces_that_touch_are_paired() -> None:
    assert [mark.source for mark in marks("{a,{b}} {{c}.x,{d}} {{e}} {{{f}}}")] == [
        "{b}", "{c}", "{d}", "{{e}}", "{{{f}}}",
    ]  # fmt: skip
    assert [mark.literal for mark in marks("{{e}} {{{{f[0]}}}}")] == ["{e}", "{{f[0]}}"]


@given(st.text("{}$ab.[0]:=sep\n'", max_size=30))
def test_the_pieces_joined_are_the_text(text: str) -> None:
    assert "".join(piece if isinstance(piece, str) else piece.source for piece in scan(text)) == text


def test_values_are_spelled_as_their_author_wrote_them() -> None:
    values = ["x y", 3, True, False, Spelled("1e-5"), ("a", True, Spelled("1.50"))]
    assert [spelled(value) for value in values] == ["x y", "3", "true", "false", "1e-5", "a true 1.50"]
    assert spelled(("a", "b"), ",") == "a,b"


@pytest.mark.parametrize("word", ["sampel", "sampl", "samplee", "smaple", "sambple", "xample", "samples"])
def test_one_typing_error_is_seen(word: str) -> None:
    assert one_slip_away(word, "sample")


@pytest.mark.parametrize("word", ["sample", "smpel", "elpmas", "samp", "example", "print", ""])
def test_other_words_are_not_taken_for_typing_errors(word: str) -> None:
    assert not one_slip_away(word, "sample")


def test_short_words_are_never_typing_errors() -> None:
    assert not one_slip_away("i", "n")
    assert not one_slip_away("lag", "log")

"""Warnings that say the same at many places are told once; errors and few of a kind stand as they are."""

from __future__ import annotations

from treadle.base.place import Diagnostic, Place, Severity
from treadle.cli.findings import folded


def warning(line: int, message: str = "a pipe hides", file: str = "main.oxoflow") -> Diagnostic:
    return Diagnostic(
        "unguarded-pipe", message, Place(file, line, f"rules.r{line}"), "guard it", Severity.WARNING
    )


def test_warnings_that_say_the_same_are_told_at_the_first_place_with_the_others():
    found = [warning(3), warning(4, "other"), warning(9), warning(2, file="b.oxoflow")]
    told = folded(found)
    assert [one.place.line for one in told] == [3, 4]
    assert told[0].message == "a pipe hides (also at line 9, b.oxoflow:2)"
    assert (told[0].code, told[0].hint) == ("unguarded-pipe", "guard it")


def test_very_many_places_are_counted():
    (one,) = folded([warning(n) for n in range(1, 101)])
    assert one.message.endswith("line 12, line 13 and 87 more)")


def test_two_of_a_kind_and_errors_are_told_one_by_one():
    two = [warning(1), warning(2)]
    assert folded(two) == two
    wrong = [Diagnostic("bad-path", "is empty", Place("main.oxoflow", n)) for n in (1, 2, 3)]
    assert folded(wrong) == wrong

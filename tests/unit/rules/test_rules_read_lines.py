"""The line of every table, key and item of a TOML text."""

from __future__ import annotations

import pytest
import tomli

from treadle.rules.toml.lines import Spot, locate

TEXT = '''# head
top = 1

[workflow]   # comment
name = "x" # [not.a.table]
"quoted key" = 1
'lit"eral' = 2
"esc\\"aped" = 3

[config.deep . "er"]
a.b.c = 1
a.b.d = 2
text = """
[rules]
x = 1 \\""" still
"""
raw = \'\'\'
it''s
[x]\'\'\'
empty = ""
empty2 = \'\'
long_empty = """"""
quotes = """"two""quotes"""""
date = 1979-05-27 07:32:00 # when
inf = -inf

[[rules]]
name = "a"
input = [
  "one", # [ " '
  "two]",

  { path = "d", pattern = "*" },
  [1, 2,
   3],
]
[rules.params]
q = 1
[[rules.parts]]
n = 1
[[rules.parts]]
n = 2
[rules.parts.sub]
m = 1
[[rules]]
name = "b"
output = {
  bam = "x",  # TOML 1.1
  more.deep = [
    1979-05-27 07:32:00, 1e5,
  ],
  text = """
  }""",
}
[rules.params]
q = 2'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("workflow",), 4),
        (("workflow", "name"), 5),
        (("workflow", "quoted key"), 6),
        (("workflow", 'lit"eral'), 7),
        (("workflow", 'esc"aped'), 8),
        (("config", "deep", "er"), 10),
        (("config", "deep", "er", "a", "b", "c"), 11),
        (("config", "deep", "er", "a", "b", "d"), 12),
        (("config", "deep", "er", "text"), 13),
        (("config", "deep", "er", "raw"), 17),
        (("config", "deep", "er", "empty"), 20),
        (("config", "deep", "er", "empty2"), 21),
        (("config", "deep", "er", "long_empty"), 22),
        (("config", "deep", "er", "quotes"), 23),
        (("config", "deep", "er", "date"), 24),
        (("config", "deep", "er", "inf"), 25),
        (("rules", 0), 27),
        (("rules", 0, "name"), 28),
        (("rules", 0, "input"), 29),
        (("rules", 0, "input", 0), 30),
        (("rules", 0, "input", 1), 31),
        (("rules", 0, "input", 2), 33),
        (("rules", 0, "input", 2, "pattern"), 33),
        (("rules", 0, "input", 3, 1), 34),
        (("rules", 0, "input", 3, 2), 35),
        (("rules", 0, "params"), 37),
        (("rules", 0, "params", "q"), 38),
        (("rules", 0, "parts", 0, "n"), 40),
        (("rules", 0, "parts", 1), 41),
        (("rules", 0, "parts", 1, "n"), 42),
        (("rules", 0, "parts", 1, "sub", "m"), 44),
        (("rules", 1), 45),
        (("rules", 1, "output"), 47),
        (("rules", 1, "output", "bam"), 48),
        (("rules", 1, "output", "more", "deep"), 49),
        (("rules", 1, "output", "more", "deep", 0), 50),
        (("rules", 1, "output", "more", "deep", 1), 50),
        (("rules", 1, "output", "text"), 52),
        (("rules", 1, "params", "q"), 56),
    ],
)
def test_everything_has_its_line(path: tuple[str | int, ...], line: int) -> None:
    assert locate(TEXT).at(*path).line == line


def known(spot: Spot, value: object) -> bool:
    """Whether each key and item of the parsed value has a spot, and nothing else has."""
    if isinstance(value, dict):
        inside = spot.inside or {}
        return set(inside) == set(value) and all(known(inside[key], value[key]) for key in value)
    if isinstance(value, list):
        inside = spot.inside or {}
        return set(inside) == set(range(len(value))) and all(
            known(inside[at], one) for at, one in enumerate(value)
        )
    return spot.inside is None


def test_nothing_is_missed_and_nothing_is_made_up() -> None:
    assert known(locate(TEXT), tomli.loads(TEXT))


def test_a_place_that_is_not_known_falls_back_to_the_one_above() -> None:
    assert locate(TEXT).at("rules", 0, "nothing", 5).line == 27
    assert locate(TEXT).at("nothing").line == 1


def test_a_spot_holds_the_source_of_its_value() -> None:
    spot = locate(TEXT).at("rules", 1, "output", "bam")
    assert TEXT[spot.start : spot.end] == '"x"'
    spot = locate(TEXT).at("config", "deep", "er", "quotes")
    assert TEXT[spot.start : spot.end] == '""""two""quotes"""""'


def test_only_a_line_in_brackets_makes_a_header() -> None:
    spots = locate("[a]\nb = {c = 1}\nd.e = 1\n[a.f]\n")
    assert spots.at("a").header
    assert spots.at("a", "f").header
    assert not spots.at("a", "b").header
    assert not spots.at("a", "d").header


@pytest.mark.parametrize(
    "text", ["", "=", "[", "[[a", "a =", "a = [", "a = {b", '"', "a = '''", "a = ]\nb = 1", "\0"]
)
def test_a_text_that_is_no_toml_gives_fewer_places_and_no_error(text: str) -> None:
    assert locate(text).line == 1


def test_many_blank_lines_and_deep_keys_are_walked_without_recursion() -> None:
    assert locate("\n" * 1_000_000 + "a = 1").at("a").line == 1_000_001
    assert locate(".".join(["a"] * 20_000) + " = 1").at(*["a"] * 20_000).line == 1
    assert locate("a = " + "[" * 20_000 + "]" * 20_000).at("a", *[0] * 19_999).end > 20_000

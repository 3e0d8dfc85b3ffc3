"""Path patterns: parsing, filling, matching, meeting."""

from __future__ import annotations

import pytest
from rules_world import path_text, pattern

from treadle.base.place import Place
from treadle.rules.pattern.constraint import constraint
from treadle.rules.pattern.language import meet
from treadle.rules.pattern.matching import ways


def code(text: str, *, globs: bool = True) -> str:
    reader = path_text()
    assert reader.pattern(text, Place(), globs=globs) is None
    return reader.problems[0].code


def test_a_pattern_names_its_wildcards_in_order_and_once() -> None:
    assert pattern("{b}/{a}.{b}").names == ("b", "a")


def test_values_x_is_x() -> None:
    assert pattern("{values.x}/{x}").names == ("x",)


def test_config_is_filled_in_and_the_path_spelled_one_way() -> None:
    assert pattern("./{config.dir}//x/../{s}.txt").spelled == "out/{s}.txt"


def test_a_path_may_lead_out_of_the_work_folder_where_the_author_says_so() -> None:
    assert pattern("../shared/{s}.fa").spelled == "../shared/{s}.fa"
    assert pattern("/data/{s}.fa").spelled == "/data/{s}.fa"


def test_double_braces_are_a_literal_name_in_braces() -> None:
    parsed = pattern("x/{{sample}}.txt")
    assert parsed.names == ()
    assert parsed.spelled == "x/{sample}.txt"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{config.dri}/x", "unknown-config"),
        ("{config.names}/x", "array-in-path"),
        ("{config.key}/x", "secret-in-path"),
        ("{threads}.txt", "not-in-path"),
        ("{input}.bai", "not-in-path"),
        ("{params.x}.txt", "not-in-path"),
        ("{a,b}.txt", "brace-in-path"),
        ("${HOME}/x", "brace-in-path"),
        ("x}", "brace-in-path"),
        ("{sample[0]}", "unknown-placeholder"),
        ("{a.b}.txt", "unknown-placeholder"),
        ("", "bad-path"),
        ("a\x00b", "bad-path"),
        ("a\nb", "bad-path"),
    ],
)
def test_what_cannot_stand_in_a_path_is_refused(text: str, wanted: str) -> None:
    assert code(text) == wanted


def test_a_constraint_inside_the_braces_is_told_where_it_belongs() -> None:
    reader = path_text()
    reader.pattern(r"{sample,\d+}.txt", Place())
    assert "wildcard_constraints" in reader.problems[0].hint


def test_a_glob_is_refused_where_files_are_made() -> None:
    assert code("out/*.txt", globs=False) == "glob-not-here"
    assert code("out/x?.txt", globs=False) == "glob-not-here"


def test_brackets_in_an_output_are_plain_text() -> None:
    reader = path_text()
    parsed = reader.pattern("x[1].txt", Place())
    assert parsed is not None
    assert not parsed.glob


def test_filling_takes_each_value_for_what_it_is() -> None:
    parsed = pattern("%s/{a}%{b}*.{a}")
    assert parsed.fill({"a": "1%", "b": "{a}"}) == "%s/1%%{a}*.1%"
    assert parsed.filler(("b", "x", "a"))(("{a}", "?", "1%")) == "%s/1%%{a}*.1%"


def matched(text: str, path: str, **constraints: str) -> list[dict[str, str]]:
    return [dict(values) for values in ways(pattern(text, **constraints).parts, path, {}, 9)]


def test_a_wildcard_never_crosses_a_slash() -> None:
    assert matched("a/{x}.txt", "a/b.txt") == [{"x": "b"}]
    assert matched("a/{x}.txt", "a/b/c.txt") == []


def test_a_wildcard_crosses_a_slash_where_its_constraint_matches_one() -> None:
    assert matched("a/{x}.txt", "a/b/c.txt", x=".+") == [{"x": "b/c"}]
    assert matched("a/{x}.txt", "a/b/c.txt", x="[a-z]+") == []


def test_a_constraint_must_match_the_whole_value() -> None:
    assert matched("{x}.txt", "S1.txt", x="S[0-9]") == [{"x": "S1"}]
    assert matched("{x}.txt", "S12.txt", x="S[0-9]") == []
    assert matched("{x}.txt", "xS1.txt", x="S[0-9]") == []
    assert matched("{x}.txt", "ab.txt", x="a|ab") == [{"x": "ab"}]


def test_a_wildcard_is_never_empty() -> None:
    assert matched("a/{x}.txt", "a/.txt") == []
    assert matched("{x}_{y}", "_a") == []


def test_the_same_wildcard_twice_must_match_the_same_text() -> None:
    assert matched("{s}/{s}_1.fq", "S1/S1_1.fq") == [{"s": "S1"}]
    assert matched("{s}/{s}_1.fq", "S1/S2_1.fq") == []


def test_text_that_can_be_split_in_two_ways_gives_both() -> None:
    both = [{"s": "S1", "l": "v2.L1"}, {"s": "S1.v2", "l": "L1"}]
    assert matched("{s}.{l}.fq", "S1.v2.L1.fq") == both
    assert matched("{s}.{l}.fq", "S1.v2.L1.fq", l="L[0-9]") == both[1:]


def test_two_ways_for_a_glob_with_the_same_values_are_one() -> None:
    assert matched("{s}.x*y*", "a.xyyy") == [{"s": "a"}]


def test_a_glob_matches_as_in_the_shell() -> None:
    assert matched("a*c", "abc") == [{}]
    assert matched("a*c", "ac") == [{}]
    assert matched("a?c", "abc") == [{}]
    assert matched("a?c", "ac") == []
    assert matched("a[bx-z]c", "ayc") == [{}]
    assert matched("a[!b]c", "abc") == []
    assert matched("a*c", "a/c") == []
    assert matched("a?c", "a/c") == []
    assert matched("a[!b]c", "a/c") == []
    assert matched("a[]]c", "a]c") == [{}]


def test_two_stars_are_any_number_of_folders() -> None:
    assert matched("a/**/b", "a/b") == [{}]
    assert matched("a/**/b", "a/x/y/b") == [{}]
    assert matched("a/**/b", "a/xb") == []
    assert matched("a/**", "a/x/y") == [{}]
    assert matched("**/{s}.fq", "a/b/S1.fq") == [{"s": "S1"}]
    assert matched("a**b", "a/b") == []


def test_hidden_names_are_matched_only_by_a_dot_that_is_written() -> None:
    assert matched("{x}.txt", ".a.txt") == []
    assert matched("*.txt", ".txt") == []
    assert matched("a/?b", "a/.b") == []
    assert matched(".{x}.txt", ".a.txt") == [{"x": "a"}]
    assert matched("**/b", ".a/b") == []
    assert matched("a{x}", "a.b") == [{"x": ".b"}]
    assert matched("{x}", "a/.b", x=".+") == []


@pytest.mark.parametrize(
    ("text", "crosses"),
    [
        ("S[0-9]+", False),
        (r"\d+", False),
        ("[^/]+", False),
        ("[^._/]+", False),
        ("a|b", False),
        ("[A-Za-z0-9_-]+", False),
        (".+", True),
        ("S.*", True),
        ("[+-9]", True),
        (r"\S+", True),
        ("[^_]+", True),
        ("(?:a/b)", True),
    ],
)
def test_whether_a_constraint_may_match_a_slash_is_seen(text: str, crosses: bool) -> None:
    assert constraint(text).crosses is crosses


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("a/{x}.txt", "a/*.txt", True),
        ("a/{x}.txt", "b/*.txt", False),
        ("a/{x}.txt", "a/{y}/b.txt", False),
        ("{x}.txt", "{y}.sorted.txt", True),
        ("{x}.raw", "{y}.txt", False),
        ("**/x.txt", "a/b/x.txt", True),
        ("**/x.txt", "x.txt", True),
        ("**/x.txt", "yx.txt", False),
        ("a?c", "abbc", False),
        ("a[bc]", "a[cd]", True),
        ("a[bc]", "a[de]", False),
        ("{x}_1", "{y}_2", False),
        ("{x}{y}", "a", False),
        ("é/{x}", "é/a", True),
    ],
)
def test_two_patterns_meet_where_some_path_is_both(one: str, other: str, wanted: bool) -> None:
    assert meet(pattern(one).parts, pattern(other).parts) is wanted
    assert meet(pattern(other).parts, pattern(one).parts) is wanted


@pytest.mark.parametrize(
    ("regex", "text", "wanted"),
    [
        ("S[0-9]+", "S1.sorted", False),
        ("S[0-9]+", "S1", True),
        ("(?:ab){2,3}", "ab", False),
        ("(?:ab){2,3}", "ababab", True),
        ("(?:ab){2,3}", "abababab", False),
        (r"[^\W_]", "_", False),
        (r"[^\W_]", "5", True),
        ("(?i)abc", "AbC", True),
        ("(?i:a)b", "AB", False),
        ("a|bc?", "bc", True),
        ("a*?b++", "aabb", True),
        (r"\w(?=x)x", "ax", True),
        (r"(a|b)\1", "ab", True),  # a back reference is taken for any text
        ("[^a]", "é", True),
        ("(?:[0-9]{60})", "1" * 60, True),
    ],
)
def test_meeting_respects_constraints(regex: str, text: str, wanted: bool) -> None:
    assert meet(pattern("a/{x}", x=regex).parts, pattern(f"a/{text}").parts) is wanted


def test_a_constraint_that_crosses_slashes_meets_deeper_paths() -> None:
    assert meet(pattern("a/{x}", x=".+").parts, pattern("a/b/c").parts)
    assert not meet(pattern("a/{x}").parts, pattern("a/b/c").parts)

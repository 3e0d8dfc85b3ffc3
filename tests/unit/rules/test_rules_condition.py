"""`when`: typed conditions."""

from __future__ import annotations

import pytest
from rules_world import path_text

from treadle.base.place import Place
from treadle.rules.schema import Spelled
from treadle.rules.when.condition import Scope, parse_condition
from treadle.rules.when.terms import Setting
from treadle.rules.when.words import ConditionError

CONFIG = {
    "n": 3,
    "cut": Spelled("1e-3"),
    "mode": "wgs",
    "deep": True,
    "names": ("S1", "S2"),
    "numbers": (1, 2),
    "none": (),
    "my-key": "x",
}
THERE = {"ref/S1.fa"}


def scope() -> Scope:
    return Scope(frozenset(["sample", "lane"]), CONFIG, {"k": 5, "t": "a"}, path_text())


def holds(text: str) -> bool:
    condition = parse_condition(text, scope(), Place())
    setting = Setting({"sample": "S1", "lane": "2"}, {"k": 5, "t": "a"}, THERE.__contains__)
    return condition.holds(setting)


def wrong(text: str) -> ConditionError:
    with pytest.raises(ConditionError) as caught:
        parse_condition(text, scope(), Place())
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "config.deep",
        "!false",
        "config.n == 3",
        "config.n != 4",
        "config.n < 4",
        "config.n <= 3",
        "config.n > -1",
        "config.n >= 2.5",
        "config.cut == 0.001",
        "config.cut < 1e-2",
        'config.mode == "wgs"',
        "config.mode != 'exome'",
        'config.my-key == "x"',
        'sample == "S1"',
        'values.lane == "2"',
        'wildcards.lane == "2"',
        'sample in ["S1", "S2"]',
        '!(sample in ["S3"])',
        "sample in config.names",
        "config.n in [1, 2, 3]",
        "2 in config.numbers",
        "!(sample in config.none)",
        "!(sample in [])",
        'sample in ["S1",]',
        "params.k == 5",
        'params.t == "a"',
        'file_exists("ref/{sample}.fa")',
        '!file_exists("ref/other.fa")',
        "config.deep == true",
        "false || true && true",
        "!(true && false) && (false || true)",
        "!false && !false",
        "!!true",
        'sample == "S1" && config.n > 2 || false',
        r'"a\"b" == "a\"b"',
    ],
)
def test_conditions_that_hold(text: str) -> None:
    assert holds(text) is True


@pytest.mark.parametrize("text", ["false", "!config.deep", "true && false || false", 'sample == "S2"'])
def test_conditions_that_do_not_hold(text: str) -> None:
    assert holds(text) is False


def test_and_binds_closer_than_or() -> None:
    assert holds("true || false && false")


def test_names_and_files_are_told() -> None:
    condition = parse_condition('file_exists("{lane}.x") && sample != "a"', scope(), Place())
    assert condition.names == ("lane", "sample")
    assert [pattern.text for pattern in condition.files] == ["{lane}.x"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('config.n == "3"', "type-mismatch"),
        ("lane == 2", "type-mismatch"),
        ("config.deep == 1", "type-mismatch"),
        ('config.deep == "true"', "type-mismatch"),
        ("lane in [1, 2]", "type-mismatch"),
        ('sample in ["a", 1]', "type-mismatch"),
        ("sample in config.mode", "type-mismatch"),
        ("config.names == config.names", "type-mismatch"),
        ('sample < "S2"', "no-order"),
        ("config.deep > false", "no-order"),
        ("config.n", "not-a-condition"),
        ("sample", "not-a-condition"),
        ("config.mode && true", "not-a-condition"),
        ("!config.n", "not-a-condition"),
        ("config.names", "not-a-condition"),
        ("config.nn == 3", "unknown-name"),
        ("params.kk == 3", "unknown-name"),
        ('sampel == "a"', "unknown-name"),
        ("wgs", "unknown-name"),
        ("config.n = 3", "bad-condition"),
        ("true & true", "bad-condition"),
        ("true and true", "bad-condition"),
        ("true true", "bad-condition"),
        ("", "bad-condition"),
        ("(true", "bad-condition"),
        ("true)", "bad-condition"),
        ("true &&", "bad-condition"),
        ('"open == 1', "bad-condition"),
        ('{sample} == "S1"', "bad-condition"),
        ("1 < 2 < 3", "bad-condition"),
        ("file_exists(ref.fa)", "bad-condition"),
        ("file_exists", "bad-condition"),
        ("sample in [", "bad-condition"),
        ("3abc == 3", "bad-condition"),
        ("__import__('os')", "unknown-name"),
        ("(" * 200 + "true" + ")" * 200, "bad-condition"),
        ("!" * 200 + "true", "bad-condition"),
        ("[" * 5000, "bad-condition"),
    ],
)
def test_what_is_wrong_with_a_condition_is_told(text: str, code: str) -> None:
    assert wrong(text).code == code


def test_errors_show_the_way_out() -> None:
    assert "config.n" in wrong("config.nn == 3").hint
    assert "sample" in wrong('sampel == "a"').hint
    assert "config.mode" in wrong('mode == "wgs"').hint
    assert "quotes" in wrong("lane == 2").hint
    assert "==" in wrong("config.n = 3").hint
    assert "&&" in wrong("true and true").hint


def test_types_are_found_wrong_even_where_they_would_never_be_evaluated() -> None:
    assert wrong('false && config.n == "x"').code == "type-mismatch"


def test_a_bad_path_in_file_exists_is_a_problem() -> None:
    paths = path_text()
    parse_condition('file_exists("{config.nope}")', Scope(frozenset(), {}, {}, paths), Place())
    assert [problem.code for problem in paths.problems] == ["unknown-config"]

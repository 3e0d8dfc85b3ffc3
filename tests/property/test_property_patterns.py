"""Patterns, conditions and joins: what holds for all of them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.base.place import Diagnostic, Place
from treadle.rules.expand.join import Table, join, join_sources
from treadle.rules.pattern.constraint import constraint
from treadle.rules.pattern.language import meet
from treadle.rules.pattern.listing import PathListing
from treadle.rules.pattern.matching import ways
from treadle.rules.pattern.pattern import Pattern
from treadle.rules.pattern.text import PathText
from treadle.rules.schema import Source
from treadle.rules.when.condition import Scope, parse_condition
from treadle.rules.when.words import ConditionError

QUICK = settings(max_examples=150, deadline=None)

NAMES = ("a", "b", "c")
VALUE = st.text("xyzS1._- *?[%é", min_size=1, max_size=5).filter(lambda text: not text.startswith("."))
PIECE = st.one_of(
    st.sampled_from([f"{{{name}}}" for name in NAMES]),
    st.sampled_from(["x", "S1", "_", ".", "/", "%s", "é", "-"]),
)
GLOB = st.one_of(PIECE, st.sampled_from(["*", "?", "[xy]", "[!_]", "**/"]))


def texts(piece: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(piece, min_size=1, max_size=7).map("".join)


def parse(text: str, **constraints: str) -> Pattern | None:
    found = {name: constraint(regex) for name, regex in constraints.items()}
    return PathText({}, frozenset(), found, []).pattern(text, Place(), globs=True)


@given(texts(PIECE), st.tuples(VALUE, VALUE, VALUE))
@QUICK
def test_what_was_filled_in_is_found_again(text: str, values: tuple[str, str, str]) -> None:
    pattern = parse(text)
    if pattern is None:
        return
    given = {name: value for name, value in zip(NAMES, values) if name in pattern.names}
    path = pattern.fill(given)
    assert pattern.filler(NAMES)(values) == path
    assert ways(pattern.parts, path, given) == [given]
    found = ways(pattern.parts, path, {}, 10_000)
    assert given in found
    assert all(pattern.fill(way) == path for way in found)


@given(texts(PIECE), st.lists(st.tuples(VALUE, VALUE, VALUE), min_size=1, max_size=5))
@QUICK
def test_a_listing_finds_what_was_filled_in(text: str, rows: Sequence[tuple[str, str, str]]) -> None:
    pattern = parse(text)
    if pattern is None or pattern.text.startswith(".."):
        return
    values = [{name: value for name, value in zip(NAMES, row) if name in pattern.names} for row in rows]
    listing = PathListing([pattern.fill(one) for one in values])
    for one in values:
        found = listing.match(pattern, one)
        assert found == [(pattern.fill(one), tuple(one[name] for name in pattern.names))]
    paths = [path for path, _ in listing.match(pattern)]
    assert {pattern.fill(one) for one in values} <= set(paths)
    assert paths == sorted(paths)


@given(texts(GLOB), texts(GLOB), st.tuples(VALUE, VALUE, VALUE))
@QUICK
def test_patterns_that_both_match_a_path_meet(one: str, other: str, values: tuple[str, str, str]) -> None:
    first, second = parse(one), parse(other)
    if first is None or second is None:
        return
    path = first.fill(dict(zip(NAMES, values)))
    if ways(first.parts, path, {}) and ways(second.parts, path, {}):
        assert meet(first.parts, second.parts)
        assert meet(second.parts, first.parts)


@given(st.sampled_from(["[a-z]+", "S[0-9]{1,2}", "(a|bc)+", "[^_]+", r"\w+", "x?y*z"]), texts(PIECE), VALUE)
@QUICK
def test_a_constraint_means_the_same_to_matching_and_to_meeting(regex: str, text: str, value: str) -> None:
    pattern, path = parse(f"p/{{a}}/{text}", a=regex), f"p/{value}/x"
    whole = parse(path.replace("*", "x").replace("?", "x").replace("[", "x"))
    if pattern is None or whole is None or not ways(pattern.parts, whole.spelled, {}):
        return
    assert meet(pattern.parts, whole.parts)


TOKEN = st.sampled_from(
    [
        "config.n",
        "config.t",
        "sample",
        "1",
        "'x'",
        "==",
        "<",
        "in",
        "[",
        "]",
        "(",
        ")",
        "!",
        "&&",
        "||",
        ",",
        "true",
    ]
)


@given(st.one_of(st.lists(TOKEN, max_size=9).map(" ".join), st.text(max_size=12)))
@QUICK
def test_any_text_is_a_condition_or_a_clear_error(text: str) -> None:
    scope = Scope(frozenset(["sample"]), {"n": 1, "t": "x"}, {}, PathText({}, frozenset(), {}, []))
    with suppress(ConditionError):
        assert parse_condition(text, scope, Place()).text == text


CELL = st.one_of(st.none(), st.sampled_from("123"))


def sources() -> st.SearchStrategy[list[Source]]:
    columns = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)

    def one(names: list[str]) -> st.SearchStrategy[Source]:
        rows = st.lists(st.tuples(*[CELL] * len(names)), min_size=1, max_size=4)
        return rows.map(lambda rows: Source(kind="table", label="t", columns=tuple(names), rows=tuple(rows)))

    return st.lists(columns.flatmap(one), min_size=1, max_size=4)


@given(sources())
@QUICK
def test_a_join_gives_what_comparing_all_rows_gives_in_that_order(given: list[Source]) -> None:
    names = tuple(dict.fromkeys(name for source in given for name in source.columns))
    wanted: list[dict[str, str]] = [{}]
    for source in given:
        wanted = [
            {**row, **fresh}
            for row in wanted
            for cells in source.rows
            if None not in cells
            if (fresh := dict(zip(source.columns, map(str, cells))))
            and all(row.get(name, value) == value for name, value in fresh.items())
        ]
    found = join_sources(given, names).rows
    assert found == list(dict.fromkeys(tuple(row[name] for name in names) for row in wanted))


def test_a_join_of_tables_without_columns_is_the_other_table() -> None:
    table = Table(("a",), [("1",)])
    assert join(Table((), [()]), table).rows == [("1",)]


@given(st.text("{}*?[]!/.\\\\a{x}é\0 config", max_size=14))
@QUICK
def test_any_text_is_a_path_or_a_clear_error(text: str) -> None:
    problems: list[Diagnostic] = []
    pattern = PathText({"x": 1}, frozenset(), {}, problems).pattern(text, Place(), globs=True)
    assert (pattern is None) == bool(problems)
    if pattern is not None:
        assert PathListing(["a/b.txt"]).match(pattern) is not None
        assert meet(pattern.parts, pattern.parts)


@given(st.text("ab.*+?|()[]^-{}1,2\\\\dw/$", max_size=10))
@QUICK
def test_any_regular_expression_can_be_a_constraint(regex: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pattern = parse("p/{a}.x", a=regex)
        except (re.error, OverflowError):
            return
        assert pattern is not None
        for value in ("a", "b1", "a/b", "1-2"):
            whole = parse(f"p/{value}.x")
            assert whole is not None
            if ways(pattern.parts, whole.spelled, {}):
                assert meet(pattern.parts, whole.parts)
                assert "/" not in value or constraint(regex).crosses

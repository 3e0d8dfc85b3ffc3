"""One spelling of each path, and the index of those that tasks make."""

from __future__ import annotations

import pytest

from treadle.plan.paths import PathIndex, normal, normal_draft, relative_to
from treadle.testing.drafts import draft


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        ("a/b", "a/b"),
        ("./a//b/", "a/b"),
        ("a/../b", "b"),
        ("../a/./b", "../a/b"),
        ("a/../../b", "../b"),
        ("/x//y/../z/", "/x/z"),
        ("//x", "/x"),
        ("///x", "/x"),
        ("/", "/"),
        (".", "."),
        ("a b/ü", "a b/ü"),
        (".hidden/..x", ".hidden/..x"),
    ],
)
def test_a_path_has_one_spelling(written, spelled):
    assert normal(written) == spelled
    assert normal(spelled) == spelled


@pytest.mark.parametrize(
    ("path", "workdir", "inside"),
    [
        ("/w/a/b", "/w", "a/b"),
        ("/w/a/b", "/w/", "a/b"),
        ("/w/a/../b", "/w", "b"),
        ("/w", "/w", "."),
        ("/wide/a", "/w", "/wide/a"),
        ("./a", "/w", "a"),
        ("/a", "/", "a"),
        ("/w/a", "", "/w/a"),
    ],
)
def test_an_absolute_path_below_the_work_folder_becomes_relative(path, workdir, inside):
    assert relative_to(path, workdir) == inside


def test_an_ordinary_draft_is_left_as_it_is():
    one = draft("a", "x/y z", "o/p", log="l")
    assert normal_draft(one) is one


def test_every_path_of_a_draft_gets_its_spelling():
    odd = draft(
        "a",
        "./x y/",
        "o//p",
        gathered=frozenset({"./x"}),
        ancient=frozenset({"y/"}),
        temporary=("o//p",),
        log="./l",
        benchmark="b/../b",
    )
    even = draft(
        "a",
        "x y",
        "o/p",
        gathered=frozenset({"x"}),
        ancient=frozenset({"y"}),
        temporary=("o/p",),
        log="l",
        benchmark="b",
    )
    assert normal_draft(odd) == even


def test_two_spellings_in_one_list_become_one_entry():
    assert normal_draft(draft("a", "x ./x x/")).inputs == ("x",)


def test_the_index_knows_folders_above_nearest_first():
    index = PathIndex({"a": 1, "a/b": 2, "c/d": 3})
    assert list(index.above("a/b/c/x")) == ["a/b", "a"]
    assert list(index.above("a/b")) == ["a"]
    assert list(index.above("c/x")) == list(index.above("a")) == list(index.above("/a/b")) == []
    assert index.nearest("c/d/e/f") == "c/d"


def test_the_index_knows_what_lies_below():
    index = PathIndex({"q/b": 1, "q/a": 1, "q": 1, "q-/x": 1, "q0": 1, "/abs/q/x": 1, "../up": 1})
    assert index.below("q") == ["q/a", "q/b"]
    assert index.below("q-") == ["q-/x"]
    assert index.below("/abs") == index.below("/") == ["/abs/q/x"]
    assert index.below(".") == ["q", "q-/x", "q/a", "q/b", "q0"]
    assert index.below("..") == ["../up"]
    assert [path for path in ("q", "q-", "q0", "/abs", "/", ".", "x", "q/a") if index.has_below(path)] == [
        "q",
        "q-",
        "/abs",
        "/",
        ".",
    ]

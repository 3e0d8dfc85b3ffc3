"""The digest of a function: what changes it, what does not, and what is unknown."""

from __future__ import annotations

import functools
import importlib.util
import linecache
import subprocess
import sys
import textwrap

import pytest

from treadle.steps.code import digest
from treadle.steps.maker import step
from treadle.steps.remote import remote
from treadle.steps.resources import ResourceConfig
from treadle.steps.spec import StepSpec


@pytest.fixture
def load(tmp_path):
    """Functions of a module of this text, as they are after an import."""

    def loaded(text):
        number = len(list(tmp_path.iterdir()))
        file = tmp_path / f"m{number}.py"
        file.write_text(textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location(f"code_{number}", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return loaded


def test_positions_comments_layout_and_docstrings_change_nothing(load):
    one = load("""
        def make(out):
            "What it does."
            def inner(x): return x + 1
            return [inner(x) for x in (1, 2)]
    """)
    other = load('''
        import os


        def make(  out  ) :

            def inner(x):
                """Adds one."""
                return (x
                        + 1)  # by one
            return [inner(x) for x in (1, 2,)]
    ''')
    assert digest(one.make) == digest(other.make) != ""


@pytest.mark.parametrize(
    "text",
    [
        "def make(out): return 2",
        "def make(out): return 1.0",
        "def make(out): return True",
        "def make(out): return '1'",
        "def make(out, x=1): return 1",
        "def make(path): return 1",
        "def make(out):\n    out\n    return 1",
        "def make(out): return -1",
    ],
)
def test_what_a_function_does_changes_its_digest(load, text):
    assert digest(load(text).make) not in (digest(load("def make(out): return 1").make), "")


def test_lambdas_on_one_line_are_told_apart(load):
    module = load("""
        f, g, h = lambda out: out + 1, lambda out: out + 2, lambda out: out + 1
        many = {"a": lambda out: (lambda out: 1), "b": lambda out: (lambda out: 2)}
        inner = many["a"](0), many["b"](0)
        spread = [
            lambda out:
                out * 3, lambda out: out * 4]
    """)
    assert digest(module.f) == digest(module.h) != digest(module.g)
    functions = [module.f, module.g, *module.many.values(), *module.inner, *module.spread]
    found = [digest(one) for one in functions]
    assert len(set(found)) == len(found)
    assert all(found)


def test_lambdas_that_cannot_be_told_apart_are_unknown(tmp_path):
    file = tmp_path / "m.py"
    file.write_text(
        "from treadle.steps.code import digest\n"
        "f, g = lambda out: 1, lambda out: 2\n"
        "h = lambda out: 3\n"
        "print([bool(digest(one)) for one in (f, g, h)])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-X", "no_debug_ranges", file], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[False, False, True]"


def test_defaults_and_closure_values_change_the_digest():
    def maker(value):
        def make(out):
            return value

        return make

    def default(value):
        def make(out, x=value, *, y=(1, value)):
            return x

        return make

    for make in (maker, default):
        values = [1, 1.0, True, "1", None, (1, 2), (1, (2,)), frozenset({1, 2}), int, len, sys, b"1"]
        found = [digest(make(value)) for value in values]
        assert len(set(found)) == len(found)
        assert found == [digest(make(value)) for value in values]


def test_steps_and_functions_in_a_closure_count_as_what_they_are():
    def maker(held):
        return lambda out: held

    one, other = StepSpec("a"), StepSpec("a", version="2")
    assert digest(maker(one)) == digest(maker(StepSpec("a"))) != digest(maker(other))
    assert digest(maker(lambda x: 1)) != digest(maker(lambda x: 2))


def test_values_that_can_change_are_not_code():
    """A list that collects, a counter: what they hold when the digest is taken says nothing of the code."""
    calls: list[int] = []
    count = 0

    def make(out, seen=calls):
        nonlocal count
        count += 1
        calls.append(count)
        seen.append(count)

    before = digest(make)
    make("x")
    assert digest(make) == before != ""


def test_a_function_that_holds_itself_has_a_digest():
    def make(out):
        return make

    assert digest(make)


def test_wrappers_count_with_what_they_wrap():
    def loud(fn):
        @functools.wraps(fn)
        def wrapper(*args):
            return fn(*args)

        return wrapper

    def one(out):
        return 1

    def two(out):
        return 2

    class Callable:
        def __call__(self, out):
            return 3

        def method(self, out):
            return 4

    def bound(out, x):
        return x

    found = [
        digest(fn)
        for fn in (
            one,
            loud(one),
            loud(two),
            functools.partial(bound, x=1),
            functools.partial(bound, x=2),
            functools.partial(bound, 1),
            Callable(),
            Callable().method,
        )
    ]
    assert all(found)
    assert len(set(found)) == len(found)
    assert digest(functools.lru_cache(one)) == digest(one)


def test_remote_and_step_add_nothing_to_the_function():
    def make(out, n=1):
        return n

    assert digest(remote(resources=ResourceConfig(cpu=4))(make)) == digest(make)
    assert step(make)(n=1).code == step(make)(n=2).code == step(version="2")(make)().code != ""


@pytest.mark.parametrize("fn", [print, eval("lambda out: 1"), functools.partial(print, 1), int, None, 3])
def test_what_cannot_be_read_is_unknown(fn):
    assert digest(fn) == ""


def test_a_file_that_is_gone_or_broken_is_unknown(load, tmp_path):
    gone, broken = load("def make(out): return 1").make, load("def make(out): return 1").make
    (tmp_path / "m0.py").unlink()
    (tmp_path / "m1.py").write_text("def make(out: return 1")
    linecache.clearcache()
    assert digest(gone) == digest(broken) == ""


def test_a_module_that_is_loaded_again_is_read_again(load, tmp_path):
    before = digest(load("def make(out): return 1").make)
    file = tmp_path / "m0.py"
    file.write_text("def make(out): return 'something else'")
    space: dict = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    assert digest(space["make"]) not in (before, "")


def test_a_file_that_was_edited_since_it_was_loaded_counts_as_it_was(load, tmp_path):
    text = "def one(out): return 1\ndef two(out): return 2\ndef three(out): return 3\n"
    edited, never_seen, whole = load(text), load(text), load(text)
    digest(edited.one)
    for number in range(2):
        (tmp_path / f"m{number}.py").write_text(text.replace("return 2", "return 'something else'"))
    assert digest(edited.two) == digest(whole.two) != ""
    assert digest(edited.three) == digest(whole.three)
    assert digest(never_seen.two) == ""
    assert digest(never_seen.three) == digest(whole.three)


def test_the_digest_is_taken_when_it_is_asked_for_and_once(load, tmp_path):
    early, late = (StepSpec("s", fn=load("def make(out): return 1").make) for _ in range(2))
    taken = early.code
    for file in tmp_path.glob("m*.py"):
        file.unlink()
    linecache.clearcache()
    assert (early.code, late.code) == (taken, "")
    assert taken

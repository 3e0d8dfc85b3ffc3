"""`@step` and `remote`: plain functions as steps, and functions for the current client."""

from __future__ import annotations

import pickle
import subprocess
import sys

import cloudpickle
import pytest

from treadle.base.errors import StepError
from treadle.steps.context import wants_context
from treadle.steps.maker import step
from treadle.steps.remote import RemoteCallable, remote
from treadle.steps.resources import ResourceConfig
from treadle.steps.spec import StepSpec


@step(version="3", retries=2)
def data(out, n=3):
    """Writes a number."""
    return n


@step
def train(out, source, ctx, lr=0.1, *more, opts=None, **rest):
    return source, lr, more, opts, rest, ctx, out


@step
def add(a, b):
    return a + b


@step
@remote(resources=ResourceConfig(cpu=2), env_vars={"A": "1"})
def far(out, x):
    return x


@remote
def bare(out):
    return 5


def test_arguments_and_defaults_are_the_hash_attrs():
    made = data()
    assert made.hash_attrs == {"n": 3}
    assert (made.name, made.version, made.retries) == ("data", "3", 2)
    assert made == data(3) == data(n=3) != data(4)
    assert made == StepSpec("data", version="3", hash_attrs={"n": 3})


def test_steps_among_the_arguments_become_deps_wherever_they_stand():
    one, two, three = data(1), data(2), data(3)
    made = train([one, {"x": two}], opts=three)
    assert made.deps == (one, two, three)
    assert train([one, two]) != train([two, one])  # the place of each bears identity
    assert train([one]) == train([data(1)])


def test_the_function_gets_its_arguments_the_path_and_the_context():
    one = data(1)
    made = train([one, (1, 2)], 0.5, 7, 8, opts={"k": [1]}, z=9)
    source, lr, more, opts, rest, ctx, out = made.fn("/out", ctx="CTX")
    assert (source, lr, more, opts, rest) == ([one, [1, 2]], 0.5, (7, 8), {"k": [1]}, {"z": 9})
    assert (ctx, out) == ("CTX", "/out")
    assert wants_context(made.fn)


def test_a_function_without_path_and_context_gets_its_arguments_alone():
    assert add(1, b=2).fn("/out", ctx=None) == 3
    assert add(1, 2).hash_attrs == {"a": 1, "b": 2}


def test_no_call_changes_the_arguments_of_the_next():
    @step
    def grow(items):
        items.append(1)
        return items

    given = [0]
    made = grow(given)
    given.append(5)
    assert made.fn("/out", ctx=None) == made.fn("/out", ctx=None) == [0, 1]


def test_the_plain_function_can_still_be_called():
    assert add.fn(1, 2) == 3
    assert data.__doc__ == "Writes a number."
    assert data.__name__ == "data"


def test_options_of_the_maker_are_those_of_steps():
    dep = StepSpec("dep")
    made = step(name="other", deps=[dep], resources=ResourceConfig(cpu=2))(lambda out, x=1: x)()
    assert (made.name, made.deps, made.resources) == ("other", (dep,), ResourceConfig(cpu=2))


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (lambda: add(1), r"missing a required argument: 'b'\n  its parameters are \(a, b\)"),
        (lambda: train(1, out="x"), "out is given by the run"),
        (lambda: add(1, {2}), r"hash_attrs\.b: a value of type set"),
        (
            lambda: step(versio="x")(lambda out: 1),
            "versio: a step has no such option\n  did you mean 'version'",
        ),
        (lambda: step(3), "a plain function is wanted"),
        (lambda: step(print), "a plain function is wanted"),
        (lambda: remote(3), "remote wants a function"),
        (lambda: remote(resources=4)(print), "a ResourceConfig is wanted"),
    ],
)
def test_mistakes_are_errors_of_steps(bad, text):
    with pytest.raises(StepError, match=text):
        bad()


@pytest.mark.parametrize("kind", [pickle, cloudpickle])
def test_decorated_functions_of_modules_travel_by_name(kind):
    one = data(1)
    again = kind.loads(kind.dumps(train([one]).fn))
    source, *_ = again("/out", ctx=None)
    assert source == [one]
    assert again.fn is train.fn
    assert kind.loads(kind.dumps(bare)) is bare
    distant = kind.loads(kind.dumps(far(7).fn))
    assert isinstance(distant, RemoteCallable)
    assert distant.resources == ResourceConfig(cpu=2)
    assert dict(distant.env_vars) == {"A": "1"}
    assert distant("/out", None) == 7


def test_functions_of_scripts_travel_by_value(tmp_path):
    """Where the script is not the main program, nobody can find them by name."""
    script, file = tmp_path / "script.py", tmp_path / "pickled"
    script.write_text(
        "import sys, cloudpickle\n"
        "from treadle.steps.maker import step\n"
        "from treadle.steps.remote import remote\n"
        "@step\n"
        "def add(a, b): return a + b\n"
        "@remote(env_vars={'A': '1'})\n"
        "def five(out): return 5\n"
        f"open({str(file)!r}, 'wb').write(cloudpickle.dumps([add(1, 2).fn, five, remote(lambda out: 6)]))\n"
    )
    subprocess.run([sys.executable, script], check=True)
    add_again, five, six = pickle.loads(file.read_bytes())
    assert (add_again("/out", None), five("/out"), six("/out")) == (3, 5, 6)
    assert dict(five.env_vars) == {"A": "1"}


def test_a_remote_callable_is_callable_in_place_and_cannot_be_changed():
    named = remote(resources=ResourceConfig(cpu=3), env_vars={"A": "b"}, name="job")(
        lambda out, x=2: (out, x)
    )
    assert named("/out") == ("/out", 2)
    assert named("/out", x=3) == ("/out", 3)
    assert (named.name, named.resources, named.env_vars) == ("job", ResourceConfig(cpu=3), {"A": "b"})
    with pytest.raises(AttributeError):
        named.name = "x"
    with pytest.raises(TypeError):
        named.env_vars["A"] = "c"

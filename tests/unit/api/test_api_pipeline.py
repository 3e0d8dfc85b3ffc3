"""Loading a pipeline: what is found in a file, what is said where nothing fits, and that nothing runs."""

from __future__ import annotations

import pathlib
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest

from treadle.api.collect import collecting
from treadle.api.pipeline import MOST, Pipeline, load, split
from treadle.base.errors import OptionError, StepError

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: pathlib.Path) -> Iterator[Write]:
    """Writes a pipeline file, and forgets all modules that were loaded from the folder afterwards."""
    before, path = dict(sys.modules), list(sys.path)

    def write(text: str, name: str = "flow.py") -> str:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("from treadle.steps.spec import StepSpec\n" + textwrap.dedent(text))
        return str(target)

    yield write
    sys.path[:] = path
    for name in sys.modules.keys() - before.keys():
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def names(pipeline: Pipeline) -> list[str]:
    return [step.name for step in pipeline.steps]


@pytest.mark.parametrize(
    ("word", "file", "entry"),
    [
        ("pipeline.py", "pipeline.py", ""),
        ("a/b.py:train", "a/b.py", "train"),
        ("a.py:b/x.py:train", "a.py:b/x.py", "train"),
        ("a.py:b.py", "a.py:b.py", ""),
    ],
)
def test_a_word_is_a_file_and_a_name(word: str, file: str, entry: str) -> None:
    assert split(word) == (file, entry)


def test_the_name_steps_is_taken_before_all_others(write: Write) -> None:
    file = write(
        """
        other = [StepSpec("a", fn=print)]
        steps = [StepSpec("b", fn=print)]
        """
    )
    assert names(load(file)) == ["b"]
    assert names(load(file, "other")) == ["a"]


def test_the_only_list_is_taken(write: Write) -> None:
    assert names(load(write('work = [StepSpec("a", fn=print)]\nnumbers = [1, 2]\n'))) == ["a"]


def test_the_only_generator_is_taken(write: Write) -> None:
    found = load(
        write(
            """
            def helper(x):
                return x

            def build(n: int = 2):
                for i in range(n):
                    yield StepSpec(f"s{i}", fn=print)
            """
        )
    )
    assert found.stream
    assert found.entry == "build"
    assert names(found) == ["s0", "s1"]


def test_a_function_that_says_what_it_returns_is_taken_by_that(write: Write) -> None:
    found = load(
        write(
            """
            def lines() -> "Iterator[str]":
                yield "no step"

            def build() -> list[StepSpec]:
                return [StepSpec("a", fn=print)]
            """
        )
    )
    assert not found.stream
    assert names(found) == ["a"]


def test_several_candidates_are_listed(write: Write) -> None:
    file = write('a = [StepSpec("x", fn=print)]\nb = [StepSpec("y", fn=print)]\n')
    with pytest.raises(OptionError, match=r"several.*a, b"):
        load(file)


def test_a_file_without_steps_says_what_to_give_it(write: Write) -> None:
    with pytest.raises(OptionError, match=r"holds no list of steps"):
        load(write("x = 1\n"))


def test_a_name_that_is_a_step_stands_for_it_alone(write: Write) -> None:
    file = write('a = StepSpec("x", fn=print)\nb = StepSpec("y", fn=print, deps=[a])\nsteps = [a, b]\n')
    assert names(load(file, "a")) == ["x"]


def test_a_name_that_only_a_step_has_is_picked_from_the_list(write: Write) -> None:
    file = write('steps = [StepSpec("train", fn=print), StepSpec("test", fn=print)]\n')
    found = load(file, "train")
    assert (found.entry, found.picked) == ("steps", "train")


def test_a_name_of_a_step_and_of_its_function_is_the_step(write: Write) -> None:
    file = write("def train(out):\n    pass\n\nsteps = [StepSpec('train', fn=train)]\n")
    assert load(file, "train").picked == "train"


def test_a_function_that_says_nothing_may_be_named(write: Write) -> None:
    file = write("def more():\n    return [StepSpec('x', fn=print)]\n\nsteps = []\n")
    assert names(load(file, "more")) == ["x"]


def test_a_mistyped_name_gets_the_nearest(write: Write) -> None:
    with pytest.raises(OptionError, match=r"did you mean 'training'"):
        load(write('training = [StepSpec("x", fn=print)]\nother = [StepSpec("y", fn=print)]\n'), "trainig")


def test_what_the_runner_is_given_counts_as_the_files_steps(write: Write) -> None:
    file = write(
        """
        from treadle.api.collect import collecting
        collector = collecting()
        collector.take([StepSpec("a", fn=print)])
        collector.take(StepSpec(f"s{i}", fn=print) for i in range(2))
        """
    )
    found = load(file)
    assert found.stream
    assert names(found) == ["a", "s0", "s1"]
    assert collecting() is None


def test_guarded_code_is_not_run(write: Write, tmp_path: pathlib.Path) -> None:
    load(
        write(
            f"""
            steps = []
            if __name__ == "__main__":
                open({str(tmp_path / "mark")!r}, "w")
            """
        )
    )
    assert not (tmp_path / "mark").exists()


def test_a_file_is_run_once(write: Write, tmp_path: pathlib.Path) -> None:
    file = write(
        f'open({str(tmp_path / "log")!r}, "a").write("x")\nsteps = []\nmore = [StepSpec("a", fn=print)]\n'
    )
    load(file)
    load(file, "more")
    assert (tmp_path / "log").read_text() == "x"


def test_what_it_prints_goes_to_stderr(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    load(write('print("hello")\nsteps = []\n'))
    assert capsys.readouterr() == ("", "hello\n")


def test_side_modules_are_found_beside_it(write: Write, tmp_path: pathlib.Path) -> None:
    (tmp_path / "beside_it_lies.py").write_text("NAME = 'aside'\n")
    assert names(
        load(write("import beside_it_lies\nsteps = [StepSpec(beside_it_lies.NAME, fn=print)]\n"))
    ) == ["aside"]


@pytest.mark.parametrize("name", ["my-flow.py", "1.py", "json.py", "with blank.py", "sys.py", "ü.py"])
def test_odd_file_names_load_and_disturb_nothing(write: Write, name: str) -> None:
    before = sys.modules.get("json"), sys.modules["sys"]
    assert names(load(write('steps = [StepSpec("a", fn=print)]\n', name))) == ["a"]
    assert (sys.modules.get("json"), sys.modules["sys"]) == before


def test_two_files_of_one_name_are_two_modules(write: Write) -> None:
    one = write('steps = [StepSpec("a", fn=print)]\n', "one/twin.py")
    two = write('steps = [StepSpec("b", fn=print)]\n', "two/twin.py")
    assert (names(load(one)), names(load(two))) == (["a"], ["b"])


def test_an_error_in_the_file_is_told_with_the_persons_own_lines(write: Write) -> None:
    file = write(
        """
        def broken():
            raise KeyError("gone")

        broken()
        """
    )
    with pytest.raises(StepError) as caught:
        load(file)
    (found,) = caught.value.diagnostics
    assert found.code == "pipeline-failed"
    assert (found.place.file, found.place.line) == (file, 4)
    assert found.message.startswith("KeyError: 'gone'\n")
    assert "in broken" in found.message
    assert "user_code" not in found.message


def test_a_syntax_error_has_its_line(write: Write) -> None:
    file = write("x = (\n")
    with pytest.raises(StepError) as caught:
        load(file)
    (found,) = caught.value.diagnostics
    assert (found.code, found.place.file, found.place.line) == ("pipeline-syntax", file, 2)


def test_a_bad_step_is_told_with_the_line_that_makes_it(write: Write) -> None:
    file = write('x = 1\nsteps = [StepSpec("")]\n')
    with pytest.raises(StepError) as caught:
        load(file)
    assert (caught.value.diagnostics[0].place.file, caught.value.diagnostics[0].place.line) == (file, 3)


def test_a_file_that_exits_is_told_so(write: Write) -> None:
    with pytest.raises(StepError, match="SystemExit"):
        load(write("raise SystemExit(0)\n"))


def test_a_file_that_is_not_there_gets_the_nearest(write: Write, tmp_path: pathlib.Path) -> None:
    write("steps = []\n", "pipeline.py")
    with pytest.raises(OptionError, match=r"did you mean 'pipeline.py'"):
        load(str(tmp_path / "pipline.py"))


def test_an_item_that_is_no_step_is_named(write: Write) -> None:
    file = write('def steps():\n    yield StepSpec("a", fn=print)\n    yield 7\n')
    with pytest.raises(StepError, match=r"item 1 of steps is int"):
        list(load(file).steps)


def test_an_error_while_a_stream_is_pulled_is_the_persons_own(write: Write) -> None:
    file = write('def steps():\n    yield StepSpec("a", fn=print)\n    raise ValueError("no more")\n')
    found = load(file)
    with pytest.raises(StepError, match="ValueError: no more"):
        found.pulled()


def test_a_look_pulls_so_many_and_says_so(write: Write) -> None:
    file = write(
        """
        def steps():
            i = 0
            while True:
                i += 1
                yield StepSpec(f"s{i}", fn=print)
        """
    )
    steps, more = load(file).pulled(50)
    assert (len(steps), more) == (50, True)
    assert MOST == 10_000


KINDS = """
def steps(n: int, rate: float = 1.0, big: bool = False, name="x", deep: "int | None" = None, count=3):
    yield StepSpec("s", fn=print, hash_attrs=dict(n=n, rate=rate, big=big, name=name, deep=deep, count=count))
"""


def test_parameters_have_the_types_of_annotations_and_defaults(write: Write) -> None:
    file = write(KINDS)
    settings = [("n", "3"), ("rate", "1e-3"), ("big", "yes"), ("name", "7"), ("deep", "none"), ("count", "4")]
    (step,) = load(file, "", settings).steps
    assert dict(step.hash_attrs) == {"n": 3, "rate": 1e-3, "big": True, "name": "7", "deep": None, "count": 4}


def test_all_that_is_wrong_with_parameters_is_told_at_once(write: Write) -> None:
    with pytest.raises(OptionError) as caught:
        load(write(KINDS), "", [("rte", "1"), ("big", "maybe"), ("count", "x")])
    text = str(caught.value)
    assert "did you mean 'rate'?" in text
    assert "big=maybe: 'big' is true or false" in text
    assert "count=x: 'count' is a whole number" in text
    assert "needs a value for 'n'" in text


def test_a_list_takes_no_parameters(write: Write) -> None:
    with pytest.raises(OptionError, match=r"no parameter 'n': steps in .* is a list"):
        load(write("steps = []\n"), "", [("n", "1")])

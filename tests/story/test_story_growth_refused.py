"""Steps that grow what cannot be: told alike in the run and in the preview."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from story_steps import Calls, put

from treadle import StepError, StepRunError, StepRunner, StepSpec
from treadle.steps.grow import DEEPEST


def test_a_step_whose_value_cannot_be_kept_has_failed_where_it_is_to_grow(runner: StepRunner) -> None:
    def odd(out: str) -> object:
        pathlib.Path(out).write_text("made")
        return object()

    with pytest.raises(StepRunError) as caught:
        runner.run([StepSpec("odd", fn=odd, grow=lambda value: [])])
    assert "its value cannot be kept" in str(caught.value.exceptions[0])
    assert caught.value.report.counts == {"failed": 1}


@pytest.mark.parametrize("chain", [False, True])
def test_growth_without_an_end_stops_with_an_error_and_the_preview_says_the_same(
    runner: StepRunner, chain: bool
) -> None:
    calls = Calls()

    def level(number: int) -> StepSpec:
        step = StepSpec(f"level{number}", fn=lambda out: number, grow=lambda n: [level(n + 1)])
        return StepSpec(f"top{number}", deps=[step], fn=calls.put("top")) if chain else step

    with pytest.raises(StepRunError) as caught:
        runner.run([level(0)])
    (error,) = caught.value.exceptions
    assert isinstance(error, StepError)
    assert f"more than {DEEPEST} deep" in str(error)
    assert caught.value.report.counts == {"succeeded": (DEEPEST + 1) * (1 + chain)}
    with pytest.raises(StepError, match=f"more than {DEEPEST} deep"):
        runner.run([level(0)], dry_run=True)


def test_a_grow_that_yields_without_an_end_is_an_error(
    runner: StepRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treadle.steps.grow.MOST", 1000)

    def grow(value: object) -> Iterator[StepSpec]:
        for number in itertools.count():
            yield StepSpec("s", hash_attrs={"n": number}, fn=put("s"))

    with pytest.raises(StepRunError) as caught:
        runner.run([StepSpec("one", fn=lambda out: 1, grow=grow)])
    assert "more than 1,000 steps" in str(caught.value.exceptions[0])


def test_steps_that_grow_in_a_circle_come_to_an_end(runner: StepRunner) -> None:
    steps: list[StepSpec] = []
    steps += [StepSpec("one", fn=lambda out: 1, grow=lambda n: steps)]
    steps += [StepSpec("two", fn=lambda out: 2, grow=lambda n: steps)]
    assert runner.run([steps[0]]).counts == {"succeeded": 2}
    assert runner.run([steps[0]], dry_run=True).counts == {"up_to_date": 2}


def test_where_one_step_cannot_grow_the_others_do_and_all_is_told(runner: StepRunner) -> None:
    calls = Calls()

    def wrong(value: object) -> list[Any]:
        raise ZeroDivisionError("no growth")

    steps = [
        StepSpec("bad", fn=lambda out: 1, grow=wrong),
        StepSpec("odd", fn=lambda out: 1, grow=lambda n: [3]),
        StepSpec("good", fn=lambda out: 1, grow=lambda n: StepSpec("late", fn=calls.put("late"))),
    ]
    with pytest.raises(StepRunError) as caught:
        runner.run(steps)
    told = sorted(str(error) for error in caught.value.exceptions)
    assert len(told) == 2
    assert "ZeroDivisionError: no growth" in told[0]
    assert "[0]: a step is wanted, not 3" in told[1]
    assert calls.names == ["late"]
    with pytest.raises(StepError, match="no growth"):
        runner.run(steps, dry_run=True)


def other(out: str) -> None:
    pathlib.Path(out).write_text("other")


COLLISIONS: list[tuple[str, Callable[[], list[StepSpec]], str]] = [
    ("one identity", lambda: [StepSpec("held", fn=other)], "different code"),
    ("one path", lambda: [StepSpec("new", fn=other, override_output_path="place")], "output path"),
    (
        "one path among them",
        lambda: [StepSpec(name, fn=other, override_output_path="new") for name in ("new1", "new2")],
        "output path",
    ),
]


@pytest.mark.parametrize(
    ("grown", "told"), [one[1:] for one in COLLISIONS], ids=[one[0] for one in COLLISIONS]
)
def test_what_grows_and_collides_is_refused_alike_in_the_run_and_after_it(
    runner: StepRunner, grown: Callable[[], list[StepSpec]], told: str
) -> None:
    steps = [
        StepSpec("held", fn=put("held")),
        StepSpec("placed", fn=put("placed"), override_output_path="place"),
    ]
    steps += [StepSpec("list", fn=lambda out: 1, grow=lambda n: grown(), deps=steps)]
    with pytest.raises(StepRunError) as caught:
        runner.run(steps)
    assert told in str(caught.value.exceptions[0])
    assert caught.value.report.counts == {"succeeded": 3}
    with pytest.raises(StepError, match=told):
        runner.run(steps, dry_run=True)


def test_what_grows_is_pinned_as_any_step_is(runner: StepRunner) -> None:
    pinned = StepSpec("late", fn=put("late"), expected_identity="0" * 32)
    steps = [StepSpec("list", fn=lambda out: 1, grow=lambda n: [pinned])]
    with pytest.raises(StepRunError) as caught:
        runner.run(steps)
    assert "is pinned to" in str(caught.value.exceptions[0])
    with pytest.raises(StepError, match="is pinned to"):
        runner.run(steps, dry_run=True)

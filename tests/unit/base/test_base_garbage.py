"""The collector rests while a plan is made, goes on while it is carried out, and is then as it was."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from treadle import StepRunner, StepSpec
from treadle.base.garbage import Rest


@pytest.fixture(params=[True, False], ids=["on", "off"])
def before(request: pytest.FixtureRequest) -> Iterator[bool]:
    (gc.enable if request.param else gc.disable)()
    yield request.param
    gc.enable()


def fails(seen: list[bool]) -> None:
    """Fail, having seen whether the collector is on."""
    seen.append(gc.isenabled())
    raise OSError


def test_it_rests_in_the_block_and_is_as_before_after_it(before: bool) -> None:
    seen: list[bool] = []
    with pytest.raises(OSError), Rest():  # noqa: PT011
        fails(seen)
    assert seen == [False]
    assert gc.isenabled() is before


def test_what_takes_long_is_collected_unless_that_was_off(before: bool) -> None:
    frozen = gc.get_freeze_count()
    with Rest() as rest:
        assert not gc.isenabled()
        seen: list[bool] = []
        with pytest.raises(OSError), rest.ended():  # noqa: PT011
            fails(seen)
        assert seen == [before]
        assert not gc.isenabled()
    assert gc.isenabled() is before
    assert gc.get_freeze_count() == frozen


@pytest.mark.parametrize("given", [list, iter], ids=["a list", "a stream"])
def test_steps_run_with_the_collector_as_their_program_has_it(
    before: bool, given: Callable[[list[StepSpec]], Iterable[StepSpec]], work: Path
) -> None:
    seen: list[bool] = []
    step = StepSpec(name="look", fn=lambda out: seen.append(gc.isenabled()))
    StepRunner().run(given([step]))
    assert seen == [before]
    assert gc.isenabled() is before


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path

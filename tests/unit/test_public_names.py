"""The public names: one sorted list, each of them there, imported when it is used and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import treadle


def test_the_list_is_sorted_and_has_a_home_for_each_name() -> None:
    assert treadle.__all__ == sorted(treadle.__all__)
    assert list(treadle._HOMES) == treadle.__all__
    assert set(treadle.__all__) <= set(dir(treadle))


@pytest.mark.parametrize("name", treadle.__all__)
def test_each_name_is_there(name: str) -> None:
    assert getattr(treadle, name).__name__ == name


def test_the_words_of_the_contract_of_steps_are_public() -> None:
    words = "StepSpec StepRunner RunReport StepRunError ResourceConfig remote RemoteCallable step"
    clients = "current_client use_client LocalClient RayClient JobRequest JobHandle"
    assert {*words.split(), *clients.split()} <= set(treadle.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'nothing'"):
        treadle.nothing  # noqa: B018


def test_importing_treadle_imports_nothing_else_of_it() -> None:
    code = "import sys, treadle; print(*[name for name in sys.modules if name.startswith('treadle.')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == []


def test_steps_are_made_without_the_engine() -> None:
    code = (
        "import sys; from treadle import StepSpec, StepRunner; StepSpec('a', fn=print); "
        "print(*sorted(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(out.split())
    assert "treadle.engine.loop" not in loaded
    assert not loaded & {"asyncio", "dataclasses", "ray", "obstore", "cloudpickle", "subprocess", "rich"}

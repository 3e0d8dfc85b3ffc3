"""`step.load()`: the value that a step's function returned, read where its artifact stands."""

from __future__ import annotations

import pickle

import pytest

from treadle import StepRunner
from treadle.base.errors import StepError
from treadle.steps.book import Entry
from treadle.steps.order import order_of
from treadle.steps.owner import this_owner
from treadle.steps.perform import perform
from treadle.steps.spec import StepSpec
from treadle.steps.stores import store_for


def run(spec):
    path = spec.output_path
    order = order_of(Entry(spec=spec, path=path), attempt="run.1", number=1, owner=this_owner("run.1"))
    perform(order, store_for(path), cancelled=lambda: False)


def test_a_step_and_a_reference_to_it_load_its_value(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    step = StepSpec("s", fn=lambda out: {"loss": [0.5, 1]})
    with pytest.raises(StepError, match="no complete artifact") as caught:
        step.load()
    assert caught.value.diagnostics[0].code == "not-made"
    run(step)
    assert step.load() == {"loss": [0.5, 1]}
    assert pickle.loads(pickle.dumps(step)).load() == {"loss": [0.5, 1]}
    assert step.load(dict[str, list[float]]) == {"loss": [0.5, 1.0]}


def test_a_value_is_loaded_from_the_prefix_of_the_step(tmp_path):
    step = StepSpec("s", fn=lambda out: 7, output_path_prefix=f"file://{tmp_path}/x")
    run(StepSpec("s", fn=step.fn, output_path_prefix=tmp_path / "x"))
    assert step.load() == 7


def test_another_identity_at_the_place_is_not_loaded_unless_the_step_serves_it(tmp_path):
    place = tmp_path / "here"
    run(StepSpec("s", fn=lambda out: "old", override_output_path=place, version="1"))
    with pytest.raises(StepError, match="artifact of another identity"):
        StepSpec("s", override_output_path=place, version="2").load()
    assert StepSpec("s", override_output_path=place, version="2", drift="warn").load() == "old"


def test_a_prefix_says_where_a_step_was_made(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    step = StepSpec("s", fn=lambda out: {"loss": 1})
    StepRunner(prefix="elsewhere").run([step])
    with pytest.raises(StepError) as caught:
        step.load()
    assert 'load(prefix="...")' in caught.value.diagnostics[0].hint
    assert step.load(prefix="elsewhere") == {"loss": 1}
    assert step.load(dict[str, float], prefix=tmp_path / "elsewhere") == {"loss": 1.0}
    assert pickle.loads(pickle.dumps(step)).load(prefix="elsewhere") == {"loss": 1}
    with pytest.raises(StepError, match=r"no complete artifact at .*/nowhere/s_"):
        step.load(prefix="nowhere")

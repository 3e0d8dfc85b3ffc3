"""By what a step that is at work somewhere is known to be the one that is wanted."""

from __future__ import annotations

from treadle.decide.flight import sent_step
from treadle.plan.task import Call, ScheduledTask


def step(inputs: tuple[str, ...] = ("raw.txt",), **call) -> ScheduledTask:
    fields = {"step": "count", "identity": "ab" * 16, "path": "a/count", "code": "c1", **call}
    return ScheduledTask(id="@count", rule="@count", inputs=inputs, call=Call(**fields))


def test_what_it_makes_and_by_which_code_is_what_counts():
    assert sent_step(step()) == sent_step(step(path="elsewhere"))
    assert sent_step(step()) != sent_step(step(identity="cd" * 16))
    assert sent_step(step()) != sent_step(step(code="c2"))


def test_steps_without_inputs_and_steps_that_are_always_made_anew_are_never_taken_over():
    assert sent_step(step(inputs=())) == ""
    assert sent_step(step(mutable=True)) == ""

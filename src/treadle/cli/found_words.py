"""What checkpoints found, as recorded, and what may still come: in lines, and as values for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from treadle.api.view import View
from treadle.cli.words import count, listed
from treadle.decide.reason import Verdict

_OPEN = (Verdict.WILL_RUN, Verdict.IN_FLIGHT)
_SHOWN = 3


def coming(view: View) -> dict[str, tuple[str, ...]]:
    """By rule: the checkpoint tasks that will run, or may, and can bring further tasks of it."""
    rules = view.expansion.coming
    if not rules:
        return {}
    open_: dict[str, list[str]] = {}
    for task, answer in view.decision.answers.items():
        one = view.plan.tasks[task]
        if one.manifest and answer.verdict in _OPEN:
            open_.setdefault(one.rule, []).append(task)
    found = {
        rule: tuple(task for by in bringing for task in open_.get(by, ())) for rule, bringing in rules.items()
    }
    return {rule: tasks for rule, tasks in found.items() if tasks}


def come_with(tasks: tuple[str, ...]) -> str:
    """`come with what cut finds`, of tasks that are still to be found."""
    shown = ", ".join(tasks[:_SHOWN])
    more = f" and {len(tasks) - _SHOWN} more" if len(tasks) > _SHOWN else ""
    return f"come with what {shown}{more} {'finds' if len(tasks) == 1 else 'find'}"


def growing(view: View) -> list[str]:
    """The steps that will run, or may, and then grow further ones of which nobody knows yet."""
    if view.book is None:
        return []
    tasks = view.plan.tasks
    return [
        task
        for task, answer in view.decision.answers.items()
        if answer.verdict in _OPEN and (call := tasks[task].call) is not None and call.grows
    ]


def _grown(view: View) -> Counter[str]:
    """How many steps have grown, by the step that grew them."""
    answers = view.decision.answers
    return Counter(parent for task, parent in view.parents.items() if task in answers and parent in answers)


def found_lines(view: View) -> Iterator[str]:
    """What is recorded: `found by cut: 3 values of part`; and what steps have grown, and will."""
    grown = _grown(view)
    for step in list(grown)[:_SHOWN]:
        yield f"grown by {step}, as recorded: {count(grown[step], 'step')}"
    if len(grown) > _SHOWN:
        yield f"and by {len(grown) - _SHOWN:,} more steps"
    if steps := growing(view):
        has = (
            "s further steps, known once it has"
            if len(steps) == 1
            else " further steps, known once they have"
        )
        yield f"{listed(steps, _SHOWN)} grow{has} run"
    base = view.planned.base if view.planned is not None else None
    found = [one for one in base.found if not one.task.startswith("@")] if base is not None else []
    for one in found[:_SHOWN]:
        values = one.values
        parts = [count(len(values.samples), "sample")] if values.samples else []
        parts += [count(len(values.pairs), "pair")] if values.pairs else []
        parts += [f"{count(len(given), 'value')} of {name}" for name, given in values.values.items() if given]
        yield f"found by {one.task}, as recorded: {', '.join(parts) or 'nothing'}"
    if len(found) > _SHOWN:
        yield f"and by {len(found) - _SHOWN:,} more checkpoint tasks"


def found_object(view: View) -> dict[str, Any]:
    """`discovered` of `plan --json`: by checkpoint task what is recorded, with its depth, and by step how
    many it has grown; by rule who may still bring tasks of it; the steps that will run and grow more; and the
    tasks that wait."""
    base = view.planned.base if view.planned is not None else None
    steps = growing(view)
    if base is None and not steps and not view.parents:
        return {}
    book = view.book
    found: dict[str, dict[str, Any]] = {
        step: {"depth": book[step].depth + 1 if book is not None and step in book else 1, "steps": number}
        for step, number in _grown(view).items()
    }
    if base is None:
        return {"discovered": {"found": found, "growing": steps}}
    found |= {
        one.task: {
            "depth": one.depth,
            "samples": len(one.values.samples),
            "pairs": len(one.values.pairs),
            "values": {name: len(given) for name, given in one.values.values.items()},
        }
        for one in base.found
        if not one.task.startswith("@")
    }
    waiting = {task.id: task.awaits for task in view.plan.tasks.values() if task.awaits}
    return {"discovered": {"found": found, "coming": coming(view), "growing": steps, "waiting": waiting}}

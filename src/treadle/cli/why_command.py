"""`treadle why TASK`: the decision on one task, with old and new values."""

from __future__ import annotations

import argparse
import difflib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import to_builtins

from treadle.api.pipe import View, is_pipeline, look, mask_of
from treadle.base.errors import OptionError
from treadle.base.mask import Mask
from treadle.base.names import listing
from treadle.cli.options import add_decision, add_workflow, request_of
from treadle.cli.printer import Printer
from treadle.cli.words import as_values, content, digest, reason, up_to_date, verdict
from treadle.decide.reason import (
    Answer,
    AnyReason,
    CommandChanged,
    Content,
    InputChanged,
    OutputChanged,
    Upstream,
    Verdict,
)

if TYPE_CHECKING:
    from treadle.api.step_history import Older


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser, targets="TASK")
    add_decision(parser)


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    request = request_of(args)
    if not request.targets and not is_pipeline(request.file):
        raise OptionError("why needs a task", hint=f"{listing(request.file)} lists them")
    view = look(request)
    named = list(view.asked) if view.asked else _named(view, request.targets)
    mask = mask_of(view.workflow)
    if args.json:
        printer.object({"schema": 1, "tasks": [_object(view, task, mask) for task in named]})
        return 0
    for task in named:
        for line in _lines(view, task, printer):
            printer.data(mask.text(line))
    return 0


def _named(view: View, targets: tuple[str, ...]) -> list[str]:
    """The tasks that the targets name themselves, without what they need."""
    from treadle.plan.select import select

    named = select(view.plan, targets, workdir=view.workdir, upstream=False)
    return [task for task in view.decision.answers if task in named]


def _object(view: View, task: str, mask: Mask) -> dict[str, object]:
    answer = view.decision.answers[task]
    return {
        "task": task,
        "verdict": answer.verdict,
        "may_cut_off": answer.may_cut_off,
        "note": answer.note,
        "reasons": as_values(answer.reasons, mask),
        "born": [view.parents[task]] if task in view.parents else list(_births(view, task)),
        **_older_object(view, task, mask),
    }


def _births(view: View, task: str) -> tuple[str, ...]:
    """The checkpoint tasks that found its values."""
    base = view.planned.base if view.planned is not None else None
    return base.stratum.births.get(task, ()) if base is not None else ()


def _older_object(view: View, task: str, mask: Mask) -> dict[str, object]:
    older = _older(view, task)
    return {} if older is None else {"nearest": mask.within(to_builtins(older)) if mask else older}


def _lines(view: View, task: str, printer: Printer) -> Iterator[str]:
    answer = view.decision.answers[task]
    maybe = ", unless what it reads comes out unchanged" if answer.may_cut_off else ""
    yield f"{printer.style(task, 'bold')}: {verdict(answer, task)}{maybe}"
    if not answer.reasons and answer.verdict is Verdict.UP_TO_DATE:
        yield f"  {up_to_date(answer.note, view.plan.tasks[task])}"
    for checkpoint in _births(view, task):
        yield f"  it came with what {checkpoint} found"
    for one in answer.reasons:
        yield f"  {reason(one)}"
        for line in _difference(one):
            colour = "red" if line.startswith("-") else "green" if line.startswith("+") else "dim"
            yield "    " + printer.style(line, colour)
    yield from _growth(view, task, answer)
    yield from _root(view, answer)
    yield from _nearest(view, task, printer)


def _growth(view: View, task: str, answer: Answer) -> Iterator[str]:
    """By what a step was grown, and that it will grow others itself."""
    call = view.plan.tasks[task].call
    if task in view.parents:
        yield f"  grown by {view.parents[task]}"
    if call is not None and call.grows and answer.verdict is Verdict.WILL_RUN:
        yield "  it grows further steps, known once it has run"


def _older(view: View, task: str) -> Older | None:
    """The nearest artifact from before, of a step that has no record of its own."""
    if not task.startswith("@") or (task in view.seen and view.seen[task].record is not None):
        return None
    from treadle.api.step_history import nearest

    return nearest(view, task)


def _nearest(view: View, task: str, printer: Printer) -> Iterator[str]:
    older = _older(view, task)
    if older is None:
        return
    when = time.strftime(", made %Y-%m-%d %H:%M", time.localtime(older.ended)) if older.ended else ""
    yield f"  nearest: {older.step}{when}"
    for change in (*older.changes, *older.deps):
        yield "    " + printer.style(str(change), "yellow")


def _difference(one: AnyReason) -> Iterator[str]:
    """Old and new value, line by line."""
    match one:
        case CommandChanged(part="script", old=old, new=new):
            yield from (f"{sign}{digest(text)}" for sign, text in (("-", old), ("+", new)) if text)
        case CommandChanged(old=old, new=new):
            for line in difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1):
                if not line.startswith(("---", "+++", "@@")):
                    yield line
        case (
            InputChanged(old=Content() as was, new=Content() as now)
            | OutputChanged(old=Content() as was, new=Content() as now)
        ):
            yield from (f"-{content(was)}", f"+{content(now)}")


def _root(view: View, answer: Answer) -> Iterator[str]:
    """For a cascade: why it begins where it begins."""
    for one in answer.reasons:
        if isinstance(one, Upstream) and one.root:
            root = view.decision.answers.get(one.root)
            if root is not None:
                yield f"  {one.root}: {'; '.join(reason(cause) for cause in root.reasons)}"
            return

"""`treadle why TASK`: the decision on one task, with old and new values."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator

from treadle.api.pipe import View, look, mask_of
from treadle.base.errors import OptionError
from treadle.base.mask import Mask
from treadle.cli.options import add_decision, add_workflow, request_of
from treadle.cli.printer import Printer
from treadle.cli.words import UP_TO_DATE, VERDICTS, as_values, content, digest, reason
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


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser, targets="TASK")
    add_decision(parser)


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    request = request_of(args)
    if not request.targets:
        raise OptionError("why needs a task", hint="treadle plan --tasks lists them")
    view = look(request)
    named = _named(view, request.targets)
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
    }


def _lines(view: View, task: str, printer: Printer) -> Iterator[str]:
    answer = view.decision.answers[task]
    maybe = ", unless what it reads comes out unchanged" if answer.may_cut_off else ""
    yield f"{printer.style(task, 'bold')}: {VERDICTS[answer.verdict]}{maybe}"
    if not answer.reasons and answer.verdict is Verdict.UP_TO_DATE:
        yield f"  {UP_TO_DATE[answer.note]}"
    for one in answer.reasons:
        yield f"  {reason(one)}"
        for line in _difference(one):
            colour = "red" if line.startswith("-") else "green" if line.startswith("+") else "dim"
            yield "    " + printer.style(line, colour)
    yield from _root(view, answer)


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

"""`treadle plan`: what would run, and why; nothing is written and no lock is taken."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from treadle.api.pipe import View, look, mask_of
from treadle.cli.again import Again
from treadle.cli.findings import folded
from treadle.cli.found_words import found_object
from treadle.cli.options import add_decision, add_workflow, request_of
from treadle.cli.preview import pin_lines, pins_of, rule_lines, summary_lines, task_lines
from treadle.cli.printer import Printer
from treadle.cli.words import as_values, count, diagnostic_lines, listed, shortened
from treadle.decide.reason import Verdict
from treadle.plan.show import plan_head, task_objects

if TYPE_CHECKING:
    from treadle.api.submit_preview import Sendings


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser)
    add_decision(parser)
    parser.add_argument("--tasks", action="store_true", help="one line per task, with its reasons")
    parser.add_argument(
        "--show",
        choices=["submit"],
        metavar="WHAT",
        help="submit: the exact scripts and commands that a run would send to its scheduler",
    )


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    view = look(request_of(args))
    for warning in folded((*view.warnings, *view.beyond)):
        printer.talk(diagnostic_lines(warning, printer))
    if args.show:
        _show_sendings(view, printer)
        return 0
    if args.json:
        print_object(view, printer)
        return 0
    for line in task_lines(view, printer) if args.tasks else rule_lines(view, printer):
        printer.data(line)
    for line in pin_lines(view):
        printer.talk(line)
    mask = mask_of(view.workflow)
    for line in summary_lines(view, printer, Again.of(args)):
        printer.talk(mask.text(line))
    return 0


def _show_sendings(view: View, printer: Printer) -> None:
    """The scripts and commands of a run, one after the other."""
    from treadle.api.submit_preview import RUN, sendings_of  # only here

    found = sendings_of(view)
    if printer.json:
        printer.object({"schema": 1, "run": RUN, "submissions": found.sent, "here": found.here})
        return
    for number, one in enumerate(found.sent, 1):
        printer.data(printer.style(f"# {number}: $ {one.command}", "bold"))
        printer.data(one.script)
    printer.talk(_sent_words(found))


def _sent_words(found: Sendings) -> str:
    stages = len({one.level for one in found.sent})
    words = f"{count(len(found.sent), 'submission')} in {count(stages, 'stage')}"
    here = f"; on this machine: {listed(found.here)}" if found.here else ""
    return f"{words}{here}"


def print_object(view: View, printer: Printer) -> None:
    """The one JSON object of `plan --json`: the plan, with the decision on each selected task."""
    answers = view.decision.answers
    verdicts = [answer.verdict for answer in answers.values()]
    summary = {
        "tasks": len(view.plan.tasks),
        "selected": len(verdicts),
        **{verdict.value: verdicts.count(verdict) for verdict in Verdict},
        "may_cut_off": sum(answer.may_cut_off for answer in answers.values()),
    }
    warnings = [shortened(one) for one in (*view.warnings, *view.beyond)]
    pins = {"pins": found} if (found := pins_of(view)) else {}
    printer.long_object(
        plan_head(view.plan),
        "tasks",
        _task_objects(view),
        {"summary": summary, "warnings": warnings, **pins, **found_object(view)},
    )


def _task_objects(view: View) -> Iterator[dict[str, Any]]:
    mask = mask_of(view.workflow)
    for task in task_objects(view.plan):
        answer = view.decision.answers.get(task["id"])
        task["will_run"] = answer is not None and answer.verdict is Verdict.WILL_RUN
        task["verdict"] = answer.verdict if answer else "not_selected"
        task["reasons"] = as_values(answer.reasons, mask) if answer else ()
        task["may_cut_off"] = answer is not None and answer.may_cut_off
        if answer is not None and answer.note:
            task["note"] = answer.note
        yield task

"""`treadle graph`: the plan as dot, mermaid or a plain tree."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from treadle.api.pipe import Planned, Request, plan_of, view_of
from treadle.base.layout import StateFolder
from treadle.cli.options import add_workflow, request_of
from treadle.cli.printer import Printer
from treadle.records.past import load_past
from treadle.report.graph import FORMATS, Drawing, by_rule, by_task, with_coming


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser)
    parser.add_argument("--format", choices=sorted(FORMATS), default="tree", help="default: %(default)s")
    parser.add_argument("--tasks", action="store_true", help="one node per task, not per rule")


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    request = request_of(args)
    planned = plan_of(request)
    grows = any(task.call is not None and task.call.grows for task in planned.plan.tasks.values())
    if planned.base is None and not grows:
        drawing = (by_task if args.tasks else by_rule)(planned.plan, planned.selected)
    else:
        planned, drawing = _with_found(planned, request, tasks=args.tasks)
    if args.json:
        perhaps = {"perhaps": sorted(drawing.perhaps)} if drawing.perhaps else {}
        printer.object({"schema": 1, "nodes": drawing.nodes, "edges": drawing.edges, **perhaps})
        return 0
    for line in FORMATS[args.format](drawing, planned.plan.name):
        printer.data(line)
    return 0


def _with_found(planned: Planned, request: Request, *, tasks: bool) -> tuple[Planned, Drawing]:
    """The plan with what is recorded as found, and drawn with what may still come."""
    from treadle.cli.found_words import coming, growing  # workflows without checkpoint rules do without

    view = view_of(planned, request, load_past(StateFolder(planned.workdir)))
    waiting = [task for task in view.plan.tasks.values() if task.awaits]
    whole = view.planned or planned
    if tasks:
        drawing = by_task(view.plan, view.selected)
        kept = frozenset(task.id for task in waiting if task.id in drawing.nodes)
        drawing = Drawing(drawing.nodes, drawing.edges, kept)
        return whole, with_coming(drawing, {f"grown by {step}": (step,) for step in growing(view)}, kept)
    still: dict[str, Iterable[str]] = {
        f"grown by {step}": (step,)
        for step in dict.fromkeys(view.plan.tasks[one].rule for one in growing(view))
    }
    still |= {
        rule: dict.fromkeys(view.plan.tasks[task].rule for task in tasks_of)
        for rule, tasks_of in coming(view).items()
    }
    drawing = with_coming(by_rule(view.plan, view.selected), still, (task.rule for task in waiting))
    return whole, drawing

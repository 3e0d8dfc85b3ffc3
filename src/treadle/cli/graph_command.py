"""`treadle graph`: the plan as dot, mermaid or a plain tree."""

from __future__ import annotations

import argparse

from treadle.api.pipe import plan_of
from treadle.cli.options import add_workflow, request_of
from treadle.cli.printer import Printer
from treadle.report.graph import FORMATS, by_rule, by_task


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser)
    parser.add_argument("--format", choices=sorted(FORMATS), default="tree", help="default: %(default)s")
    parser.add_argument("--tasks", action="store_true", help="one node per task, not per rule")


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    planned = plan_of(request_of(args))
    drawing = (by_task if args.tasks else by_rule)(planned.plan, planned.selected)
    if args.json:
        printer.object({"schema": 1, "nodes": drawing.nodes, "edges": drawing.edges})
        return 0
    for line in FORMATS[args.format](drawing, planned.plan.name):
        printer.data(line)
    return 0

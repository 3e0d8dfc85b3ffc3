"""`treadle path pipeline.py:train`: where the artifact of a step stands, whether it is there or not."""

from __future__ import annotations

import argparse

from treadle.cli.options import add_workflow, request_of
from treadle.cli.printer import Printer


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser, targets="STEP")


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    from treadle.api.step_paths import step_paths

    found = step_paths(request_of(args))
    if args.json:
        printer.object({"schema": 1, "steps": found})
        return 0
    for one in found:
        printer.data(one.path)
    return 0

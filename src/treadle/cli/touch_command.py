"""`treadle touch`: record outputs that are there as up to date; no file is changed."""

from __future__ import annotations

import argparse

from treadle.api.touch import touch
from treadle.cli.options import add_lock, add_workflow, request_of
from treadle.cli.printer import Printer
from treadle.cli.words import before_run, count


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser)
    add_lock(parser)


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    tasks = touch(
        request_of(args),
        lambda news: printer.talk(before_run(news)),
        wait=args.wait,
        assume_dead=args.assume_dead,
    )
    if args.json:
        printer.object({"schema": 1, "tasks": tasks})
        return 0
    for task in tasks:
        printer.data(task)
    printer.talk(f"{count(len(tasks), 'task')} recorded as up to date; no file was changed")
    return 0

"""`treadle cancel`: cancel what the last run has in flight, and see that it is gone."""

from __future__ import annotations

import argparse
import os

from treadle.api.cancel import Cancellation, cancel
from treadle.base.layout import StateFolder
from treadle.cli.printer import Printer
from treadle.cli.status_command import add_run, folder_of, run_folder
from treadle.cli.words import count, listed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", default="", metavar="FILE", help="a workflow or pipeline: its folder is meant"
    )
    add_run(parser)
    parser.add_argument("--assume-dead", action="store_true", help="take a driver on another host as dead")


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    workdir = os.path.abspath(args.workdir or folder_of(args.file) or ".")
    folder = run_folder(workdir, args.run)

    def say(what: str, value: str) -> None:
        if what == "driver":
            printer.talk(f"ending the driver of run {folder.run} (process {value})")
        else:
            printer.talk(f"cancelling {count(int(value), 'job')}")

    done = cancel(folder, workdir=StateFolder(workdir).workdir, assume_dead=args.assume_dead, say=say)
    if args.json:
        printer.object({"schema": 1, **{name: getattr(done, name) for name in done.__struct_fields__}})
    elif done.left:
        printer.problem(_left(done))
    else:
        printer.talk(_gone(done))
    return 3 if done.left else 0


def _gone(done: Cancellation) -> str:
    if done.gone:
        return (
            f"{count(done.gone, 'job')} of run {done.run} cancelled: {done.backend} has none of them any more"
        )
    if done.stopped:
        return f"run {done.run} was stopped; nothing of it is left"
    return f"nothing of run {done.run} is in flight"


def _left(done: Cancellation) -> str:
    number = count(len(done.left), "job")
    return (
        f"error: {number} of run {done.run} could not be cancelled: {listed(done.left)}\n"
        f"  to try it by hand: {done.command}"
    )

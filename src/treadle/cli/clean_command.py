"""`treadle clean`: delete what tasks made; lists, asks, and never touches a source."""

from __future__ import annotations

import argparse

from treadle.api.clean import Cleaning, Stays, clean
from treadle.api.session import Recovered
from treadle.cli.ask import add_asking, agreed
from treadle.cli.options import add_lock, add_workflow, request_of
from treadle.cli.printer import Printer
from treadle.cli.words import before_run, count, listed
from treadle.records.lock import LockNews

_STAYS = {
    Stays.UNRECORDED: "not recorded as made here (--all deletes it)",
    Stays.CHANGED: "changed since its task made it (--all deletes it)",
    Stays.SOURCE: "an input from outside, or a part of the workflow",
}


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--all", action="store_true", help="also what is not recorded as made here, or was changed since"
    )
    what.add_argument(
        "--failed", action="store_true", help="only what failed attempts left and was set aside (*.failed)"
    )
    add_asking(parser)
    add_lock(parser)


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    found = clean(
        request_of(args),
        Front(args, printer),
        unrecorded=args.all,
        failed=args.failed,
        wait=args.wait,
        assume_dead=args.assume_dead,
    )
    if args.json:
        printer.object(
            {
                "schema": 1,
                "done": found.done,
                "paths": found.paths,
                "folders": found.folders,
                "kept": found.left,
            }
        )
        return 0
    if found.done or args.dry_run:
        for path in found.paths:
            printer.data(path)
    for line in _words(found, args):
        printer.talk(line)
    return 0


class Front:
    """The person who is asked."""

    def __init__(self, args: argparse.Namespace, printer: Printer) -> None:
        self.args = args
        self.printer = printer

    def say(self, news: LockNews | Recovered) -> None:
        self.printer.talk(before_run(news))

    def agree(self, found: Cleaning) -> bool:
        number = count(len(found.paths), "file or folder", "files and folders")
        return agreed(f"delete {number}?", found.paths, self.args, self.printer)


def _words(found: Cleaning, args: argparse.Namespace) -> list[str]:
    lines = []
    for why, words in _STAYS.items():
        paths = [one.path for one in found.left if one.why is why]
        if paths:
            lines.append(f"kept {listed(paths, 3)}: {words}")
    if not found.paths:
        return [*lines, "nothing to clean"]
    if not found.done:
        return lines if args.dry_run else [*lines, "nothing was deleted"]
    deleted = count(len(found.paths), "file or folder", "files and folders")
    folders = f", and {count(len(found.folders), 'empty folder')}" if found.folders else ""
    return [*lines, f"{deleted} deleted{folders}"]

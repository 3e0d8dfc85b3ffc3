"""`treadle clean`: delete what tasks made; lists, asks, and never touches a source."""

from __future__ import annotations

import argparse

from treadle.api.clean import Cleaning, Stays, clean
from treadle.api.session import Recovered
from treadle.base.errors import OptionError
from treadle.cli.ask import add_asking, agreed
from treadle.cli.options import add_lock, add_workflow, request_of
from treadle.cli.printer import Printer
from treadle.cli.words import before_run, count, listed
from treadle.records.lock import LockNews

_STAYS = {
    Stays.UNRECORDED: "not recorded as made here (--all deletes it)",
    Stays.CHANGED: "changed since its task made it (--all deletes it)",
    Stays.SOURCE: "an input from outside, or a part of the workflow",
    Stays.MUTABLE: "of a development version",
    Stays.HELD: "being made just now",
}


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--all", action="store_true", help="also what is not recorded as made here, or was changed since"
    )
    what.add_argument(
        "--failed", action="store_true", help="only what failed attempts left: *.failed, private folders"
    )
    what.add_argument(
        "--artifacts", action="store_true", help="the artifacts of the Python steps that are named, instead"
    )
    parser.add_argument(
        "--unreachable",
        action="store_true",
        help="with --artifacts: all below the prefix that no step of the pipeline names any more",
    )
    add_asking(parser)
    add_lock(parser)


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    if args.unreachable and not args.artifacts:
        raise OptionError("--unreachable is about artifacts", hint="add --artifacts")
    found = _cleaned(args, printer)
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


def _cleaned(args: argparse.Namespace, printer: Printer) -> Cleaning:
    if args.artifacts:
        from treadle.api.clean_artifacts import clean_artifacts

        return clean_artifacts(request_of(args), Front(args, printer), unreachable=args.unreachable)
    return clean(
        request_of(args),
        Front(args, printer),
        unrecorded=args.all,
        failed=args.failed,
        wait=args.wait,
        assume_dead=args.assume_dead,
    )


class Front:
    """The person who is asked."""

    def __init__(self, args: argparse.Namespace, printer: Printer) -> None:
        self.args = args
        self.printer = printer

    def say(self, news: LockNews | Recovered) -> None:
        self.printer.talk(before_run(news))

    def agree(self, found: Cleaning) -> bool:
        if self.args.unreachable and not self.args.yes:
            self.printer.problem(self._seen_as())
        number = count(len(found.paths), *_nouns(self.args))
        return agreed(f"delete {number}?", found.paths, self.args, self.printer)

    def _seen_as(self) -> str:
        """With which parameters the pipelines were looked at: what was made with others goes, too."""
        given = request_of(self.args).config
        said = " ".join(f"{name}={value}" for name, value in given)
        with_them = (
            f"with {said}, and else the defaults" if given else "with the defaults of their parameters"
        )
        return f"note: pipelines are looked at {with_them}: what was made with others counts as unreachable"


def _nouns(args: argparse.Namespace) -> tuple[str, str]:
    return ("artifact", "artifacts") if args.artifacts else ("file or folder", "files and folders")


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
    deleted = count(len(found.paths), *_nouns(args))
    folders = f", and {count(len(found.folders), 'empty folder')}" if found.folders else ""
    return [*lines, f"{deleted} deleted{folders}"]

"""`treadle evict`: delete outputs on purpose, so that they do not count as missing."""

from __future__ import annotations

import argparse
from typing import Any

from treadle.api.evict import Eviction, Kept, evict
from treadle.api.session import Recovered
from treadle.base.errors import PlanError
from treadle.base.place import Diagnostic
from treadle.cli.ask import SHOWN, add_asking, agreed
from treadle.cli.options import add_lock, add_workflow, request_of
from treadle.cli.printer import Printer
from treadle.cli.words import before_run, count, reason
from treadle.records.lock import LockNews


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser, targets="RULE|TASK|PATH")
    add_asking(parser)
    add_lock(parser)


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    found = evict(request_of(args), Front(args, printer), wait=args.wait, assume_dead=args.assume_dead)
    if found.kept and not found.burials:
        raise PlanError(_refusals(found))
    if args.json:
        printer.object(_object(found))
        return 0
    if found.done or args.dry_run:
        for one in found.burials:
            printer.data(one.record.path)
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

    def agree(self, found: Eviction) -> bool:
        """Ask about what will be deleted; what is gone already needs no question."""
        there = [one.record.path for one in found.burials if one.there]
        if not there:
            return not self.args.dry_run
        question = f"delete {count(len(there), 'output')}, and make them again only when they are needed?"
        return agreed(question, there, self.args, self.printer)


def _words(found: Eviction, args: argparse.Namespace) -> list[str]:
    lines = [f"kept {one.path}: {_why(one)}" for one in found.kept[:SHOWN]]
    if len(found.kept) > SHOWN:
        lines.append(f"kept {len(found.kept) - SHOWN} more")
    deleted = sum(one.there for one in found.burials)
    if not found.burials:
        return [*lines, "nothing to evict"]
    if not found.done:
        return lines if args.dry_run else [*lines, "nothing was deleted"]
    if deleted:
        lines.append(f"{count(deleted, 'output')} deleted on purpose")
    if len(found.burials) > deleted:
        number = len(found.burials) - deleted
        gone = "was gone is" if number == 1 else "were gone are"
        lines.append(f"{count(number, 'output')} that {gone} taken as deleted on purpose")
    return [*lines, "made again when something that must run needs them"]


def _why(kept: Kept) -> str:
    if kept.holds:
        return f"it holds {kept.holds}, which stood there before {kept.task} made anything"
    if kept.reasons:
        return f"{kept.task} is not up to date: {'; '.join(reason(one) for one in kept.reasons)}"
    return f"{kept.needed_by or 'another task'} still has to run and reads it"


def _refusals(found: Eviction) -> list[Diagnostic]:
    refused = [
        Diagnostic(
            "still-needed", f"{one.path} cannot be evicted: {_why(one)}", hint="treadle run, then evict"
        )
        for one in found.kept[:SHOWN]
    ]
    if len(found.kept) > SHOWN:
        refused.append(Diagnostic("still-needed", f"and {len(found.kept) - SHOWN} more"))
    return refused


def _object(found: Eviction) -> dict[str, Any]:
    return {
        "schema": 1,
        "done": found.done,
        "outputs": [
            {"path": one.record.path, "task": one.task, "was_there": one.there} for one in found.burials
        ],
        "kept": [
            {
                "path": one.path,
                "task": one.task,
                "reasons": list(one.reasons),
                "needed_by": one.needed_by,
                "holds": one.holds,
            }
            for one in found.kept
        ],
    }

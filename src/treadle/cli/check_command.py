"""`treadle check`: everything that is wrong with a workflow or smells, at once; runs nothing."""

from __future__ import annotations

import argparse

from treadle.api.check import Checked, check
from treadle.base.errors import OptionError
from treadle.base.names import did_you_mean
from treadle.cli.findings import folded
from treadle.cli.options import add_workflow, request_of
from treadle.cli.printer import Printer
from treadle.cli.words import count, diagnostic_lines, shortened


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser)
    parser.add_argument(
        "--inputs", action="store_true", help="source files that are not there are errors, not warnings"
    )
    parser.add_argument(
        "--explain",
        default="",
        metavar="CODE",
        help="print what a code means, an example, and how to mend it",
    )


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    if args.explain:
        return _explain(args.explain, printer)
    found = check(request_of(args), inputs=args.inputs)
    if args.json:
        errors, warnings = (list(map(shortened, some)) for some in (found.errors, found.warnings))
        printer.object({"schema": 1, "errors": errors, "warnings": warnings})
    else:
        for one in folded((*found.errors, *(() if args.quiet else found.warnings))):
            printer.data(diagnostic_lines(one, printer, err=False))
        printer.talk(_summary(found))
        if codes := sorted({one.code for one in (*found.errors, *found.warnings)}):
            printer.talk(f"treadle check --explain CODE tells more: {', '.join(codes)}")
    return 2 if found.errors or (args.strict and found.warnings) else 0


def _summary(found: Checked) -> str:
    if found.errors:
        return f"{count(len(found.errors), 'error')}, {count(len(found.warnings), 'warning')}"
    smell = f"{count(len(found.warnings), 'warning')}; " if found.warnings else "nothing to complain about: "
    return f"{smell}{count(found.rules, 'rule')}, {count(found.tasks, 'task')}"


def _explain(code: str, printer: Printer) -> int:
    from treadle.cli.codes import explained

    known = explained()
    if code not in known:
        hint = did_you_mean(code, known) or "codes of runs and steps are listed in docs/messages.md"
        raise OptionError(f"check knows no code '{code}'", hint=hint)
    one = known[code]
    if printer.json:
        printer.object({"schema": 1, "code": code, "severity": one.kind, "says": one.says, "mend": one.mend})
    else:
        printer.data(f"{code}\n\n{one.text()}")
    return 0

"""`treadle exec TASK`: one task in front, with its environment and a terminal; nothing is recorded."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from treadle.api.exec import Prepared, What, prepare
from treadle.backends.local_start import refusal, script_of
from treadle.base.errors import DiskError, OptionError
from treadle.base.proc import become
from treadle.cli.options import add_workflow, request_of
from treadle.cli.printer import Printer


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser, targets="TASK")
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "-i", "--shell", action="store_true", help="open an interactive shell in the task's environment"
    )
    only.add_argument("--print", action="store_true", help="print the script that would run, and run nothing")


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    if args.json and not args.print:
        raise OptionError("with --json exec only prints the script", hint="add --print")
    what = What.SCRIPT if args.print else What.SHELL if args.shell else What.RUN
    found = prepare(request_of(args), what)
    if not args.print:
        if found.busy:
            printer.talk(f"warning: the folder is in use by {found.busy}")
        name = f"a shell for {found.submission.task.id}" if args.shell else found.submission.task.id
        printer.talk(found.mask.text(f"{name}, in front: nothing of it is recorded"))
        _replace(found)
    _print(found, printer, as_json=args.json)
    return 0


def _print(found: Prepared, printer: Printer, *, as_json: bool) -> None:
    script = found.mask.text(script_of(found.submission, found.submission.env))
    if as_json:
        printer.object({"schema": 1, "task": found.submission.task.id, "script": script})
    else:
        sys.stdout.write(script)


def _replace(found: Prepared) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    submission = found.submission
    try:
        become(submission.argv, env=found.env, cwd=submission.cwd)
    except (OSError, ValueError) as error:
        raise DiskError(found.mask.text(refusal(submission, error)), code="cannot-start") from None

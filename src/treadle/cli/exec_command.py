"""`treadle exec TASK`: one task in front, with its environment and a terminal; nothing is recorded."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

from treadle.api.exec import Prepared, What, chosen, prepare
from treadle.backends.local_start import refusal, script_of
from treadle.base.errors import DiskError, OptionError
from treadle.base.proc import become
from treadle.cli.options import add_workflow, request_of
from treadle.cli.printer import Printer
from treadle.cli.words import visible

if TYPE_CHECKING:
    from treadle.api.pipe import Planned
    from treadle.plan.task import ScheduledTask


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
    planned, task = chosen(request_of(args))
    if task.call is not None:
        if what is not What.RUN:
            message = f"{task.id} is a Python step: there is no script of it, and no shell for it"
            raise OptionError(
                message, hint="without that option its function is called here, in front of you"
            )
        return _call(planned, task, printer)
    found = prepare(planned, task, what)
    if not args.print:
        if found.busy:
            printer.talk(f"warning: the folder is in use by {found.busy}")
        name = f"a shell for {found.submission.task.id}" if args.shell else found.submission.task.id
        printer.talk(found.mask.text(f"{name}, in front: nothing of it is recorded"))
        _replace(found)
    _print(found, printer, as_json=args.json)
    return 0


def _call(planned: Planned, task: ScheduledTask, printer: Printer) -> int:
    """Call the function of a step here; a `SystemExit` in it gives the exit code."""
    from treadle.api.exec_step import see_ready, try_step
    from treadle.api.user_code import exception_lines

    see_ready(planned, task)
    printer.talk(f"{task.id}, in front: nothing of it is recorded, and what it makes is not its artifact")
    tried = try_step(planned, task)
    if tried.error is not None:
        for line in "\n".join(exception_lines(tried.error)).splitlines():
            printer.problem(visible(line))
    if tried.made:
        printer.talk(f"it made {tried.work}")
    elif tried.error is None:
        printer.talk("it made nothing at its path")
    if tried.value is not None:
        printer.talk(f"it gave back {tried.value!r}")
    if isinstance(tried.error, SystemExit) and isinstance(tried.error.code, int):
        return tried.error.code & 0xFF
    return 0 if tried.error is None else 1


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
